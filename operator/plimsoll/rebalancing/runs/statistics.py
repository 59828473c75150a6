"""Statistics of rebalancing runs: due times, successes, and findings of the latest run.

They are kept by policy, read at each scrape of the metrics, and dropped with the policy.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.planning.moves import EvictionPlan, RebalancingConfig
from plimsoll.planning.strategy_run import TIMER, StrategyTimer
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.runs.status import RunResult

#: Phases in which a move has begun and not ended.
IN_FLIGHT = frozenset((Phase.EVICTING, Phase.EVICTED, Phase.SURGING))

#: Results of runs that came to their end.
_COMPLETED = frozenset((RunResult.SUCCEEDED, RunResult.FAILED))


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What is known of a policy's runs; moments are seconds since the epoch.

    Attributes:
        next_run: When the next one begins.
        due: When the earliest run was or is due that has not come to its end.
        last_success: When the latest one ended that succeeded; None when none has in this process.
        in_flight: Moves that have begun and not ended.
        imbalance: In percentage points by resource and kind of usage, as the latest run found it.
        violations: Pods that the strategies complained about in the latest run, by strategy.
        hot: Nodes that it found over-used by load; None where no strategy moves pods by load.
        hot_s: Seconds that nodes were, from one run that found them so to the next one.
    """

    next_run: float
    due: float
    last_success: float | None
    in_flight: int
    imbalance: Mapping[tuple[str, str], float]
    violations: Mapping[str, int]
    hot: int | None = None
    hot_s: float = 0.0


@dataclass(slots=True)
class _Runs:
    """The runs of one policy so far."""

    due: float | None = None
    began: float = 0.0  #: of the monotonic clock
    last_success: float | None = None
    imbalance: Mapping[tuple[str, str], float] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)
    hot: tuple[frozenset[str], float] | None = None  #: nodes, and when they were found; monotonic clock
    hot_s: float = 0.0


@dataclass(eq=False)
class RunStatistics:
    """Remembers the runs of all policies, and reports them and their strategies to the observer."""

    policies: Iterable[str]  #: names of those that rebalance, at any moment
    next_run: Callable[[str], datetime | None]  #: when a policy runs next; None when it does not
    unfinished: Callable[[], Iterable[Record]]  #: the records of moves that have not ended, of all policies
    clock: Clock
    observer: Observer  #: receives durations and counts
    _runs: dict[str, _Runs] = field(default_factory=dict, init=False)

    def fell_due(self, policy: str) -> float:
        """Record that the timetable has started a run, which may still have to wait; the time."""
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
        """Report a run that was due while the one before it was under way."""
        self.observer.run_finished(policy, RunResult.SKIPPED.value, 0.0)

    def finished(self, policy: str, result: RunResult) -> None:
        """Record how a run ended; one that did not complete is still due."""
        runs = self._runs.setdefault(policy, _Runs())
        if result in _COMPLETED:
            runs.due = None
        if result is RunResult.SUCCEEDED:
            runs.last_success = self.clock.now()
        self.observer.run_finished(policy, result.value, self.clock.monotonic() - runs.began)

    @contextmanager
    def strategies(self, policy: str) -> Iterator[None]:
        """Time the strategies of a plan that is made inside; a plan that is not ready reports none."""
        timer = StrategyTimer(self.clock.monotonic)
        outer = TIMER.set(timer)
        try:
            yield
        finally:
            TIMER.reset(outer)
        for strategy, seconds in timer.seconds.items():
            self.observer.strategy_ended(policy, strategy, seconds)

    def planned(self, policy: str, rebalancing: RebalancingConfig, plan: EvictionPlan) -> None:
        """Keep what a plan says about the cluster; a strategy that complains about no pod counts 0."""
        runs = self._runs.setdefault(policy, _Runs())
        runs.imbalance, before, now = plan.imbalance, runs.hot, self.clock.monotonic()
        runs.hot = None if plan.load is None else (frozenset(plan.hot), now)
        if before is not None and runs.hot is not None:
            runs.hot_s += len(before[0] & runs.hot[0]) * (now - before[1])
        runs.violations = {each.name: 0 for each in rebalancing.strategies} | plan.violations()
        self.observer.run_ended(policy, plan.considered, len(plan.moves), plan.refused_by_reason())
        for failure in plan.failures:
            self.observer.plugin_failed(failure.plugin, failure.point, failure.problem)

    def forget(self, policy: str) -> None:
        """The policy rebalances no longer."""
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
