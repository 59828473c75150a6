"""Replays a cluster in virtual time: arrivals, scheduling, runs of policies, replacements, ends of pods.

The engine and the planners decide. An event heap orders events; equal input gives equal output. Of
simultaneous events, pods end first, then pods arrive, then policies run, the oldest policy first.
"""

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from math import inf, isnan, nan

import msgspec

from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.inspection.placement.fit import schedulers_of
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.offline.cluster import OfflineCluster
from plimsoll.planning import context
from plimsoll.planning.context import RATE_S, PlanningFacts, SentMove, under_way
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove, UnreadyReplacement
from plimsoll.planning.moves import (
    EvictionPlan,
    HoldReason,
    Move,
    PlanningContext,
    RebalancingConfig,
    standing,
    workload_of,
)
from plimsoll.planning.planners import make_plan
from plimsoll.planning.rebalancing_rules import HOUR_S
from plimsoll.planning.surges import Deployments
from plimsoll.policies.schedule import FIRST_RUN, next_time
from plimsoll.records.over_used_rounds import OverUsedRounds
from plimsoll.simulation.figures import Figures, sample
from plimsoll.simulation.owners import Budgets, replacement
from plimsoll.simulation.refusals import count_end, count_run
from plimsoll.snapshots.saved_fields import DURATION

#: Number of utilisation samples after the first one.
SAMPLES = 24

#: Seconds after which a replacement without a node is late.
LATE_S = 300.0


class EventKind(IntEnum):
    """Events; the values are the order of simultaneous events."""

    END = 0
    LATE = 1
    ARRIVAL = 2
    RUN = 3
    SAMPLE = 4


class _Awaited(msgspec.Struct):
    """A move whose replacement has no node yet; one that is late has failed."""

    policy: str
    move: Move
    sent: float
    is_late: bool = False


class ReplaySettings(msgspec.Struct, frozen=True):
    """Settings of a replay.

    Attributes:
        seconds: Duration in virtual time.
        seed: Seed of the scheduler's choice among equally good nodes.
        enforce: Whether to carry out moves of policies in mode DryRun, too.
    """

    seconds: float
    seed: int = 0
    enforce: bool = False


#: Called with the elapsed virtual seconds.
ReplayProgress = Callable[[float], None]


def _silent(_seconds: float) -> None:
    """Ignore progress."""


@dataclass(slots=True)
class Replay:
    """One replay of a state; call :meth:`run` once."""

    state: ClusterState
    setting: ReplaySettings
    figures: Figures = field(default_factory=Figures)
    world: OfflineCluster = field(init=False)
    _budgets: Budgets = field(init=False)
    _heap: list[tuple[float, EventKind, int, str]] = field(default_factory=list, init=False)
    _pushed: int = field(default=0, init=False)
    _now: float = field(default=0.0, init=False)
    _coming: dict[str, PodInfo] = field(default_factory=dict, init=False)
    _awaited: dict[str, _Awaited] = field(default_factory=dict, init=False)
    _budget_of: dict[str, str] = field(default_factory=dict, init=False)
    _past: list[PastMove] = field(default_factory=list, init=False)
    _sent: list[tuple[float, str, str]] = field(default_factory=list, init=False)
    _moves: list[SentMove] = field(default_factory=list, init=False)
    #: when a pod of a workload was first moved, by workload key; finished moves only
    _replaced: dict[str, float] = field(default_factory=dict, init=False)
    _over: defaultdict[str, OverUsedRounds] = field(
        default_factory=lambda: defaultdict(OverUsedRounds), init=False
    )

    def __post_init__(self) -> None:
        self._now = self.state.now
        self.world = OfflineCluster(
            self.state.cluster.fork(),
            schedulers_of(self.state, {}),
            # open moves of the snapshot are not replayed
            ((pod, node) for pod, node in self.state.book.nominator.entries() if pod.stands_in_for is None),
            preempting=True,
            now=self._now,
            ties=self._ties,
            left=self._preempted,
        )
        self._budgets = Budgets(self.world.fork.objects)
        for pod in self.state.objects.pending.infos():
            if pod.pod.is_terminal:
                self.world.ended[pod.uid] = pod
            else:
                self._expect(pod)
        for pod in self.world.fork.pods.values():
            self._set_end(pod, pod.pod.status.start_time)
        for name in self.state.working:
            self._set_run(name, first=True)
        for number in range(SAMPLES + 1):
            self._push(self.state.now + self.setting.seconds * number / SAMPLES, EventKind.SAMPLE, "")

    def run(self, progress: ReplayProgress = _silent) -> Figures:
        """Run the replay."""
        end = self.state.now + self.setting.seconds
        while self._heap and self._heap[0][0] <= end:
            self._now = self.world.now = self._heap[0][0]
            progress(self._now - self.state.now)
            has_changed = False
            while self._heap and self._heap[0][0] == self._now and self._heap[0][1] < EventKind.RUN:
                _, kind, _, subject = heapq.heappop(self._heap)
                self._happen(kind, subject)
                has_changed = True
            if has_changed:
                self._schedule()
            while self._heap and self._heap[0][0] == self._now and self._heap[0][1] >= EventKind.RUN:
                _, kind, _, subject = heapq.heappop(self._heap)
                self._happen(kind, subject)
        self._now = self.world.now = end
        for name in self.state.working:
            plan = self._plan(name, *self._circumstances(name))
            self._complain(name, plan, self.figures.remaining)
            count_end(name, plan, self.figures.refused)
        return self.figures

    def reasons(self) -> dict[str, list[str]]:
        """Pods without a node, grouped by reason; both in the order in which they began to wait."""
        found: dict[str, list[str]] = {}
        for pod in self.world.waiting.values():
            found.setdefault(self._reason(pod), []).append(pod.key)
        return found

    def _reason(self, pod: PodInfo) -> str:
        refusal = self.world.refusals.get(pod.uid)
        return "not tried yet" if refusal is None else refusal.message

    # -- events --------------------------------------------------------------------------------------

    def _push(self, at: float, kind: EventKind, subject: str) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (at, kind, self._pushed, subject))

    def _happen(self, kind: EventKind, subject: str) -> None:
        match kind:
            case EventKind.END:
                self.figures.ended += self.world.remove(subject) is not None
            case EventKind.LATE:
                awaited = self._awaited.get(subject)
                if awaited is not None:
                    self.figures.late += 1
                    awaited.is_late = True
                    self._finish(awaited, MoveOutcome.STRANDED, subject)
            case EventKind.ARRIVAL:
                self.figures.arrived += 1
                self.world.add(self._coming.pop(subject))
            case EventKind.RUN:
                self._rebalance(subject)
                self._set_run(subject)
            case EventKind.SAMPLE:
                evicted = self.figures.moved.total()
                at = self._now - self.state.now
                self.figures.samples.append(sample(self.world, at, evicted))

    def _expect(self, pod: PodInfo) -> None:
        """Schedule a pending pod's arrival, at its creation time or at the start."""
        created = pod.pod.metadata.creation_timestamp
        at = self.state.now if created is None else created.timestamp()
        self._coming[pod.uid] = pod
        self._push(max(at, self.state.now), EventKind.ARRIVAL, pod.uid)

    def _set_end(self, pod: PodInfo, started: datetime | None) -> None:
        said = pod.pod.metadata.annotations.get(DURATION)
        if said is None:
            return
        try:
            seconds = float(said)
        except ValueError:
            seconds = nan
        if isnan(seconds):
            self.figures.problems[f"{pod.key}: {DURATION} is no number of seconds"] = None
            return
        began = self._now if started is None else started.timestamp()
        if seconds < inf:
            self._push(max(began + max(0.0, seconds), self._now), EventKind.END, pod.uid)

    def _set_run(self, name: str, *, first: bool = False) -> None:
        rebalancing = self.state.working[name].spec.rebalancing or RebalancingSpec()
        now = datetime.fromtimestamp(self._now, UTC)
        if first and rebalancing.schedule.interval_seconds is not None:
            due: datetime | None = now + FIRST_RUN
        else:
            due = next_time(rebalancing.schedule, now)
        if due is not None:
            self._push(due.timestamp(), EventKind.RUN, name)

    # -- pods ----------------------------------------------------------------------------------------

    def _ties(self, name: str) -> Callable[[int], int]:
        """The choice among equally good nodes for a scheduler."""
        return random.Random(f"{self.setting.seed}/{name}").randrange  # noqa: S311 - reproducible, no secret

    def _schedule(self) -> None:
        for each in self.world.settle():
            self._placed(each.pod, each.node, each.waited)

    def _placed(self, pod: PodInfo, node: str, waited: float) -> None:
        self.figures.waits.append(waited)
        self.figures.placements.append((pod.uid, node))
        self._set_end(pod, None)
        self._budgets.count_missing(self._budget_of.pop(pod.uid, ""), -1)
        awaited = self._awaited.pop(pod.uid, None)
        if awaited is None:
            return
        returned = node == awaited.move.source
        self.figures.returned += returned
        if not awaited.is_late:
            fate = MoveOutcome.RETURNED if returned else MoveOutcome.SETTLED
            self._finish(awaited, fate, "" if returned else pod.uid, node)

    def _preempted(self, victim: PodInfo) -> None:
        self.figures.preempted += 1
        self._replace(victim)

    def _replace(self, pod: PodInfo) -> PodInfo | None:
        """Let the owner replace a pod that has left."""
        made = replacement(pod, self.figures.replaced + 1, self._now)
        if made is None:
            return None
        self.figures.replaced += 1
        info = self.world.fork.templates.info(made)
        self.world.add(info)
        return info

    # -- runs ----------------------------------------------------------------------------------------

    def _rebalance(self, name: str) -> None:
        wanted, cluster, around = self._circumstances(name)
        plan = self._plan(name, wanted, cluster, around)
        if not self.figures.runs[name]:
            self._complain(name, plan, self.figures.violations)
        self.figures.runs[name] += 1
        count_run(name, plan, self.figures.refused)
        self._over[name].learn(plan.classes, wanted.strategies, cluster)
        spec = self.state.working[name].spec.rebalancing or RebalancingSpec()
        if spec.mode is Mode.DRY_RUN and not self.setting.enforce:
            self.figures.predicted.update((name, move.strategy) for move in plan.moves)
            return
        for move in plan.moves:
            self._make(name, move)

    def _make(self, policy: str, move: Move) -> None:
        """Evict the pod, let its owner replace it, and place waiting pods."""
        if not self._budgets.may_disrupt(move.budget):
            self.figures.blocked += 1
            self._remember(_Awaited(policy, move, self._now), MoveOutcome.BLOCKED)
            return
        if move.waits and under_way(self._sent_moves())[move.workload.key]:
            return
        left = self.world.remove(move.pod.uid)
        if left is None:
            return
        self.figures.moved[policy, move.strategy] += 1
        self._sent.append((self._now, policy, move.pod.namespace))
        made = self._replace(left)
        if made is not None:
            self._awaited[made.uid] = _Awaited(policy, move, self._now)
            self._budget_of[made.uid] = move.budget
            self._budgets.count_missing(move.budget, 1)
            self._push(self._now + LATE_S, EventKind.LATE, made.uid)
            if move.is_directed and move.target:
                self.world.nominator.add(made, move.target)
        for served in move.beneficiary.all if move.beneficiary is not None else ():
            if served.pod.uid in self.world.waiting:
                self.world.nominator.add(served.pod, served.node)
        self._schedule()

    def _remember(self, awaited: _Awaited, fate: MoveOutcome) -> None:
        move = awaited.move
        self._past.append(
            PastMove(
                awaited.policy,
                move.strategy,
                move.workload.key,
                move.workload.name,
                move.source,
                fate,
                self._now,
                move.budget if fate is MoveOutcome.BLOCKED else "",
            )
        )

    def _finish(self, awaited: _Awaited, fate: MoveOutcome, replacement: str, node: str = "") -> None:
        """Remember a move that has ended; a replacement on another node is left alone for a while."""
        move = awaited.move
        self._remember(awaited, fate)
        self._replaced.setdefault(move.workload.key, awaited.sent)
        self._moves.append(SentMove(move.workload.key, _nodes(move, node), self._now, replacement))

    def _sent_moves(self) -> list[SentMove]:
        """The moves that were made, finished or not."""
        waiting = [each.move for each in self._awaited.values() if not each.is_late]
        return [*self._moves, *(SentMove(each.workload.key, _nodes(each)) for each in waiting)]

    def _unready(self) -> dict[str, UnreadyReplacement]:
        """By workload key, the first pod without a node that was made after a finished move of its owner."""
        found: dict[str, UnreadyReplacement] = {}
        for pod in self.world.waiting.values():
            key, awaited = workload_of(pod).key, self._awaited.get(pod.uid)
            is_followed = awaited is not None and not awaited.is_late
            if self.world.since(pod.uid) >= self._replaced.get(key, float("inf")) and not is_followed:
                found.setdefault(key, UnreadyReplacement(pod.uid, pod.key, self._reason(pod), ""))
        return found

    def _circumstances(self, name: str) -> tuple[RebalancingConfig, Cluster, PlanningContext]:
        """The input of a policy's plan now: configuration, cluster and planning context."""
        moment = datetime.fromtimestamp(self._now, UTC)
        memory = MoveHistory(self._past, self._now)
        wanted = self._configured(name, moment).rested(memory, name)
        cluster, moves = self.world.nominator.claimed(self.world.fork), self._sent_moves()
        facts = PlanningFacts(
            now=self._now,
            unplaced=self.world.unplaced(),
            served=(),  # reserved room is taken before the next run begins
            moves=moves,
            in_flight=under_way(moves),
            followed=frozenset(uid for uid, each in self._awaited.items() if not each.is_late),
            moving=frozenset(),  # planned moves are made immediately
            memory=memory,
            recent=sum(1 for at, policy, _ in self._sent if policy == name and at > self._now - RATE_S),
            hourly=Counter(namespace for at, _, namespace in self._sent if at > self._now - HOUR_S),
            unready=self._unready(),
            gangs=self.world.gang_needs(),
            over_for=self._over[name].before(wanted.strategies, cluster),
            others={
                other: self._configured(other, moment)
                for other, policy in self.state.working.items()
                if other != name
                and policy.spec.rebalancing is not None
                and (self.setting.enforce or policy.spec.rebalancing.mode is not Mode.DRY_RUN)
            },
            measurements=Measurements(problem="actual usage is not replayed"),
            deployments=Deployments(problem="surges are not replayed"),
            monotonic=standing,
        )
        return wanted, cluster, context.of(facts)

    def _plan(
        self, name: str, wanted: RebalancingConfig, cluster: Cluster, around: PlanningContext
    ) -> EvictionPlan:
        plan = make_plan(wanted, cluster, around)
        for failure in plan.failures:
            self.figures.problems[f"{name}: {failure}"] = None
        return plan

    def _configured(self, name: str, moment: datetime) -> RebalancingConfig:
        wanted = self.state.catalogue.rebalancing(
            self.state.working[name],
            self.state.profiles,
            self.world.fork.objects,
            moment,
            self.state.forecasts,
        )
        return wanted.held(HoldReason.STOPPED, self.state.stop) if self.state.stop else wanted

    @staticmethod
    def _complain(name: str, plan: EvictionPlan, into: dict[tuple[str, str], int]) -> None:
        into.update({(name, strategy): count for strategy, count in plan.violations().items()})


def _nodes(move: Move, *landed: str) -> tuple[str, ...]:
    """The nodes of a move, as far as they are known."""
    return tuple(filter(None, (move.source, move.target, *landed)))
