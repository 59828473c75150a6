"""What a run came to, as the status of its policy: counts, refusals with examples, failures."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from plimsoll.api.v1alpha1.rebalancing import Mode, ObjectiveName, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import (
    LastRun,
    OptimisationStatus,
    Refusal,
    RunCounts,
    SchedulingPolicy,
    SchedulingPolicyStatus,
    StrategyFailure,
)
from plimsoll.control.ports import PolicyStatusWriter
from plimsoll.engine.moves import EvictionPlan, Optimisation
from plimsoll.framework.observer import Observer

#: Pods named as examples of one refusal, and characters of its sentence.
EXAMPLES, SENTENCE = 5, 1024


@dataclass(slots=True)
class RunTotals:
    """What a run of a policy came to; grows until its moves are finished.

    Attributes:
        policy: As it was when the run began.
        started: Seconds since the epoch.
        plan: What was planned.
        cycle: Tells this run from others.
        evicted: Evictions that were accepted.
        verified: Replacements that were there in time.
        completed: Seconds since the epoch, None while the moves are being made.
    """

    policy: SchedulingPolicy
    started: float
    plan: EvictionPlan
    cycle: str
    evicted: int = 0
    verified: int = 0
    completed: float | None = None


class RunReports:
    """The last run of each policy, and its way into the policy's status.

    Args:
        policies: Those that rebalance, by name, at any moment; nothing is told of others.
        statuses: Writes the status.
        next_run: When a policy runs again.
        observer: Told when a status cannot be written.
    """

    def __init__(
        self,
        policies: Mapping[str, SchedulingPolicy],
        statuses: PolicyStatusWriter,
        next_run: Callable[[str], datetime | None],
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._statuses = statuses
        self._next_run = next_run
        self._observer = observer
        self._totals: dict[str, RunTotals] = {}

    def begin(self, totals: RunTotals) -> None:
        """A run has a plan; the one before it is told of no more."""
        self._totals[totals.policy.metadata.name] = totals

    def forget(self, name: str) -> None:
        """The policy rebalances no more."""
        self._totals.pop(name, None)

    def count(self, name: str, *, evicted: int = 0, verified: int = 0) -> None:
        """Add to what the last run of a policy came to."""
        totals = self._totals.get(name)
        if totals is not None:
            totals.evicted += evicted
            totals.verified += verified

    async def write(self, name: str) -> None:
        """Write what the last run of a policy came to."""
        totals = self._totals.get(name)
        if totals is None or name not in self._policies:
            return
        answer = await self._statuses.write_status(name, run_status(totals, self._next_run(name)))
        if not answer.is_done:
            self._observer.failed(f"status of policy {name}", answer.message)


def run_status(totals: RunTotals, next_run: datetime | None) -> dict[str, Any]:
    """The part of a policy's status that its last run determines."""
    made, mode = totals.plan, (totals.policy.spec.rebalancing or RebalancingSpec()).mode
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
            start_time=datetime.fromtimestamp(totals.started, UTC),
            completion_time=None
            if totals.completed is None
            else datetime.fromtimestamp(totals.completed, UTC),
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
            evicted=totals.evicted,
            verified=totals.verified,
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
