"""Status of a run for its policy: counts, rejected candidates with examples, failures."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from plimsoll.api.v1alpha1.rebalancing import Mode, ObjectiveName, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import (
    LastRun,
    MoveTotals,
    OptimisationStatus,
    RefusalExample,
    RunCounts,
    RunOutcome,
    SchedulingPolicy,
    SchedulingPolicyStatus,
    StrategyFailure,
)
from plimsoll.framework import PluginError
from plimsoll.planning.moves import EvictionPlan, Optimisation, Refused
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicyStatusWriter
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.run_result import RunResult
from plimsoll.timing.signal import Signal

#: Pods named as examples of one refusal, characters of its sentence, and of what is said of a run.
EXAMPLES, SENTENCE, STORY = 5, 1024, 4096

#: Reason of the policy's event, and what becomes of the moves of a plan.
_DONE = {
    Mode.DRY_RUN: ("Predicted", "would be moved"),
    Mode.APPROVE: ("Proposed", "wait for approval"),
    Mode.ENFORCE: ("Rebalanced", "are moved"),
}


#: Results of runs that broke off.
_BROKEN = {RunResult.CRASHED: RunOutcome.CRASHED, RunResult.TIMED_OUT: RunOutcome.TIMED_OUT}


#: What may be left out of a run.
_NOTHING: dict[str, Any] = dict.fromkeys(("completionTime", "result", "message", "optimisation"))


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
        recorder: Told, as events of the policy, of runs that plan moves or in which a strategy fails.
        next_run: When a policy runs again.
        totals: What the kept records of a policy come to.
        clock: Time.
        observer: Told when a status cannot be written.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        statuses: PolicyStatusWriter,
        recorder: EventRecorder,
        next_run: Callable[[str], datetime | None],
        totals: Callable[[str], MoveTotals],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._statuses = statuses
        self._recorder = recorder
        self._next_run = next_run
        self._move_totals = totals
        self._now = clock.now
        self._observer = observer
        self._totals: dict[str, RunTotals] = {}
        self._dirty: set[str] = set()
        self._changed = Signal()

    def begin(self, totals: RunTotals) -> None:
        """A run has a plan; the one before it is told of no more."""
        self._totals[totals.policy.metadata.name] = totals

    def forget(self, name: str) -> None:
        """The policy rebalances no more."""
        self._totals.pop(name, None)

    def count(self, name: str, run: str, *, evicted: int = 0, verified: int = 0) -> None:
        """Add to what the last run of a policy came to; its status is written soon.

        Args:
            name: Of the policy.
            run: The run that decided the move; "" for a proposal, which counts for the last run.
            evicted: Moves that were made.
            verified: Replacements that were there in time.
        """
        totals = self._totals.get(name)
        is_last = totals is not None and run in ("", totals.cycle)
        if totals is not None:
            totals.evicted += evicted if is_last else 0
            totals.verified += verified
        if not is_last or not evicted or (totals is not None and totals.completed is not None):
            self._dirty.add(name)  # else the run itself writes the status when it ends
            self._changed.notify()

    async def end(self, totals: RunTotals, now: float) -> None:
        """The moves of a run have been made, or written down for people."""
        totals.completed = now
        for note in _notes(totals):
            self._recorder.record(note)
        await self.write(totals.policy.metadata.name)

    async def ended(self, policy: SchedulingPolicy, started: float, result: RunResult, problem: str) -> None:
        """A run has ended; one that broke off is told in its stead, whatever it had planned."""
        outcome = _BROKEN.get(result)
        name = policy.metadata.name
        if outcome is None or name not in self._policies:
            return
        self._totals.pop(name, None)
        broken = LastRun(
            start_time=datetime.fromtimestamp(started, UTC),
            completion_time=datetime.fromtimestamp(max(self._now(), started), UTC),
            mode=(policy.spec.rebalancing or RebalancingSpec()).mode,
            result=outcome,
            message=f"the run broke off: {problem}"[:STORY],
        )
        document = {
            "lastRun": broken.model_dump(mode="json", by_alias=True, exclude_none=True),
            "counts": None,
        }
        await self._send(name, document | self._always(name))

    async def write(self, name: str) -> None:
        """Write what the last run of a policy came to, and all of its moves."""
        if name not in self._policies:
            return
        totals = self._totals.get(name)
        document = {} if totals is None else run_status(totals, self._next_run(name))
        await self._send(name, document | self._always(name))

    async def run(self) -> None:
        """Write the status of policies whose moves come on, until cancelled; that of all at first."""
        await self.write_all()
        while True:
            await self._changed.until(lambda: bool(self._dirty))
            await self.write(self._dirty.pop())

    async def write_all(self) -> None:
        """Write what is known of every policy: records outlive the process."""
        await asyncio.gather(*(self.write(name) for name in list(self._policies)))

    def _always(self, name: str) -> dict[str, Any]:
        """What is written with every status."""
        return {"totals": self._move_totals(name).model_dump(mode="json", by_alias=True)}

    async def _send(self, name: str, document: dict[str, Any]) -> None:
        if "lastRun" in document:  # what is left out of a merge patch stays, and may be of an earlier run
            document = {**document, "lastRun": _NOTHING | document["lastRun"]}
        answer = await self._statuses.write_status(name, document)
        if not answer.is_done:
            self._observer.failed(f"status of policy {name}", answer.message)


def sentence_of(failure: PluginError) -> str:
    """What a strategy could not do, and why."""
    return f"{failure.plugin} could not judge the cluster: {failure.problem}"


def _notes(totals: RunTotals) -> Iterator[EventNote]:
    """What is worth an event of the policy; runs that find nothing to do are not."""
    meta, made = totals.policy.metadata, totals.plan
    policy = {
        "apiVersion": totals.policy.api_version,
        "kind": totals.policy.definition.kind,
        "name": meta.name,
        "uid": meta.uid or "",
    }
    for each in made.failures:
        yield EventNote(policy, "StrategyFailed", "Rebalancing", sentence_of(each), is_warning=True)
    if made.moves:
        reason, _ = _DONE[_mode(totals)]
        yield EventNote(policy, reason, "Rebalancing", _counted(totals))


def _mode(totals: RunTotals) -> Mode:
    return (totals.policy.spec.rebalancing or RebalancingSpec()).mode


def _counted(totals: RunTotals) -> str:
    """What came of a run, in counts."""
    made = totals.plan
    mode, planned = _mode(totals), len(made.moves)
    _, verb = _DONE[mode]
    is_short = mode is Mode.ENFORCE and totals.completed is not None and totals.evicted < planned
    done = f"{totals.evicted} of {planned} planned" if is_short else str(planned)
    return (
        f"{made.considered} {'pod' if made.considered == 1 else 'pods'} considered,"
        f" {done} {verb}, {made.considered - len({each.pod.uid for each in made.moves})} stay"
    )


def run_status(totals: RunTotals, next_run: datetime | None) -> dict[str, Any]:
    """The part of a policy's status that its last run determines."""
    made = totals.plan
    by_reason: dict[str, dict[str, Refused]] = defaultdict(dict)  # a pod counts once, whoever wanted it
    for each in made.refused:
        by_reason[each.refusal.reason].setdefault(each.pod.uid, each)
    status = SchedulingPolicyStatus(
        last_run=LastRun(
            start_time=datetime.fromtimestamp(totals.started, UTC),
            completion_time=None
            if totals.completed is None
            else datetime.fromtimestamp(totals.completed, UTC),
            mode=_mode(totals),
            result=None
            if totals.completed is None
            else RunOutcome.FAILED
            if made.failures
            else RunOutcome.SUCCEEDED,
            message=_story(_counted(totals), made),
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
                RefusalExample(
                    reason=reason,
                    count=len(found),
                    message=next(iter(found.values())).refusal.message[:SENTENCE],
                    examples=_examples(found.values()),
                )
                for reason, found in sorted(by_reason.items(), key=lambda one: (-len(one[1]), one[0]))[:100]
            ),
            planned=len(made.moves),
            evicted=totals.evicted,
            verified=totals.verified,
        ),
    )
    return status.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"last_run", "next_run_time", "counts"}
    )


def _story(counts: str, made: EvictionPlan) -> str:
    """What came of a run: the counts, then what strategies could not do, or have to say."""
    said = [sentence_of(each) for each in made.failures]
    said += [f"{strategy}: {remark}" for strategy, remark in made.remarks]
    return "; ".join([counts, *dict.fromkeys(said)])[:STORY]


def _examples(refused: Iterable[Refused]) -> tuple[str, ...]:
    """Some of the pods with their owners; one of each owner before a second one of any."""
    first: dict[str, str] = {}
    others: list[str] = []
    for each in refused:
        owner = each.pod.pod.metadata.controller
        text = each.pod.key + (f" ({owner.kind} {owner.name})" if owner else "")
        workload = owner.uid if owner else each.pod.uid
        if workload not in first:
            first[workload] = text
        elif len(others) < EXAMPLES:
            others.append(text)
        if len(first) == EXAMPLES:
            break
    return tuple(dict.fromkeys([*first.values(), *others]))[:EXAMPLES]


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
        waiting=found.waiting,
        served=found.served,
    )
