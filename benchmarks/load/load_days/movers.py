"""Movers evict pods by load: the planners of the product, and Koordinator's formula.

Each decides from the readings that have arrived. The limits are the same for all: five moves a run, two of
one node, one of a workload.
"""

import random
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np

from load_days.measures import Tally
from load_days.readings import History, Readings
from load_days.score_plugins import mean_over
from load_days.world import DAWN, Tenant, World
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework.descheduling.measurements import Measurements, Planner, Sample
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Taint
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, Goal, Move, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import ask_again, make_plan
from plimsoll.ports.observer import Observer
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.records.over_used_rounds import OverUsedRounds
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.fakes import FakeMeter
from plimsoll.usage.load_feed import LoadFeed
from plimsoll.usage.queried_sources import QueriedSources
from plimsoll.usage.sources import UsageCollector

T = TypeVar("T")

TOTAL, PER_NODE, PER_WORKLOAD = 5, 2, 1

LIMITS = Limits(
    total=Ceiling(count=TOTAL), per_node=Ceiling(count=PER_NODE), per_workload=Ceiling(count=PER_WORKLOAD)
)

#: Seconds in which a replacement is not moved by planners of ours, as the operator has it.
SETTLED_S = 3_600.0


class Mover(Protocol):
    """Evicts pods."""

    def learn(self, found: Readings) -> None:
        """A reading has arrived."""

    def decide(self, tally: Tally) -> None:
        """Evict what should go now; :meth:`Tally.moved` hears of each pod before it does."""


class NoMoves:
    """Evicts nothing."""

    def learn(self, found: Readings) -> None:
        """Of no use."""

    def decide(self, tally: Tally) -> None:
        """Nothing goes."""


def now_or_never(steps: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    steps.close()
    raise RuntimeError("the coroutine waited")


@dataclass(slots=True)
class ReplayedApi:
    """A metrics API and a clock, for the product's collector: the latest readings, in virtual time."""

    world: World
    latest: Readings | None = None

    def now(self) -> float:
        """Virtual seconds since the epoch."""
        return DAWN + self.world.now

    def monotonic(self) -> float:
        """The same."""
        return self.now()

    async def sleep(self, seconds: float) -> None:
        """No time passes here."""

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Of every node that was measured."""
        found = self.latest
        if found is None:
            return WriteResult(WriteOutcome.DONE), []
        amounts = zip(found.node_cpu.tolist(), found.node_memory.tolist(), strict=True)
        return WriteResult(WriteOutcome.DONE), [
            UsageReading(self.world.names[number], _billionths(cpu, memory), DAWN + found.taken)
            for number, (cpu, memory) in enumerate(amounts)
            if cpu == cpu  # noqa: PLR0124 - not NaN
        ]

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Of every pod that was measured."""
        found = self.latest
        if found is None:
            return WriteResult(WriteOutcome.DONE), []
        rows = zip(found.slots.tolist(), found.cpu.tolist(), found.memory.tolist(), strict=True)
        return WriteResult(WriteOutcome.DONE), [
            UsageReading(self.world.by_slot[slot].info.key, _billionths(cpu, memory), DAWN + found.taken)
            for slot, cpu, memory in rows
        ]

    async def query(self, url: str, promql: str) -> tuple[WriteResult, Sequence[Sample]]:
        """Nothing asks."""
        return WriteResult(WriteOutcome.GONE), []


def _billionths(cpu: float, memory: float) -> Mapping[str, int]:
    return {"cpu": round(cpu * 10**6), "memory": round(memory) * 10**9}


def a_collector(api: ReplayedApi) -> UsageCollector:
    """The operator's collector; the load book that its feed keeps is of no cluster."""
    cluster = Cluster()
    feed = LoadFeed(api, cluster, api)
    sources = QueriedSources(FakeMeter(), cluster, {}, feed, api, Observer())
    return UsageCollector(feed, sources, api, {})


def low_node_utilization(low: float, high: float, *, deviation: bool = False) -> dict[str, Any]:
    """Arguments of LowNodeUtilization by the metrics API."""
    return {
        "thresholds": {"cpu": low},
        "targetThresholds": {"cpu": high},
        "useDeviationThresholds": deviation,
        "metricsUtilization": {"source": "KubernetesMetrics"},
    }


@dataclass(slots=True)
class PlannedMoves:
    """A policy of ours: real strategies, the real planner, the records of the last hour as memory.

    Attributes:
        taints: Whether over-used nodes get a soft taint after each run, and lose it.
        touched: Whether nodes that moves touched are unread until a newer reading, as the operator has it.
    """

    world: World
    profiles: Mapping[str, Profile]
    strategies: Sequence[tuple[str, Mapping[str, Any]]]
    planner: Planner
    goal: Goal = field(default_factory=Goal)
    anomaly_rounds: int = 1
    taints: bool = False
    touched: bool = True
    api: ReplayedApi = field(init=False)
    collector: UsageCollector = field(init=False)
    config: RebalancingConfig = field(init=False)
    _spec: RebalancingSpec = field(init=False)
    _past: list[PastMove] = field(default_factory=list, init=False)
    _over: OverUsedRounds = field(default_factory=OverUsedRounds, init=False)
    _moved: dict[str, float] = field(default_factory=dict, init=False)
    _touched: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        registry = StrategyRegistry(IN_TREE)
        self.api = ReplayedApi(self.world)
        self.collector = a_collector(self.api)
        self.config = RebalancingConfig(
            strategies=[registry.build(name, dict(args), name) for name, args in self.strategies],
            evictors=(EvictorRegistry(EVICTORS).build("DefaultEvictor", {}, "evictor"),),
            profiles=self.profiles,
            limits=LIMITS,
            planner=self.planner,
            goal=self.goal,
            anomaly_rounds=self.anomaly_rounds,
        )
        self._spec = RebalancingSpec.model_validate(
            {"strategies": [{"name": name, "args": dict(args)} for name, args in self.strategies]}
        )

    def learn(self, found: Readings) -> None:
        """Let the collector read."""
        self.api.latest = found
        self.measure()

    def measure(self) -> Measurements:
        """What the operator's collector makes of the readings; planners by the load book ask for nothing."""
        if self.planner is not Planner.UPSTREAM:
            return Measurements()
        return now_or_never(self.collector.measure(self._spec, {}, self._touched if self.touched else {}))

    def decide(self, tally: Tally) -> None:
        """Plan, and evict."""
        world, context = self.world, self._context()
        made = make_plan(self.config, world.cluster, context)
        for failure in made.failures:
            if not isinstance(failure.__cause__, CannotJudgeError):
                raise failure
            tally.reasons["CannotJudge"] += 1  # planner Upstream stops where a node is not measured
        self._over.learn(made.classes, self.config.strategies, world.cluster)
        tally.reasons.update(made.refused_by_reason())
        for move in made.moves:
            present = ask_again(move, self.config, world.cluster, context)
            if isinstance(present, Move):
                self._carry_out(present, tally)
        if self.taints:
            self._taint(made)

    def _carry_out(self, move: Move, tally: Tally) -> None:
        world = self.world
        gone = world.tenants[move.pod.uid]
        tally.moved(gone)
        heir = world.evict(move.pod.uid, "" if move.is_forecast else move.target)
        world.place_waiting()
        self._moved[heir.info.uid] = world.now
        self._touched[move.source] = DAWN + world.now
        if heir.node < 0:
            fate = MoveOutcome.STRANDED
        else:
            self._touched[world.names[heir.node]] = DAWN + world.now
            fate = MoveOutcome.RETURNED if heir.node == heir.heir_of else MoveOutcome.SETTLED
        self._past.append(
            PastMove(
                "policy",
                move.strategy,
                move.workload.key,
                move.workload.name,
                move.source,
                fate,
                DAWN + world.now,
                target="" if heir.node < 0 else world.names[heir.node],
            )
        )

    def _context(self) -> PlanningContext:
        world, now = self.world, DAWN + self.world.now
        self._touched = {name: at for name, at in self._touched.items() if now - at < SETTLED_S}
        self._past = [each for each in self._past if now - each.ended < 86_400.0]
        return PlanningContext(
            now=world.moment(),
            unplaced=tuple(each.info for each in world.waiting.values()),
            measurements=self.measure(),
            memory=MoveHistory(self._past, now),
            over_for=self._over.before(self.config.strategies, world.cluster),
            touched=self._touched,
            moved=frozenset(uid for uid, at in self._moved.items() if world.now - at < SETTLED_S),
        )

    def _taint(self, made: EvictionPlan) -> None:
        """Exactly the over-used nodes have the soft taint."""
        cluster = self.world.cluster
        hot = {node for _, found in made.classes for node in found.overutilized}
        taint = Taint(key="nodeutilization.descheduler.io/overutilized", effect="PreferNoSchedule")
        for node in list(cluster.nodes):
            wanted = (taint,) if node.name in hot else ()
            if tuple(node.spec.taints) != wanted:
                spec = msgspec.structs.replace(node.spec, taints=wanted)
                cluster.set_node(msgspec.structs.replace(node, spec=spec))


@dataclass(slots=True)
class LowNodeLoad:
    """Koordinator's LowNodeLoad with reservation first: a place is held before the pod goes.

    Five-minute means; a node is high above ``high`` in more than five rounds, low up to ``low``; by
    ``deviation`` these are distances from the mean. It goes on while the node is above the line and the low
    nodes have room below theirs; the pods with the most use first. A pod whose best node is its own stays.

    Source: Koordinator ``pkg/descheduler/framework/plugins/loadaware`` at a7a1b76b.
    """

    world: World
    history: History
    profile: Profile
    low: float
    high: float
    deviation: bool = False
    rounds: int = 6
    _over: Counter[int] = field(default_factory=Counter, init=False)
    _in_flight: dict[str, float] = field(default_factory=dict, init=False)

    def learn(self, found: Readings) -> None:
        """The history has it."""

    def decide(self, tally: Tally) -> None:
        """Move pods off nodes that have been high for long enough."""
        world, history = self.world, self.history
        if not history.heard or world.now - history.taken > 180.0:
            return
        shares = 100 * mean_over(history, 300.0) / world.traces.node_cpu
        known = [number for number in world.numbers.tolist() if shares[number] == shares[number]]
        mean = float(np.mean(shares[known])) if known else 0.0
        low, high = (mean - self.low, mean + self.high) if self.deviation else (self.low, self.high)
        low_nodes = {number for number in known if shares[number] <= low}
        for number in known:
            if shares[number] > high:
                self._over[number] += 1
            elif number in low_nodes:
                del self._over[number]
        hot = [number for number in known if shares[number] > high and self._over[number] >= self.rounds]
        if not low_nodes or len(low_nodes) == len(known):
            return
        room = sum((high - shares[number]) for number in low_nodes) * world.traces.node_cpu / 100
        taken = 0
        for number in sorted(hot, key=lambda each: -shares[each]):
            used, here, owners = shares[number] * world.traces.node_cpu / 100, 0, set[str]()
            for tenant in self._pods_of(number):
                amount = float(history.pod_cpu[tenant.slot])
                above = used > high * world.traces.node_cpu / 100
                if not above or room <= 0 or here >= PER_NODE or taken >= TOTAL:
                    break
                fits = any(
                    shares[target] + 100 * amount / world.traces.node_cpu <= high for target in low_nodes
                )
                if tenant.owner in owners or not fits or not self._migrate(tenant, tally):
                    continue
                owners.add(tenant.owner)
                used, room, here, taken = used - amount, room - amount, here + 1, taken + 1

    def _pods_of(self, number: int) -> list[Tenant]:
        """Those that are measured, the largest use first."""
        slots = self.world.running
        slots = slots[(self.world.node_of[slots] == number)]
        cpu, _ = self.history.use_of(slots)
        order = np.argsort(-cpu)
        return [self.world.by_slot[slots[at]] for at in order.tolist() if cpu[at] == cpu[at]]  # not NaN

    def _migrate(self, tenant: Tenant, tally: Tally) -> bool:
        """Reserve a place by the profile while the pod is still there; then it goes to that place."""
        world = self.world
        scheduler = ProfileScheduler(
            self.profile, world.cluster, choose=random.Random(int(world.now)).randrange
        )
        decision = schedule(scheduler, world.pending_twin(tenant))
        if decision.outcome is not AttemptOutcome.SCHEDULED or decision.node == world.names[tenant.node]:
            return False
        tally.moved(tenant)
        world.evict(tenant.info.uid, decision.node)
        world.place_waiting()
        return True
