"""Keeps statistics of rebalancing runs: due times, successes, and findings of the latest run.

They are kept by policy, read at each scrape of the metrics, and dropped with the policy.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import EvictionPlan, RebalancingConfig
from plimsoll.planning.strategy_run import TIMER, StrategyTimer
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.runs.status import RunResult
from plimsoll.records.record import Record

#: Phases in which a move has begun and not ended.
IN_FLIGHT = frozenset((Phase.EVICTING, Phase.EVICTED, Phase.SURGING))

#: Results of completed runs.
_COMPLETED = frozenset((RunResult.SUCCEEDED, RunResult.FAILED))


class RunFigures(msgspec.Struct, frozen=True):
    """Figures of a policy's runs; moments are seconds since the epoch.

    Attributes:
        next_run: When the next one begins.
        due: When the earliest run was or is due that has not completed.
        last_success: When the latest successful run ended; None without one in this process.
        in_flight: Moves that have begun and not ended.
        imbalance: The latest run's imbalance, in percentage points by resource and kind of usage.
        violations: Number of pods with complaints in the latest run, by strategy.
        hot: Number of nodes that it found over-used by load; None if no strategy moves pods by load.
        hot_s: Seconds for which nodes were over-used, from one such run to the next.
    """

    next_run: float
    due: float
    last_success: float | None
    in_flight: int
    imbalance: Mapping[tuple[str, str], float]
    violations: Mapping[str, int]
    hot: int | None = None
    hot_s: float = 0.0


class _Runs(msgspec.Struct):
    """The runs of one policy so far."""

    due: float | None = None
    began: float = 0.0  #: monotonic seconds
    last_success: float | None = None
    imbalance: Mapping[tuple[str, str], float] = msgspec.field(default_factory=dict)
    violations: Mapping[str, int] = msgspec.field(default_factory=dict)
    hot: tuple[frozenset[str], float] | None = None  #: nodes, and when they were found, in monotonic seconds
    hot_s: float = 0.0


@dataclass(eq=False)
class RunStatistics:
    """Records the runs of all policies, and reports them and their strategies to the observer."""

    policies: Iterable[str]  #: names of those that rebalance, at any moment
    next_run: Callable[[str], datetime | None]  #: when a policy runs next; None if it does not
    unfinished: Callable[[], Iterable[Record]]  #: the records of moves that have not ended, of all policies
    clock: Clock
    observer: Observer  #: receives durations and counts
    _runs: dict[str, _Runs] = field(default_factory=dict, init=False)

    def fell_due(self, policy: str) -> float:
        """Record that the timetable has started a run, which may have to wait; returns the time."""
        runs, now = self._runs.setdefault(policy, _Runs()), self.clock.now()
        if runs.due is None:
            runs.due = now
        return now

    def runs_within(self, seconds: float) -> bool:
        """Whether some policy runs again within that time."""
        due = [next_run for policy in self.policies if (next_run := self.next_run(policy)) is not None]
        return bool(due) and min(due).timestamp() - self.clock.now() <= seconds

    def begun(self, policy: str) -> None:
        """Record that a run has begun."""
        self._runs.setdefault(policy, _Runs()).began = self.clock.monotonic()

    def skipped(self, policy: str) -> None:
        """Report a run that was due while the earlier one was under way."""
        self.observer.run_finished(policy, RunResult.SKIPPED.value, 0.0)

    def finished(self, policy: str, result: RunResult) -> None:
        """Record a run's result; a run that did not complete is still due."""
        runs = self._runs.setdefault(policy, _Runs())
        if result in _COMPLETED:
            runs.due = None
        if result is RunResult.SUCCEEDED:
            runs.last_success = self.clock.now()
        self.observer.run_finished(policy, result.value, self.clock.monotonic() - runs.began)

    @contextmanager
    def strategies(self, policy: str) -> Iterator[None]:
        """Time the strategies of a plan within the context; a plan that fails reports none."""
        timer = StrategyTimer(self.clock.monotonic)
        outer = TIMER.set(timer)
        try:
            yield
        finally:
            TIMER.reset(outer)
        for strategy, seconds in timer.seconds.items():
            self.observer.strategy_ended(policy, strategy, seconds)

    def planned(self, policy: str, rebalancing: RebalancingConfig, plan: EvictionPlan) -> None:
        """Record a plan's findings about the cluster; a strategy without complaints counts 0."""
        runs = self._runs.setdefault(policy, _Runs())
        runs.imbalance, before, now = plan.imbalance, runs.hot, self.clock.monotonic()
        runs.hot = None if plan.load is None else (frozenset(plan.hot), now)
        if before is not None and runs.hot is not None:
            runs.hot_s += len(before[0] & runs.hot[0]) * (now - before[1])
        runs.violations = {each.name: 0 for each in rebalancing.strategies} | plan.violations()
        self.observer.run_ended(policy, plan.considered, len(plan.moves), plan.refused_pods())
        for failure in plan.failures:
            self.observer.plugin_failed(failure.plugin, failure.point, failure.problem, failure.trace)

    def forget(self, policy: str) -> None:
        """Forget a policy that no longer rebalances."""
        self._runs.pop(policy, None)

    def figures(self) -> Mapping[str, RunFigures]:
        """The figures of each policy that has a next run; a standby has none."""
        moves = Counter(record.spec.policy for record in self.unfinished() if record.phase in IN_FLIGHT)
        found = {}
        for policy in self.policies:
            next_run, runs = self.next_run(policy), self._runs.get(policy, _Runs())
            if next_run is not None:
                due = next_run.timestamp() if runs.due is None else runs.due
                found[policy] = RunFigures(
                    next_run.timestamp(),
                    due,
                    runs.last_success,
                    moves[policy],
                    runs.imbalance,
                    runs.violations,
                    None if runs.hot is None else len(runs.hot[0]),
                    runs.hot_s,
                )
        return found
