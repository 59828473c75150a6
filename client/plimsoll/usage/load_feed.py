"""Reads the metrics API, shares the readings, and updates the cluster's load book from all sources.

Nodes are read every fifteen seconds and pods every thirty while a profile or policy needs them, and on
request; one reading serves all requests within five seconds. Other sources pass in their readings. If several
sources measure a node or pod, the first source counts until it has measured nothing new for a minute. The
book is created with the first reading. It is refreshed without readings too, because they age.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS, PROMETHEUS
from plimsoll.load.readings import NOTHING, LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.quantity import BILLION
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.usage import UsageReader, UsageReading
from plimsoll.ports.writes import WriteResult
from plimsoll.timing.signal import Signal
from plimsoll.usage.load_keeper import LoadKeeper

#: Seconds between two readings of nodes, and of pods.
NODES_S, PODS_S = 15.0, 30.0

#: Seconds for which one reading serves all requests.
SHARED_S = 5.0

#: Seconds after a name's latest new reading until which later sources do not count.
SILENT_S = 60.0

#: The metrics API's rank among the sources: last.
METRICS_API = 2**31

Answer = tuple[WriteResult, Sequence[UsageReading]]


class LoadFeed(UsageReader):
    """Reads usage and serves it to others.

    Args:
        meter: Reads the metrics API.
        cluster: The cluster whose load book is updated.
        clock: Time.
        observer: Notified of the ages of readings.

    Attributes:
        is_scored: Whether some profile reads the load book.
        keeper: Updates the book; None before the first reading.
        refreshed: Notified when the book has been refreshed.
        latest: When nodes were last read, and the result; None before the first reading.
    """

    def __init__(
        self, meter: UsageReader, cluster: Cluster, clock: Clock, observer: Observer | None = None
    ) -> None:
        self.is_scored = False
        self.keeper: LoadKeeper | None = None
        self.refreshed = Signal()
        self.latest: tuple[float, Sequence[UsageReading]] | None = None
        self._cluster = cluster
        self._clock = clock
        self._observer = observer or Observer()
        self._nodes = _Kind(meter.nodes, clock)
        self._pods = _Kind(meter.pods, clock)
        self._needs: list[Callable[[], bool]] = []

    @property
    def is_needed(self) -> bool:
        """Whether a profile or a policy needs readings of the metrics API."""
        return self.is_scored or any(needs() for needs in self._needs)

    @contextmanager
    def needed(self, needs: Callable[[], bool]) -> Iterator[None]:
        """Within this context, read while ``needs`` returns True."""
        self._needs.append(needs)
        try:
            yield
        finally:
            self._needs.remove(needs)

    async def run(self) -> None:
        """Read repeatedly what is needed, until cancelled."""
        while True:
            await self.turn()
            await self._clock.sleep(NODES_S)

    async def turn(self) -> None:
        """Read what is due and needed; refresh the book's ages."""
        refreshed = self.refreshed.count
        if self.is_needed:
            if self._nodes.age_s > NODES_S / 2:
                await self.nodes()
            if self._pods.age_s > PODS_S - NODES_S / 2:
                await self.pods()
        if self.refreshed.count == refreshed and self.keeper is not None:
            self.take(METRICS_API)

    async def nodes(self) -> Answer:
        """Usage of every measured node."""
        (answer, found), is_new = await self._nodes.answer()
        if is_new and answer.is_done:
            self.latest = self._nodes.read_at, found
            self.take(METRICS_API, nodes=load_readings(found))
        return answer, found

    async def pods(self) -> Answer:
        """Usage of every measured pod."""
        (answer, found), is_new = await self._pods.answer()
        if is_new and answer.is_done:
            self.take(METRICS_API, pods=load_readings(found))
        return answer, found

    def take(self, source: int, nodes: LoadReadings = NOTHING, pods: LoadReadings = NOTHING) -> None:
        """Refresh the book from readings of a source; a source with a smaller number takes precedence."""
        now = self._clock.now()
        if self.keeper is None:
            self.keeper = LoadKeeper(self._cluster)
        if len(nodes):
            name = KUBERNETES_METRICS if source == METRICS_API else PROMETHEUS
            self._observer.usage_read(name, np.maximum(now - nodes.taken, 0.0).tolist())
        self.keeper.observe(now, self._nodes.chosen(source, nodes, now), self._pods.chosen(source, pods, now))
        self.refreshed.notify()


class _Kind:
    """Readings of nodes, or of pods.

    Attributes:
        read_at: When the metrics API last responded, by the wall clock.
    """

    def __init__(self, read: Callable[[], Awaitable[Answer]], clock: Clock) -> None:
        self.read_at = -math.inf
        self._responded_at = -math.inf  #: steady seconds: a wall clock that is set back delays no reading
        self._read = read
        self._clock = clock
        self._turn = asyncio.Lock()
        self._answer: tuple[float, Answer] | None = None
        #: keyed by name: the source other than the metrics API, the time of measurement, and that of arrival
        self._measured: dict[str, tuple[int, float, float]] = {}

    @property
    def age_s(self) -> float:
        """Seconds since the metrics API responded."""
        return self._clock.monotonic() - self._responded_at

    async def answer(self) -> tuple[Answer, bool]:
        """The metrics API's readings, and whether a request was sent for them."""
        async with self._turn:
            if self._answer is not None and self._clock.monotonic() - self._answer[0] < SHARED_S:
                return self._answer[1], False
            found = await self._read()
            now = self._clock.monotonic()
            self._answer = now, found
            if found[0].is_done:
                self.read_at, self._responded_at = self._clock.now(), now
            return found, True

    def chosen(self, source: int, readings: LoadReadings, now: float) -> LoadReadings:
        """The readings of names that no source with a smaller number has measured lately."""
        measured, names = self._measured, readings.names
        if source == METRICS_API and not measured:
            return readings
        chosen = []
        for place, (name, taken) in enumerate(zip(names, readings.taken.tolist(), strict=True)):
            by, before, arrived = measured.get(name, (source, -math.inf, -math.inf))
            if by < source and now - arrived < SILENT_S:
                continue
            chosen.append(place)
            if source == METRICS_API:
                measured.pop(name, None)
            elif by != source or taken > before:
                measured[name] = source, taken, now
        self._measured = {name: each for name, each in measured.items() if now - each[2] < SILENT_S}
        return readings if len(chosen) == len(names) else readings.at(chosen)


def load_readings(found: Iterable[UsageReading]) -> LoadReadings:
    """Readings in the units of the load book, without those that lack cpu or memory."""
    return LoadReadings.of(
        LoadReading(each.name, each.usage["cpu"], each.usage["memory"] // BILLION, each.taken, each.window_s)
        for each in found
        if {"cpu", "memory"} <= each.usage.keys()
    )
