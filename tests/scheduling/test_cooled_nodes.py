"""A pod that a busy node refused is tried again when the node has cooled, not when five minutes are over."""

from typing import Any

import numpy as np

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.engine.profile import Enabled
from plimsoll.load.load_book import LoadBook
from plimsoll.load.states import LoadState
from plimsoll.ports.usage import UsageReading
from plimsoll.scheduling.queue.cooled_nodes import CoolingNodes
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import (
    FakeClock,
    FakeMeter,
    a_book,
    settled,
)
from plimsoll.usage.load_feed import NODES_S, LoadFeed
from scheduling.wing_scene import WingScene

CORE = 10**9

#: As Koordinator's: a node above 65 % of its cpu takes nothing, and where all are, pods wait.
REFUSING = {"usageThresholds": {"cpu": 65}, "whenAllOver": "Refuse"}


class BusyCluster(WingScene):
    """One node of ten cores, measured every fifteen seconds, and a pod that it refuses."""

    def __init__(self, cores: float, **args: Any) -> None:
        clock, book, self.meter = FakeClock(), a_book(Cache()), FakeMeter()
        self.cluster, self.cores = book.cache.cluster, cores
        self.feed = LoadFeed(self.meter, self.cluster, clock)
        self.feed.is_scored = True
        super().__init__(clock=clock, book=book, refreshed=self.feed.refreshed)
        self.place(args={"NodeLoad": REFUSING | args}, enabled=[Enabled("NodeLoad", 3)])
        self.ingestion.apply([NodeAdded(a_node("n0", cpu="10", memory="64Gi"))])

    async def seconds(self, count: float) -> None:
        """The node uses ``cores`` meanwhile."""
        for _ in range(round(count / NODES_S)):
            await self.clock.advance(NODES_S)
            usage = {"cpu": round(self.cores * CORE), "memory": CORE * 2**30}
            self.meter.node_readings = [UsageReading("n0", usage, self.clock.now())]
            await self.feed.turn()
            await settled()

    @property
    def percent(self) -> float:
        return self.cluster.index(LoadBook).load_on(0)[0] / CORE * 10

    async def wait_for_room(self) -> None:
        """A pod comes and is refused."""
        self.ingestion.apply([PodAdded(a_pod("web", cpu="100m", memory="1Gi", schedulerName="s"))])
        await settled()
        assert self.binder.bound == {}


async def test_a_pod_is_tried_when_its_node_has_cooled() -> None:
    """In less than the five minutes after which it would be anyway."""
    busy = BusyCluster(cores=7.0)
    async with busy.running():
        await busy.seconds(60)
        await busy.wait_for_room()
        await busy.seconds(60)
        assert busy.binder.bound == {}  # nothing has changed

        busy.cores = 0.5
        waited = 60.0
        while not busy.binder.bound and waited < 240:
            await busy.seconds(NODES_S)
            waited += NODES_S

        assert list(busy.binder.bound) == ["default/web"]
        assert 59 < busy.percent < 66


async def test_small_movements_wake_no_pod() -> None:
    """A load that goes up and down around the line by less than the dead band makes no attempt."""
    busy = BusyCluster(cores=6.6)
    async with busy.running():
        await busy.seconds(60)
        await busy.wait_for_room()
        attempts, seen = [each.attempts for each in busy.wing.queue], []
        for cores in (3.0, 10.0, 3.0, 10.0):
            busy.cores = cores
            await busy.seconds(60)
            seen.append(busy.percent)
        assert min(seen) + 0.85 < 65 < max(seen) + 0.85  # with the pod below the line, and above
        assert [each.attempts for each in busy.wing.queue] == attempts


async def test_a_node_that_is_measured_again_is_tried() -> None:
    """Where expired measurements refuse pods."""
    busy = BusyCluster(cores=1.0, enableScheduleWhenNodeMetricsExpired=False, usageThresholds={})
    async with busy.running():
        await busy.seconds(60)
        for _ in range(30):
            await busy.clock.advance(NODES_S)
            await busy.feed.turn()
        await settled()
        await busy.wait_for_room()
        await busy.seconds(NODES_S)
        assert list(busy.binder.bound) == ["default/web"]


def test_nodes_that_come_and_go_keep_what_is_known_of_the_others() -> None:
    """Rows change; a node that is new has not fallen."""
    busy = BusyCluster(cores=7.0)
    book, nodes = LoadBook(busy.cluster), CoolingNodes()
    busy.cluster.adopt(book)
    for name in ("n1", "n2"):
        busy.cluster.set_node(a_node(name, cpu="10", memory="64Gi"))

    def use(**cores: float) -> None:
        rows, system = busy.cluster.rows, book.system.copy()
        for name, amount in cores.items():
            system[rows[name], 0] = round(amount * CORE)
        book.system, book.known = system, np.full(len(book.known), LoadState.MEASURED, dtype=np.int8)

    use(n0=1, n1=2, n2=9)
    assert nodes.look(busy.cluster) is None
    busy.cluster.remove_node("n0")
    busy.cluster.set_node(a_node("n3", cpu="10", memory="64Gi"))
    use(n1=2, n2=8.5, n3=1)
    fall = nodes.look(busy.cluster)
    assert fall is not None
    assert fall.before[:, 0].tolist() == [90.0]
    assert fall.after[:, 0].tolist() == [85.0]
    assert nodes.look(busy.cluster) is None
