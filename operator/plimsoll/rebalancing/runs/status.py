"""Writes the status of a run into its policy: counts, rejected candidates with examples, failures."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from plimsoll.api.v1alpha1.eviction_phases import OPEN, Phase
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import (
    LastRun,
    LoadLeftOut,
    MoveTotals,
    RefusalExample,
    ResourceLoad,
    RunCounts,
    RunLoad,
    RunOutcome,
    SchedulingPolicy,
    SchedulingPolicyStatus,
    StrategyFailure,
)
from plimsoll.load.states import LoadState
from plimsoll.load.summary import LoadSummary
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.names import PolicyName
from plimsoll.planning.history import FEWEST_FORECASTS
from plimsoll.planning.moves import EvictionPlan, Refused
from plimsoll.policies.node_maintenance import PREFIX
from plimsoll.policies.run_figures import optimisation_status, sentence_of
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import PolicyStatusWriter
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome
from plimsoll.rebalancing.records.load_figures import RESOURCES
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.refusal_examples import examples
from plimsoll.records.history import is_victim


class RunResult(StrEnum):
    """How a run ended; the value of a metric's label."""

    SUCCEEDED = "succeeded"  #: every strategy has judged the cluster
    FAILED = "failed"  #: some strategy could not judge the cluster; the others ran
    CRASHED = "crashed"  #: an error ended it
    TIMED_OUT = "timed_out"  #: the plan was not ready in time
    SKIPPED = "skipped"  #: it was due and did not begin


#: Maximum lengths of the sentence about a refusal, and of the message about a run, in characters.
SENTENCE, STORY = 1024, 4096

#: Seconds from one write of statuses to the next.
PAUSE_S = 1.0

#: Reason of the policy's event, and the phrase for one move of a plan and for other numbers of them.
DONE = {
    Mode.DRY_RUN: ("Predicted", "would be moved", "would be moved"),
    Mode.APPROVE: ("Proposed", "waits for approval", "wait for approval"),
    Mode.ENFORCE: ("Rebalanced", "moved", "moved"),
}

#: Number of reasons that the counts of a run name.
REASONS = 3

#: Results of runs that an error or the time limit ended.
_BROKEN = {RunResult.CRASHED: RunOutcome.CRASHED, RunResult.TIMED_OUT: RunOutcome.TIMED_OUT}

#: Number of nodes that are named.
EXAMPLES = 5

#: Why nodes are left out, by the state of their load.
_LEFT_OUT = {
    LoadState.UNKNOWN: "NotMeasured",
    LoadState.STALE: "Stale",
    LoadState.ESTIMATED: "Estimated",
}

#: Fields that a run may lack.
_NOTHING: dict[str, Any] = dict.fromkeys(("completionTime", "result", "message", "optimisation", "load"))


class RunTotals(msgspec.Struct):
    """Totals of a policy's run; updated until its moves are finished.

    Attributes:
        policy: The policy as of the start of the run.
        started: Seconds since the epoch.
        plan: The plan.
        cycle: Distinguishes this run from others.
        evicted: Number of accepted evictions.
        verified: Number of replacements that were there in time.
        completed: Seconds since the epoch, None while the moves are being made.
    """

    policy: SchedulingPolicy
    started: float
    plan: EvictionPlan
    cycle: str
    evicted: int = 0
    verified: int = 0
    completed: float | None = None

    @property
    def name(self) -> PolicyName:
        """The policy's name."""
        return PolicyName(self.policy.metadata.name)

    @property
    def spec(self) -> RebalancingSpec:
        """The policy's spec."""
        return self.policy.spec.rebalancing or RebalancingSpec()


@dataclass(eq=False)
class RunReports:
    """Writes the last run of each of ``policies`` into its status, and the records' totals into every status.

    Moves of a policy that is suspended or whose spec is not accepted have records as well, and continue.
    """

    policies: Mapping[str, SchedulingPolicy]
    statuses: PolicyStatusWriter
    recorder: EventRecorder
    next_run: Callable[[str], datetime | None]
    keeper: EvictionRecordStore
    clock: Clock
    observer: Observer
    _totals: dict[str, RunTotals] = field(default_factory=dict, init=False)
    _dirty: dict[str, None] = field(default_factory=dict, init=False)
    _sent: dict[str, MoveTotals] = field(default_factory=dict, init=False)

    def begin(self, totals: RunTotals) -> None:
        """Report this run, which has a plan, in place of the earlier one."""
        self._totals[totals.name] = totals

    def plan_of(self, name: str) -> EvictionPlan | None:
        """The plan of a policy's last run, None without one."""
        totals = self._totals.get(name)
        return None if totals is None else totals.plan

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances."""
        self._totals.pop(name, None)
        self._sent.pop(name, None)

    def count(self, name: str, run: str, *, evicted: int = 0, verified: int = 0) -> None:
        """Add to the last run of a policy; ``run`` is "" for a proposal, which counts for that run."""
        totals = self._totals.get(name)
        is_last = totals is not None and run in ("", totals.cycle)
        if totals is not None:
            totals.evicted += evicted if is_last else 0
            totals.verified += verified
        if not is_last or not evicted or (totals is not None and totals.completed is not None):
            self._dirty[name] = None  # otherwise the run itself writes the status when it ends
            self.keeper.changed.notify()

    async def end(self, totals: RunTotals) -> None:
        """Report that the moves of a run have been made, or recorded for people."""
        totals.completed = self.clock.now()
        for note in () if totals.name.startswith(PREFIX) else _notes(totals):
            self.recorder.record(note)
        await self.write(totals.name)

    async def broke_off(
        self, policy: SchedulingPolicy, started: float, result: RunResult, problem: str
    ) -> None:
        """Report a run that failed, without its plan; other results are ignored."""
        outcome, name = _BROKEN.get(result), policy.metadata.name
        if result is RunResult.CRASHED:
            self.observer.failed(f"rebalancing {name}", problem)
        if outcome is None or name not in self.policies:
            return
        self._totals.pop(name, None)
        broken = LastRun(
            start_time=datetime.fromtimestamp(started, UTC),
            completion_time=datetime.fromtimestamp(max(self.clock.now(), started), UTC),
            mode=(policy.spec.rebalancing or RebalancingSpec()).mode,
            result=outcome,
            message=f"the run broke off: {problem}"[:STORY],
        )
        last_run = broken.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self._send(name, {"lastRun": last_run, "counts": None})

    async def write(self, name: str) -> None:
        """Write the last run's totals into a policy's status, and the totals of its records."""
        totals = self._totals.get(name)
        await self._send(name, {} if totals is None else run_status(totals, self.next_run(name)))

    async def run(self) -> None:
        """Write the status of all policies (records outlive a process), then of those that have changed."""
        moved = [each.spec.policy for each in self.keeper.known.values() if not is_victim(each)]
        await asyncio.gather(*(self.write(name) for name in dict.fromkeys((*self.policies, *moved))))
        while True:
            await self.keeper.changed.until(self._has_news)
            names, self._dirty = self._dirty, {}
            for name in names:
                await self.write(name)
            await self.clock.sleep(PAUSE_S)  # moves that end meanwhile share the next write

    def _has_news(self) -> bool:
        """Whether a status is to be written; that of a run under way is written at its end."""
        for name in list(self.keeper.touched):
            run = self._totals.get(name)
            if run is not None and run.completed is None:
                continue
            del self.keeper.touched[name]
            if self._move_totals(name) != self._sent.get(name):
                self._dirty[name] = None
        return bool(self._dirty)

    async def _send(self, name: str, document: dict[str, Any]) -> None:
        if name.startswith(PREFIX):
            return  # NodeMaintenances have a status of their own
        totals = self._sent[name] = self._move_totals(name)
        document["totals"] = totals.model_dump(mode="json", by_alias=True)
        if "lastRun" in document:  # a field missing in a merge patch stays, maybe of an earlier run
            document["lastRun"] = _NOTHING | document["lastRun"]
        answer = await self.statuses.write_status(name, document)
        if answer.is_done:
            return
        if self._sent.get(name) is totals:
            del self._sent[name]
        # A standby writes nothing, a deleted policy has no status, and rights go when all is removed.
        is_gone = name not in self.policies and answer.verdict is WriteOutcome.REFUSED
        if answer.verdict not in (WriteOutcome.FENCED, WriteOutcome.GONE) and not is_gone:
            self.observer.failed(f"status of policy {name}", answer.message)

    def _move_totals(self, name: str) -> MoveTotals:
        """The totals of a policy's records, without victims of preemption."""
        phases = self.keeper.known.phases(name)
        placed, hits = self.keeper.known.forecasts(name)
        return MoveTotals(
            moved=phases[Phase.SETTLED],
            returned=phases[Phase.RETURNED],
            failed=phases[Phase.FAILED],
            blocked=phases[Phase.BLOCKED],
            open=sum(phases[phase] for phase in OPEN),
            predicted=phases[Phase.PREDICTED],
            forecasts=placed,
            forecast_hits=hits,
            forecast_hit_percent=100 * hits // placed if placed >= FEWEST_FORECASTS else None,
        )


def _notes(totals: RunTotals) -> Iterator[EventNote]:
    """Findings that are worth an event; runs that find nothing to do are not."""
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
        reason, _, _ = DONE[totals.spec.mode]
        yield EventNote(policy, reason, "Rebalancing", _counted(totals))


def _counted(totals: RunTotals) -> str:
    """The counts of a run: ``3 candidates: 1 moved, 2 held back (Budget)``."""
    made = totals.plan
    mode, planned = totals.spec.mode, len(made.moves)
    _, *phrases = DONE[mode]
    is_short = mode is Mode.ENFORCE and totals.completed is not None and totals.evicted < planned
    done = f"{totals.evicted} of {planned} planned" if is_short else str(planned or "none")
    said = [f"{done} {agreeing(planned, *phrases)}"]
    stay = made.considered - len({each.pod.uid for each in made.moves})
    if stay:
        reasons = list(made.refused_by_reason())
        more = ", …" if len(reasons) > REASONS else ""
        said.append(f"{stay} held back ({', '.join(reasons[:REASONS])}{more})")
    return (
        f"{counted(made.considered, 'candidate')}: {', '.join(said)}" if made.considered else "no candidates"
    )


def run_status(totals: RunTotals, next_run: datetime | None) -> dict[str, Any]:
    """The part of a policy's status that its last run determines."""
    made, completed = totals.plan, totals.completed
    by_reason: dict[str, dict[str, Refused]] = defaultdict(dict)  # by pod: each counts once
    for each in made.refused:
        by_reason[each.refusal.reason].setdefault(each.pod.uid, each)
    pods = made.refused_pods()
    failures = {each.plugin: each.problem[:SENTENCE] for each in made.failures}
    outcome = RunOutcome.FAILED if failures else RunOutcome.SUCCEEDED
    status = SchedulingPolicyStatus(
        last_run=LastRun(
            start_time=datetime.fromtimestamp(totals.started, UTC),
            completion_time=None if completed is None else datetime.fromtimestamp(completed, UTC),
            mode=totals.spec.mode,
            result=None if completed is None else outcome,
            message=_story(_counted(totals), made),
            optimisation=optimisation_status(made.optimisation),
            load=load_status(made.load, made.hot),
            failures=tuple(StrategyFailure(name=name, message=said) for name, said in failures.items()),
        ),
        next_run_time=next_run,
        counts=RunCounts(
            considered=made.considered,
            refused=tuple(
                RefusalExample(
                    reason=reason,
                    count=pods[reason],
                    message=next(iter(found.values())).refusal.message[:SENTENCE],
                    examples=examples(found.values()),
                )
                for reason, found in sorted(by_reason.items(), key=lambda one: (-pods[one[0]], one[0]))[:100]
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
    """The message about a run: the counts, then failures and remarks of strategies."""
    said = [sentence_of(each) for each in made.failures]
    said += [f"{strategy}: {remark}" for strategy, remark in made.remarks]
    return "; ".join([counts, *dict.fromkeys(said)])[:STORY]


def load_status(found: LoadSummary | None, hot: Sequence[str]) -> RunLoad | None:
    """The status of the nodes' load in a run."""
    if found is None:
        return None
    return RunLoad(
        hot_nodes=len(hot),
        hot_examples=tuple(hot[:EXAMPLES]),
        resources=tuple(
            ResourceLoad(
                resource=resource,
                mean_percent=round(100 * found.mean[resource], 1),
                spread_points=round(100 * found.spread[resource], 1),
                hottest_percent=round(100 * found.highest[resource], 1),
                hottest_node=found.hottest[resource],
            )
            for resource in RESOURCES
            if resource in found.mean
        ),
        left_out=tuple(
            LoadLeftOut(reason=reason, nodes=len(names), examples=names[:EXAMPLES])
            for state, reason in _LEFT_OUT.items()
            if (names := found.left_out.get(state, ()))
        ),
    )
