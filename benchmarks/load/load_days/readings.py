"""Readings of the world as a metrics API has them: late, capped by the nodes, wrong where faults are."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from load_days.scenarios import HOUR_S, Fault
from load_days.traces import Floats
from load_days.world import World
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PodIndex

#: Seconds that a pod runs before it is in a reading.
UNSEEN_S = 30.0

#: Seconds of a silence, and between the beginnings of two.
SILENCE_S, SILENCE_EVERY_S = 600.0, 3 * HOUR_S


@dataclass(frozen=True, slots=True)
class Readings:
    """One answer of the metrics API, for all nodes.

    Attributes:
        taken: Seconds since the day began.
        node_cpu: Shape (numbers,): milli-cores by node number, NaN where nothing is known.
        node_memory: Likewise, bytes.
        slots: Of the pods that were measured; ``nodes``, ``cpu`` and ``memory`` are theirs.
    """

    taken: float
    node_cpu: Floats
    node_memory: Floats
    slots: NDArray[np.intp]
    nodes: NDArray[np.intp]
    cpu: Floats
    memory: Floats


@dataclass(slots=True)
class MetricsSource:
    """Takes readings of a world and hands them out when they are old enough."""

    world: World
    _kept: deque[Readings] = field(default_factory=deque, init=False)
    _frozen: Readings | None = field(default=None, init=False)

    def take(self) -> Readings | None:
        """Read the world now; what arrives now, None for nothing."""
        scenario = self.world.scenario
        self._kept.append(self._read())
        if self._kept[0].taken > self.world.now - scenario.late_s:
            return None
        arriving = self._kept.popleft()
        return None if self._is_silent() else arriving

    def _is_silent(self) -> bool:
        now, scenario = self.world.now, self.world.scenario
        if Fault.SOURCE_GONE in scenario.faults and now >= scenario.begins * HOUR_S:
            return True
        began = scenario.begins * HOUR_S
        pauses = Fault.SILENT_SOURCE in scenario.faults and now >= began
        return pauses and (now - began) % SILENCE_EVERY_S < SILENCE_S

    def _read(self) -> Readings:
        world = self.world
        slots, cpu, memory = world.use()
        nodes = world.node_of[slots]
        wanted = world.by_node(slots, cpu)
        capped = np.minimum(1.0, world.traces.node_cpu / np.maximum(wanted, 1.0))
        node_memory = world.by_node(slots, memory)
        node_cpu, cpu = wanted * capped, cpu * capped[nodes]
        gone = np.ones(len(world.names), dtype=np.bool_)
        gone[world.numbers] = False
        known = world.now - world.placed_at[slots] >= UNSEEN_S
        if Fault.SILENT_NODES in world.scenario.faults:
            silent = np.arange(len(world.names)) % 50 == 0
            gone |= silent
            known &= ~silent[nodes]
        node_cpu, node_memory = (np.where(gone, np.nan, each) for each in (node_cpu, node_memory))
        found = Readings(
            world.now, node_cpu, node_memory, slots[known], nodes[known], cpu[known], memory[known]
        )
        return self._frozen_of(found)

    def _frozen_of(self, found: Readings) -> Readings:
        """The same, but the busiest node of a moment says for ever what it said then."""
        scenario = self.world.scenario
        if Fault.FROZEN_NODE not in scenario.faults or self.world.now < scenario.begins * HOUR_S:
            return found
        if self._frozen is None:
            self._frozen = found
        then = self._frozen
        liar = int(np.nanargmax(then.node_cpu))
        node_cpu, node_memory, cpu = found.node_cpu.copy(), found.node_memory.copy(), found.cpu.copy()
        node_cpu[liar], node_memory[liar] = then.node_cpu[liar], then.node_memory[liar]
        before = dict(zip(then.slots.tolist(), then.cpu.tolist(), strict=True))
        for at in np.flatnonzero(found.nodes == liar).tolist():
            cpu[at] = before.get(int(found.slots[at]), cpu[at])
        return Readings(found.taken, node_cpu, node_memory, found.slots, found.nodes, cpu, found.memory)


@dataclass(slots=True)
class History:
    """The readings of the last day, by node, and the latest of each pod.

    Attributes:
        heard: How many readings there were.
        taken: Of the latest, -inf before the first.
        pod_cpu: Shape (slots,): the latest of each slot, NaN where never read; ``pod_memory`` likewise.
    """

    world: World
    heard: int = 0
    taken: float = float("-inf")
    pod_cpu: Floats = field(default_factory=lambda: np.full(1024, np.nan))
    pod_memory: Floats = field(default_factory=lambda: np.full(1024, np.nan))
    _times: list[float] = field(default_factory=list, init=False)
    _cpu: list[Floats] = field(default_factory=list, init=False)
    _memory: list[Floats] = field(default_factory=list, init=False)

    def learn(self, found: Readings) -> None:
        """Keep one answer."""
        self.heard += 1
        self.taken = found.taken
        self._times.append(found.taken)
        self._cpu.append(found.node_cpu)
        self._memory.append(found.node_memory)
        self._grow()
        self.pod_cpu[found.slots] = found.cpu
        self.pod_memory[found.slots] = found.memory

    def use_of(self, slots: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The latest milli-cores and bytes of pods, NaN where never read."""
        self._grow()
        return self.pod_cpu[slots], self.pod_memory[slots]

    def _grow(self) -> None:
        while len(self.pod_cpu) < len(self.world.node_of):
            more = np.full(len(self.pod_cpu), np.nan)
            self.pod_cpu = np.concatenate([self.pod_cpu, more])
            self.pod_memory = np.concatenate([self.pod_memory, more])

    def window(self, seconds: float, *, memory: bool = False) -> Floats:
        """The node readings of the latest seconds, shape (readings, numbers), NaN where nothing is known."""
        size = len(self.world.names)
        since = np.searchsorted(self._times, self.taken - seconds, side="right")
        rows = (self._memory if memory else self._cpu)[int(since) :]
        if not rows:
            return np.full((1, size), np.nan)
        return np.array([np.concatenate([row, np.full(size - len(row), np.nan)]) for row in rows])


class LoadView(PodIndex):
    """Lets the plugins of the benchmark see the world through the snapshot; forks see the same one."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.history: History | None = None

    @property
    def seen(self) -> History:
        """What has been read, with the world."""
        assert self.history is not None
        return self.history

    def add(self, pod: PodInfo, row: int) -> None:
        """The world knows."""

    def remove(self, pod: PodInfo, row: int) -> None:
        """The world knows."""

    def fork(self) -> "LoadView":
        """The same."""
        return self
