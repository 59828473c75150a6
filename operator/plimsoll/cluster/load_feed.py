"""LoadFeed reads what nodes and pods use, hands it on, and keeps the cluster's load book by it.

Nodes are read every fifteen seconds and pods every thirty while some profile or policy needs it, and whenever
somebody asks. The book is made with the first reading, and is refreshed without readings too, because they
grow old.
"""

import math
from collections.abc import Iterable, Sequence

from plimsoll.load.keeper import LoadKeeper
from plimsoll.load.readings import NOTHING, LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.quantity import BILLION
from plimsoll.ports.clock import Clock
from plimsoll.ports.usage import UsageReader, UsageReading
from plimsoll.ports.writes import WriteResult
from plimsoll.timing.signal import Signal

#: Seconds between two readings of nodes, and of pods.
NODES_S, PODS_S = 15.0, 30.0

Answer = tuple[WriteResult, Sequence[UsageReading]]


class LoadFeed(UsageReader):
    """The reader of usage that others ask.

    Args:
        meter: Reads from the API server.
        cluster: Whose load book is kept.
        clock: Time.

    Attributes:
        is_scored: Whether some profile reads the load book.
        keeper: Keeps the book; None before the first reading.
        refreshed: Notified when the book has been refreshed.
    """

    def __init__(self, meter: UsageReader, cluster: Cluster, clock: Clock) -> None:
        self.is_scored = False
        self.keeper: LoadKeeper | None = None
        self.refreshed = Signal()
        self._meter = meter
        self._cluster = cluster
        self._clock = clock
        self._read_at = (-math.inf, -math.inf)  #: when nodes and pods were read

    async def run(self) -> None:
        """Read again and again while a profile needs it, until cancelled."""
        while True:
            await self.turn(is_needed=False)
            await self._clock.sleep(NODES_S)

    async def turn(self, *, is_needed: bool) -> None:
        """Read what is due while a profile or a policy needs it; the book is as old as it is now."""
        before = self._read_at
        if is_needed or self.is_scored:
            now = self._clock.now()
            if now - self._read_at[0] > NODES_S / 2:
                await self.nodes()
            if now - self._read_at[1] > PODS_S - NODES_S / 2:
                await self.pods()
        if before == self._read_at and self.keeper is not None:
            self.keeper.observe(self._clock.now())
            self.refreshed.notify()

    async def nodes(self) -> Answer:
        """Of every node that is measured."""
        answer, found = await self._meter.nodes()
        if answer.is_done:
            self._read_at = self._clock.now(), self._read_at[1]
            self._take(nodes=load_readings(found))
        return answer, found

    async def pods(self) -> Answer:
        """Of every pod that is measured."""
        answer, found = await self._meter.pods()
        if answer.is_done:
            self._read_at = self._read_at[0], self._clock.now()
            self._take(pods=load_readings(found))
        return answer, found

    def _take(self, nodes: LoadReadings = NOTHING, pods: LoadReadings = NOTHING) -> None:
        if self.keeper is None:
            self.keeper = LoadKeeper(self._cluster)
        self.keeper.observe(self._clock.now(), nodes, pods)
        self.refreshed.notify()


def load_readings(found: Iterable[UsageReading]) -> LoadReadings:
    """Readings of usage in the units of the load book; those without cpu or memory are left out."""
    return LoadReadings.of(
        LoadReading(each.name, each.usage["cpu"], each.usage["memory"] // BILLION, each.taken, each.window_s)
        for each in found
        if {"cpu", "memory"} <= each.usage.keys()
    )
