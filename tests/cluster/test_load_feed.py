"""LoadFeed: reads what is due, keeps the book, and ages it when nothing comes."""

import asyncio

import pytest

from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClock, FakeMeter, settled
from plimsoll.usage.load_feed import METRICS_API, SILENT_S, LoadFeed

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
    await feed.turn()
    assert meter.reads == []
    assert not cluster.has_index(LoadBook)


async def test_nodes_are_read_every_fifteen_seconds_and_pods_every_thirty() -> None:
    _, clock, meter, feed = a_scene()
    feed.is_scored = True
    for _ in range(4):
        use(meter, clock, 1, 3)
        await feed.turn()
        await clock.advance(15.0)
    assert meter.reads == ["nodes", "pods", "nodes", "nodes", "pods", "nodes"]


async def test_readings_reach_the_book_of_the_cluster() -> None:
    cluster, clock, meter, feed = a_scene()
    use(meter, clock, 1, 3)
    feed.is_scored = True
    await feed.turn()
    book = cluster.index(LoadBook)
    assert book.load_on(0) == (3 * CORE, 2**31)
    assert book.state(0) is LoadState.MEASURED


async def test_a_silent_source_makes_the_book_stale() -> None:
    cluster, clock, meter, feed = a_scene()
    use(meter, clock, 1, 3)
    feed.is_scored = True
    await feed.turn()
    meter.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
    await clock.advance(90.0)
    await feed.turn()
    assert cluster.index(LoadBook).state(0) is LoadState.STALE


async def test_those_that_ask_within_five_seconds_share_a_reading() -> None:
    _, clock, meter, feed = a_scene()
    use(meter, clock, 1, 3)
    first, second = await asyncio.gather(feed.nodes(), feed.nodes())
    await clock.advance(4.0)
    third = await feed.nodes()
    assert first == second == third
    assert meter.reads == ["nodes"]
    await clock.advance(1.0)
    await feed.nodes()
    assert meter.reads == ["nodes", "nodes"]


async def test_readings_are_needed_as_long_as_somebody_says_so() -> None:
    _, _, meter, feed = a_scene()
    with feed.needed(lambda: True):
        await feed.turn()
    assert meter.reads == ["nodes", "pods"]
    assert not feed.is_needed


def of_nodes(taken: float, **cores: int) -> LoadReadings:
    return LoadReadings.of(LoadReading(name, cpu * CORE, 2**30, taken) for name, cpu in cores.items())


def cores_of(cluster: Cluster, name: str) -> float:
    """With 85 % of the core that the pod on n1 requests, which has just begun."""
    return cluster.index(LoadBook).load_on(cluster.rows[name])[0] / CORE


async def test_of_two_sources_the_first_counts() -> None:
    """But for nodes that it does not measure."""
    cluster, clock, _, feed = a_scene()
    cluster.set_node(a_node("n2", cpu="4", memory="8Gi"))
    feed.take(1, nodes=of_nodes(clock.now(), n1=2))
    await clock.advance(15.0)
    feed.take(METRICS_API, nodes=of_nodes(clock.now(), n1=4, n2=3))
    feed.take(2, nodes=of_nodes(clock.now(), n1=4))
    assert (cores_of(cluster, "n1"), cores_of(cluster, "n2")) == (2.85, 3)
    await clock.advance(45.0)
    feed.take(0, nodes=of_nodes(clock.now(), n1=4))
    assert cores_of(cluster, "n1") > 2.85


async def test_a_source_that_measures_nothing_new_gives_way() -> None:
    """It answers, but its latest value is the same one for a minute."""
    cluster, clock, _, feed = a_scene()
    frozen = of_nodes(clock.now(), n1=2)
    for _ in range(4):
        feed.take(0, nodes=frozen)
        feed.take(METRICS_API, nodes=of_nodes(clock.now(), n1=4))
        assert cores_of(cluster, "n1") == 2.85
        await clock.advance(SILENT_S / 4)
    feed.take(0, nodes=frozen)
    feed.take(METRICS_API, nodes=of_nodes(clock.now(), n1=4))
    assert cores_of(cluster, "n1") > 2.85


async def test_a_wall_clock_that_is_set_back_delays_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    _, clock, meter, feed = a_scene()
    feed.is_scored = True
    await feed.turn()
    monkeypatch.setattr(clock, "now", lambda: clock.time - 3600.0)
    await clock.advance(30.0)
    await feed.turn()
    assert meter.reads == ["nodes", "pods", "nodes", "pods"]


async def test_the_first_reading_waits_for_nothing() -> None:
    """An operator that starts knows the load before it decides; then it reads every fifteen seconds."""
    _, clock, meter, feed = a_scene()
    feed.is_scored = True
    use(meter, clock, 1, 3)
    running = asyncio.ensure_future(feed.run())
    await settled()
    assert meter.reads == ["nodes", "pods"]
    await clock.advance(15.0)
    assert meter.reads == ["nodes", "pods", "nodes"]
    running.cancel()
