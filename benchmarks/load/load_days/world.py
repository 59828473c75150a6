"""The world: a cluster whose pods come, go, are placed by the engine, and use what the demand says.

Time is virtual. The decisions are those of ``ProfileScheduler``; a pod that is placed runs immediately. The
pods of a workload arrive together and live equally long; a pod that leaves before its end is replaced by its
owner with the same use. Nodes have numbers that stay, whatever rows they have in the cluster.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from load_days.demand import Demand, Shape
from load_days.scenarios import HOUR_S, Happening, Scenario
from load_days.traces import SAMPLE_S, SAMPLES, Batch, Floats, Traces
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod, PodStatus
from plimsoll.testing.builders import a_node, a_pod

#: When days begin, in seconds since the epoch.
DAWN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

SCHEDULER = "default-scheduler"

#: Milli-cores that the pod that is too large uses; of a node of 31,850.
TOO_LARGE_CPU = 27_000.0

#: Pods of the burst and lost nodes.
BURST, LOST = 100, 3


@dataclass(slots=True)
class Tenant:
    """A pod that lives, or wants to.

    Attributes:
        slot: In the demand.
        node: The number of its node, -1 while it waits.
        ends: When its workload ends.
        since: When it began to wait, or to run.
        heir_of: The node that its predecessor was moved off, -1 where none was.
        target: The node that is held for it, "" for none.
    """

    info: PodInfo
    owner: str
    shape: Shape
    slot: int
    ends: float
    since: float
    node: int = -1
    heir_of: int = -1
    target: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A workload that is to come.

    Attributes:
        at: When.
        ends: When its pods end.
        shapes: Of its pods.
    """

    at: float
    ends: float
    shapes: tuple[Shape, ...]

    def core_seconds(self, means: Floats, day: float) -> float:
        """Milli-cores times seconds that it uses on a day, at f = 1."""
        lasts = max(min(self.ends, day) - self.at, 0.0)
        return lasts * sum(each.cpu * float(means[each.row]) for each in self.shapes)


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod found a node."""

    at: float
    tenant: Tenant
    waited: float


@dataclass(slots=True)
class World:
    """A cluster in virtual time.

    Attributes:
        now: Seconds since the day began.
        tenants: By uid: placed and waiting ones.
        node_of: Shape (slots,): the number of each slot's node, -1 for none.
        placed_at: Shape (slots,): when it was placed.
        names: Of nodes by number, with those that are gone.
        numbers: By row of the cluster, the node's number.
        placements: Since the last look.
        heard: Readings that have arrived; pods that found no node are tried again then.
    """

    scenario: Scenario
    traces: Traces
    seed: int
    profile: Profile
    now: float = 0.0
    cluster: Cluster = field(default_factory=Cluster)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    waiting: dict[str, Tenant] = field(default_factory=dict)
    by_slot: list[Tenant] = field(default_factory=list)
    node_of: NDArray[np.intp] = field(default_factory=lambda: np.full(1024, -1, dtype=np.intp))
    placed_at: Floats = field(default_factory=lambda: np.zeros(1024))
    names: list[str] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    heard: int = 0
    demand: Demand = field(init=False)
    scheduler: ProfileScheduler = field(init=False)
    _chance: np.random.Generator = field(init=False)
    _arrivals: list[Arrival] = field(default_factory=list, init=False)
    _workloads: int = field(default=0, init=False)
    _numbers: tuple[int, NDArray[np.intp]] = field(init=False)
    _refused: dict[tuple[bytes, int], tuple[int, int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng([self.seed, 1])
        scenario = self.scenario
        self.demand = Demand(
            self.traces, 1.0, scenario.correlation, scenario.wave, scenario.grain_s, self.seed
        )
        self._numbers = -1, np.zeros(0, dtype=np.intp)
        self.scheduler = ProfileScheduler(
            self.profile, self.cluster, choose=random.Random(self.seed).randrange
        )
        for _ in range(scenario.nodes):
            self.add_node()
        self._draw()

    # -- reading -------------------------------------------------------------------------------------

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Shape (N,): the number of the node in each row."""
        if self._numbers[0] != self.cluster.epoch:
            found = np.array([int(node.name[1:]) for node in self.cluster.nodes], dtype=np.intp)
            self._numbers = self.cluster.epoch, found
        return self._numbers[1]

    @property
    def running(self) -> NDArray[np.intp]:
        """The slots of pods that have a node, ascending."""
        return np.flatnonzero(self.node_of[: self.demand.count] >= 0)

    def use(self) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Running slots, and the milli-cores and bytes that each wants now."""
        slots = self.running
        return slots, self.demand.cpu(self.now, slots), self.demand.memory(self.now, slots)

    def requested_cpu(self, slots: NDArray[np.intp]) -> Floats:
        """Milli-cores that these pods request."""
        return np.array([self.by_slot[slot].shape.cpu for slot in slots.tolist()], dtype=np.float64)

    def requested_memory(self, slots: NDArray[np.intp]) -> Floats:
        """Bytes that these pods request."""
        return np.array([self.by_slot[slot].shape.memory for slot in slots.tolist()], dtype=np.float64)

    def by_node(self, slots: NDArray[np.intp], amounts: Floats) -> Floats:
        """Sums by node number, shape (numbers,)."""
        found = np.bincount(self.node_of[slots], weights=amounts, minlength=len(self.names))
        return found.astype(np.float64)

    def moment(self) -> datetime:
        """Now, with a time zone."""
        return datetime.fromtimestamp(DAWN + self.now, UTC)

    # -- time ----------------------------------------------------------------------------------------

    def start(self, profile: Profile) -> None:
        """Place the first pods by a profile of their own, the largest first."""
        later = self.scheduler
        self.scheduler = ProfileScheduler(profile, self.cluster, choose=random.Random(self.seed).randrange)
        for tenant in sorted(self.waiting.values(), key=lambda each: -each.shape.cpu):
            self._attempt(tenant)
        self.scheduler = later
        self._refused.clear()

    def advance(self) -> None:
        """One grain of time: ends, happenings, arrivals, placements."""
        before = self.now
        self.now = before + self.scenario.grain_s
        self.demand.step(self.now)
        for uid in [uid for uid, each in self.tenants.items() if each.ends <= self.now]:
            self.remove(uid)
        for at in self._due(before):
            self._happen(at)
        while self._arrivals and self._arrivals[-1].at <= self.now:
            self._arrive(self._arrivals.pop())
        self.place_waiting()

    def place_waiting(self) -> None:
        """Try every pod that waits, in order of arrival."""
        for tenant in list(self.waiting.values()):
            self._attempt(tenant)

    # -- changes -------------------------------------------------------------------------------------

    def add_node(self) -> None:
        """A node of the usual shape."""
        name = f"n{len(self.names):03}"
        self.names.append(name)
        cpu, memory = f"{self.traces.node_cpu}m", str(self.traces.node_memory)
        self.cluster.set_node(a_node(name, cpu=cpu, memory=memory, pods=234))

    def lose_node(self, name: str) -> None:
        """It is gone; the owners of its pods replace them."""
        row = self.cluster.rows[name]
        lost = [self.tenants[pod.uid] for pod in self.cluster.pods_on(row)]
        for tenant in lost:
            self.remove(tenant.info.uid)
        self.cluster.remove_node(name)
        for tenant in lost:
            self._join(tenant.owner, tenant.shape, tenant.ends)

    def remove(self, uid: str) -> Tenant:
        """A pod ends."""
        tenant = self.tenants.pop(uid)
        self.waiting.pop(uid, None)
        self.scheduler.nominator.remove(uid)
        if tenant.node >= 0:
            self.cluster.displace(uid)
            self.node_of[tenant.slot] = -1
        return tenant

    def evict(self, uid: str, target: str = "") -> Tenant:
        """A pod goes, and its owner's replacement waits; for ``target`` where one is held for it."""
        gone = self.remove(uid)
        heir = self._join(gone.owner, gone.shape, gone.ends)
        heir.heir_of, heir.target = gone.node, target
        if target:
            self.scheduler.nominator.add(heir.info, target)
        return heir

    def pending_twin(self, tenant: Tenant) -> PodInfo:
        """The same pod as if it waited."""
        pod = self._pod(f"{tenant.owner}-{tenant.slot}", tenant.owner, tenant.shape)
        return self.cluster.templates.info(pod)

    def arrive(self, batch: Batch, ends: float | None = None, fixed: float = 0.0) -> None:
        """A workload's pods wait from now on."""
        self._arrive(
            self._arrival(batch, self.now, self.now + batch.seconds if ends is None else ends, fixed)
        )

    def _arrival(self, batch: Batch, at: float, ends: float, fixed: float = 0.0) -> Arrival:
        """How its pods use what they ask for."""
        chance, rows = self._chance, len(self.traces.cpu)
        row, offset = int(chance.integers(rows)), float(chance.uniform(0, SAMPLES))
        phase = float(np.pi * chance.integers(2))
        shapes = [
            Shape(
                row,
                offset,
                int(chance.integers(rows)),
                float(chance.uniform(0, SAMPLES)),
                batch.cpu,
                batch.memory,
                phase,
                fixed,
            )
            for _ in range(batch.replicas)
        ]
        return Arrival(at, ends, tuple(shapes))

    def _arrive(self, found: Arrival) -> None:
        self._workloads += 1
        for shape in found.shapes:
            self._join(f"w{self._workloads}", shape, found.ends)

    def _join(self, owner: str, shape: Shape, ends: float) -> Tenant:
        slot = self.demand.add(shape, 0.0)
        if slot >= len(self.node_of):
            self.node_of = np.concatenate([self.node_of, np.full(slot, -1, dtype=np.intp)])
            self.placed_at = np.concatenate([self.placed_at, np.zeros(slot)])
        pod = self._pod(f"{owner}-{slot}", owner, shape)
        tenant = Tenant(self.cluster.templates.info(pod), owner, shape, slot, ends, self.now)
        self.tenants[pod.uid] = self.waiting[pod.uid] = tenant
        self.by_slot.append(tenant)
        return tenant

    def _pod(self, name: str, owner: str, shape: Shape) -> Pod:
        return a_pod(
            name,
            owner=f"ReplicaSet/{owner}",
            labels={"app": owner},
            cpu=f"{shape.cpu}m",
            memory=str(shape.memory),
            schedulerName=SCHEDULER,
            metadata={"creationTimestamp": self.moment()},
        )

    def _attempt(self, tenant: Tenant) -> None:
        """Let the engine decide about a pod that waits; equal pods are not tried twice in vain."""
        info = tenant.info
        key, mark = (info.template.signature, info.priority), (self.cluster.tick, self.heard)
        if not tenant.target and self._refused.get(key) == mark:
            return
        decision = schedule(self.scheduler, info)
        if decision.error is not None:
            raise decision.error
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            self._refused[key] = mark
            return
        self.settle(tenant, decision.node)

    def settle(self, tenant: Tenant, node: str) -> None:
        """The pod runs on the node from now on."""
        del self.waiting[tenant.info.uid]
        self.scheduler.nominator.remove(tenant.info.uid)
        tenant.info = self.cluster.templates.info(_running(tenant.info, node, self.moment()))
        self.cluster.place(tenant.info, node)
        waited, tenant.since = self.now - tenant.since, self.now
        tenant.node = int(node[1:])
        self.node_of[tenant.slot], self.placed_at[tenant.slot] = tenant.node, self.now
        self.demand.start(tenant.slot, self.now)
        self.placements.append(Placement(self.now, tenant, waited))

    # -- what happens --------------------------------------------------------------------------------

    def _due(self, before: float) -> Iterator[str]:
        begins = self.scenario.begins * HOUR_S
        for name, at in (("first", begins), ("second", begins + 8 * HOUR_S)):
            if before < at <= self.now:
                yield name

    def _happen(self, turn: str) -> None:
        known = self.scenario.happenings
        if Happening.BURST in known:
            self.add_node()
            size = Batch(10, 1_000, 2 * 2**30, 4 * HOUR_S)
            for _ in range(BURST // size.replicas):
                self.arrive(size)
        if Happening.NODE_LOSS in known:
            for name in [node.name for node in self.cluster.nodes[:LOST]] if turn == "first" else ():
                self.lose_node(name)
            for _ in range(LOST if turn == "second" else 0):
                self.add_node()
        if Happening.TOO_LARGE in known and turn == "first":
            size = Batch(1, 8_000, 4 * 2**30, self.scenario.seconds)
            self.arrive(size, fixed=TOO_LARGE_CPU)

    def _draw(self) -> None:
        """The first pods, those that are there for long the likelier, and all arrivals of the day."""
        batches, scenario, chance = self.traces.batches, self.scenario, self._chance
        seconds = np.array([each.seconds for each in batches])
        cpu = np.array([each.cpu * each.replicas for each in batches], dtype=np.float64)
        room = scenario.requested * self.traces.node_cpu * scenario.nodes
        lasting = seconds / seconds.sum()
        taken, first = 0.0, list[Arrival]()
        while taken < room:
            which = int(chance.choice(len(batches), p=lasting))
            batch = batches[which]
            replicas = max(1, min(batch.replicas, int((room - taken) / batch.cpu)))
            if replicas * batch.cpu > room - taken + 1_000:
                replicas, batch = 1, replace(batch, cpu=1_000, memory=2 * 2**30)
            ends = float(chance.uniform(0, 1)) * batch.seconds
            first.append(self._arrival(replace(batch, replicas=replicas), 0.0, ends))
            taken += replicas * batch.cpu
        rate = room / float((cpu * seconds).mean())  # Little's law: batches a second
        at = 0.0
        while (at := at + chance.exponential(1 / rate)) < scenario.seconds:
            batch = batches[int(chance.integers(len(batches)))]
            self._arrivals.append(self._arrival(batch, at, at + batch.seconds))
        day, means = scenario.seconds, self.demand.cpu_means
        wanted = sum(each.core_seconds(means, day) for each in (*first, *self._arrivals))
        self.demand.factor = scenario.mean * scenario.nodes * self.traces.node_cpu * day / wanted
        self._arrivals.reverse()
        for each in first:
            self._arrive(each)


def future(world: World, slot: int, ends: float) -> Floats:
    """Milli-cores of one pod every five minutes from now to five hours after the day, 0 after its end."""
    steps = int((world.scenario.seconds - world.now + 5 * HOUR_S) / SAMPLE_S)
    found = world.demand.series(slot, world.now, steps)
    found[max(int((ends - world.now) / SAMPLE_S), 1) :] = 0.0
    return found


def _running(info: PodInfo, node: str, moment: datetime) -> Pod:
    ready = {"type": "Ready", "status": "True"}
    status = msgspec.convert({"phase": "Running", "conditions": [ready]}, PodStatus)
    status = msgspec.structs.replace(status, start_time=moment)
    spec = msgspec.structs.replace(info.pod.spec, node_name=node)
    return msgspec.structs.replace(info.pod, spec=spec, status=status)
