"""What a run came to, as the status of its policy: counts, refusals with examples, failures."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from plimsoll.api.v1alpha1.rebalancing import Mode, ObjectiveName
from plimsoll.api.v1alpha1.scheduling_policy import (
    LastRun,
    OptimisationStatus,
    Refusal,
    RunCounts,
    SchedulingPolicyStatus,
    StrategyFailure,
)
from plimsoll.engine.moves import EvictionPlan, Optimisation

#: Pods named as examples of one refusal, and characters of its sentence.
EXAMPLES, SENTENCE = 5, 1024


def run_status(
    made: EvictionPlan,
    *,
    mode: Mode,
    started: float,
    completed: float | None,
    evicted: int,
    verified: int,
    next_run: datetime | None,
) -> dict[str, Any]:
    """The part of a policy's status that its last run determines; times in seconds since the epoch."""
    by_reason: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for each in made.refused:
        by_reason[each.refusal.reason].append((each.pod.key, each.refusal.message))
    verb = {
        Mode.DRY_RUN: "would be moved",
        Mode.APPROVE: "wait for approval",
        Mode.ENFORCE: "are moved",
    }[mode]
    status = SchedulingPolicyStatus(
        last_run=LastRun(
            start_time=datetime.fromtimestamp(started, UTC),
            completion_time=None if completed is None else datetime.fromtimestamp(completed, UTC),
            mode=mode,
            message=f"{made.considered} pods considered, {len(made.moves)} {verb}",
            optimisation=_optimisation(made.optimisation),
            failures=tuple(
                {
                    each.plugin: StrategyFailure(name=each.plugin, message=each.problem[:SENTENCE])
                    for each in made.failures
                }.values()
            ),
        ),
        next_run_time=next_run,
        counts=RunCounts(
            considered=made.considered,
            refused=tuple(
                Refusal(
                    reason=reason,
                    count=len(pods),
                    message=pods[0][1][:SENTENCE],
                    examples=tuple(key for key, _ in pods[:EXAMPLES]),
                )
                for reason, pods in sorted(by_reason.items(), key=lambda each: (-len(each[1]), each[0]))[:100]
            ),
            planned=len(made.moves),
            evicted=evicted,
            verified=verified,
        ),
    )
    return status.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"last_run", "next_run_time", "counts"}
    )


def _optimisation(found: Optimisation | None) -> OptimisationStatus | None:
    """Figures for people: rounded."""
    if found is None:
        return None
    return OptimisationStatus(
        objective=ObjectiveName(found.objective),
        before=round(found.before, 2),
        value=round(found.value, 2),
        bound=round(found.bound, 2),
        proven=round(found.proven, 2),
        moves=found.moves,
        gap_percent=round(100 * found.gap, 1),
        seconds=round(found.seconds, 2),
    )
