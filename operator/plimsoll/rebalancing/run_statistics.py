"""Statistics of rebalancing runs: due times, successes, and findings of the latest run.

They are kept by policy, read at each scrape of the metrics, and dropped with the policy. The durations of
strategies go to the observer.
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
from plimsoll.rebalancing.run_result import RunResult

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
    """

    next_run: float
    due: float
    last_success: float | None
    in_flight: int
    imbalance: Mapping[tuple[str, str], float]
    violations: Mapping[str, int]


@dataclass(slots=True)
class _Runs:
    """The runs of one policy so far."""

    due: float | None = None
    last_success: float | None = None
    imbalance: Mapping[tuple[str, str], float] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)


class RunStatistics:
    """Remembers the runs of all policies, and times their strategies.

    Args:
        policies: Names of those that rebalance, at any moment.
        next_run: When a policy runs next; None when it does not.
        unfinished: The records of moves that have not ended, of all policies.
        clock: Time.
        observer: Receives the durations of strategies.
    """

    def __init__(
        self,
        policies: Iterable[str],
        next_run: Callable[[str], datetime | None],
        unfinished: Callable[[], Iterable[Record]],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._next_run = next_run
        self._unfinished = unfinished
        self._clock = clock
        self._observer = observer
        self._runs: dict[str, _Runs] = {}

    def fell_due(self, policy: str) -> None:
        """Record that the timetable has started a run, which may still have to wait."""
        runs = self._runs.setdefault(policy, _Runs())
        if runs.due is None:
            runs.due = self._clock.now()

    def finished(self, policy: str, result: RunResult) -> None:
        """Record how a run ended; one that did not come to its end is still due."""
        runs = self._runs.setdefault(policy, _Runs())
        if result in _COMPLETED:
            runs.due = None
        if result is RunResult.SUCCEEDED:
            runs.last_success = self._clock.now()

    @contextmanager
    def strategies(self, policy: str) -> Iterator[None]:
        """Time the strategies of a plan that is made inside; nothing is told of a plan that is not ready."""
        timer = StrategyTimer(self._clock.monotonic)
        outer = TIMER.set(timer)
        try:
            yield
        finally:
            TIMER.reset(outer)
        for strategy, seconds in timer.seconds.items():
            self._observer.strategy_ended(policy, strategy, seconds)

    def planned(self, policy: str, rebalancing: RebalancingConfig, plan: EvictionPlan) -> None:
        """Keep what a plan says about the cluster; a strategy that complains about no pod counts 0."""
        runs = self._runs.setdefault(policy, _Runs())
        runs.imbalance = plan.imbalance
        runs.violations = {each.name: 0 for each in rebalancing.strategies} | plan.violations()

    def forget(self, policy: str) -> None:
        """Drop what is kept of a policy that rebalances no longer."""
        self._runs.pop(policy, None)

    def figures(self) -> Mapping[str, RunFigures]:
        """The figures of each policy that has a next run; a standby has none."""
        moves = Counter(record.spec.policy for record in self._unfinished() if record.phase in IN_FLIGHT)
        found = {}
        for policy in self._policies:
            next_run, runs = self._next_run(policy), self._runs.get(policy, _Runs())
            if next_run is None:
                continue
            found[policy] = RunFigures(
                next_run.timestamp(),
                next_run.timestamp() if runs.due is None else runs.due,
                runs.last_success,
                moves[policy],
                runs.imbalance,
                runs.violations,
            )
        return found
