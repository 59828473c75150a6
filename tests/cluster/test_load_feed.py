"""LoadFeed: reads what is due, keeps the book, and ages it when nothing comes."""

from plimsoll.cluster.load_feed import LoadFeed
from plimsoll.load.load_book import LoadBook
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, FakeMeter

CORE, BILLION = 10**9, 10**9


class CountingMeter(FakeMeter):
    """Counts what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    async def nodes(self):  # type: ignore[no-untyped-def] # as its base
        self.reads.append("nodes")
        return await super().nodes()

    async def pods(self):  # type: ignore[no-untyped-def] # as its base
        self.reads.append("pods")
        return await super().pods()


def a_scene() -> tuple[Cluster, FakeClock, CountingMeter, LoadFeed]:
    cluster, clock, meter = Cluster(), FakeClock(), CountingMeter()
    cluster.set_node(a_node("n1", cpu="4", memory="8Gi"))
    cluster.place(cluster.templates.info(a_pod("web", cpu="1", memory="1Gi")), "n1")
    return cluster, clock, meter, LoadFeed(meter, cluster, clock)


def use(meter: FakeMeter, clock: FakeClock, cpu: int, node: int) -> None:
    meter.node_readings = [UsageReading("n1", {"cpu": node * CORE, "memory": BILLION * 2**31}, clock.now())]
    meter.pod_readings = [
        UsageReading("default/web", {"cpu": cpu * CORE, "memory": BILLION * 2**30}, clock.now())
    ]


async def test_nothing_is_read_that_nothing_needs() -> None:
    cluster, _, meter, feed = a_scene()
    await feed.turn(is_needed=False)
    assert meter.reads == []
    assert not cluster.has_index(LoadBook)


async def test_nodes_are_read_every_fifteen_seconds_and_pods_every_thirty() -> None:
    _, clock, meter, feed = a_scene()
    feed.is_scored = True
    for _ in range(4):
        use(meter, clock, 1, 3)
        await feed.turn(is_needed=False)
        await clock.advance(15.0)
    assert meter.reads == ["nodes", "pods", "nodes", "nodes", "pods", "nodes"]


async def test_readings_reach_the_book_of_the_cluster() -> None:
    cluster, clock, meter, feed = a_scene()
    use(meter, clock, 1, 3)
    await feed.turn(is_needed=True)
    book = cluster.index(LoadBook)
    assert book.load_on(0) == (3 * CORE, 2**31)
    assert book.state(0) is LoadState.MEASURED


async def test_a_silent_source_makes_the_book_stale() -> None:
    cluster, clock, meter, feed = a_scene()
    use(meter, clock, 1, 3)
    await feed.turn(is_needed=True)
    meter.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
    await clock.advance(90.0)
    await feed.turn(is_needed=True)
    assert cluster.index(LoadBook).state(0) is LoadState.STALE
