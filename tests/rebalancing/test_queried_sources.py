"""Prometheus as a source of the load book: asked on its own interval, shared, silent for itself only."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.cluster.watch_events import PodAdded
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.load.load_book import LoadBook
from plimsoll.load.states import LoadState
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes import FakeMeter, settled
from plimsoll.usage.queried_sources import SOURCE_S
from rebalancing.scene import Scene, a_policy, web

CORE, GIB = 10**9, 2**30

BY_QUERIES = {
    "name": "LowNodeUtilization",
    "args": {
        "thresholds": {"cpu": 20},
        "targetThresholds": {"cpu": 50},
        "metricsUtilization": {"source": "Prometheus"},
    },
}


def providers(url: str = "http://prometheus:9090", *resources: str) -> list[dict[str, Any]]:
    units = {"cpu": "Cores", "memory": "Bytes"}
    queries = {name: {"query": name, "unit": units[name]} for name in resources or units}
    return [{"source": "Prometheus", "prometheus": {"url": url, "queries": {"node": queries}}}]


def by_queries(*resources: str) -> Any:
    found = providers("http://prometheus:9090", *resources)
    return a_policy(strategies=[BY_QUERIES], metricsProviders=found)


def answers(scene: Scene, cores: float, *nodes: str) -> None:
    """What the queries return from now on."""
    now = scene.clock.now()
    scene.meter.vectors = {
        "cpu": [Sample({"node": name}, cores, now) for name in nodes],
        "memory": [Sample({"node": name}, GIB, now) for name in nodes],
    }


def known(scene: Scene) -> dict[str, tuple[LoadState, float]]:
    """The state of each node, and its load in cores."""
    cluster = scene.cache.cluster
    book = cluster.index(LoadBook)
    return {name: (book.state(row), book.load_on(row)[0] / CORE) for name, row in cluster.rows.items()}


async def seconds(scene: Scene, count: float) -> None:
    for _ in range(round(count)):
        await scene.clock.advance(1.0)
    await settled()


async def test_what_queries_measure_reaches_the_load_book() -> None:
    """Without a run, on the source's own interval: what the pods are taken to use is in the reading."""
    scene = Scene()
    async with scene.running(by_queries()):
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S)

        assert {name: load for name, (_, load) in known(scene).items()} == {"bad": 2.085, "good": 2.085}
        asked = len(scene.meter.asked)
        await seconds(scene, 2 * SOURCE_S)
        assert len(scene.meter.asked) == asked + 4  # two queries twice


async def test_a_run_shares_the_latest_answers() -> None:
    """It asks again only what is older than five seconds."""
    scene = Scene()
    async with scene.running(by_queries()):
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S / 2)
        asked = len(scene.meter.asked)
        await scene.run()
        assert len(scene.meter.asked) == asked
        await seconds(scene, 6.0)
        await scene.run()
        assert len(scene.meter.asked) == asked + 2


async def test_a_query_of_cpu_alone_is_no_source() -> None:
    """The book has both resources of a node; the strategy reads its query in each run."""
    scene = Scene()
    async with scene.running(by_queries("cpu")):
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S)
        assert scene.meter.asked == []
        await scene.run()
        assert not scene.cache.cluster.has_index(LoadBook)


async def test_nothing_is_asked_for_a_policy_that_measures_otherwise() -> None:
    """Its queries are asked once a profile scores by load."""
    scene = Scene()
    async with scene.running(a_policy(metricsProviders=providers())):
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S)
        assert scene.meter.asked == []
        scene.feed.is_scored = True
        await seconds(scene, SOURCE_S)
        assert scene.meter.asked != []


class SilentMeter(FakeMeter):
    """One of its Prometheus never answers."""

    async def query(
        self, server: PrometheusProviderSpec, queries: Sequence[str]
    ) -> Sequence[tuple[WriteResult, Sequence[Sample]]]:
        if "silent" in server.url:
            self.asked.append((server.url, ""))
            await asyncio.Event().wait()
        return await super().query(server, queries)


def named(name: str, policy: Any) -> Any:
    return policy.model_copy(update={"metadata": policy.metadata.model_copy(update={"name": name})})


async def test_a_silent_source_delays_no_other() -> None:
    """The policy whose name comes first has a Prometheus that hangs."""
    scene = Scene(meter=SilentMeter())
    hanging = a_policy(strategies=[BY_QUERIES], metricsProviders=providers("http://silent:9090"))
    async with scene.running(named("a-first", hanging)):
        scene.rebalancers.adopt(by_queries())
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S)
        await seconds(scene, SOURCE_S)

        assert known(scene)["bad"][0] >= LoadState.ESTIMATED
        assert [url for url, _ in scene.meter.asked].count("http://silent:9090") == 1


async def test_the_metrics_api_takes_the_place_of_a_source_that_falls_silent() -> None:
    """After a minute; until then its own numbers count."""
    scene = Scene()
    metrics = {**BY_QUERIES["args"], "metricsUtilization": {"source": "KubernetesMetrics"}}  # type: ignore[dict-item] # a literal of strings
    other = a_policy(
        strategies=[{"name": "LowNodeUtilization", "args": metrics}],
        metricsProviders=[{"source": "KubernetesMetrics"}],
    )
    async with scene.running(by_queries()):
        scene.rebalancers.adopt(named("other", other))
        for _ in range(80):
            answers(scene, 3.0, "bad", "good")
            await with_metrics(scene)
        assert known(scene)["good"][1] > 2.4
        scene.meter.vectors = {}
        for _ in range(80):
            await with_metrics(scene)

        assert known(scene)["good"][1] < 1.6


async def with_metrics(scene: Scene) -> None:
    """Fifteen seconds pass, and the metrics API has measured one core of each node."""
    scene.meter.node_readings = [
        UsageReading(name, {"cpu": CORE, "memory": GIB * CORE}, scene.clock.now()) for name in ("bad", "good")
    ]
    await seconds(scene, 15.0)


async def test_a_source_that_breaks_breaks_nothing() -> None:
    """The next turn reads it again."""
    scene = Scene()
    async with scene.running(by_queries()):
        scene.meter.vectors = {"cpu": [None], "memory": []}  # type: ignore[list-item] # what no client returns
        await seconds(scene, SOURCE_S)
        assert [where for where, _ in scene.observer.failures] == ["reading usage from Prometheus"]
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S)
        assert known(scene)["good"][1] == 2.085


async def test_a_source_without_an_answer_makes_no_book() -> None:
    """And stops what needs it, in a sentence."""
    scene = Scene()
    scene.meter.answer = WriteResult(WriteOutcome.UNKNOWN, "no server")
    async with scene.running(by_queries()):
        await seconds(scene, SOURCE_S)
        await scene.run()
        assert not scene.cache.cluster.has_index(LoadBook)
        (failure,) = scene.statuses.statuses["tidy"]["lastRun"]["failures"]
        assert "no server" in failure["message"]


def of_pods_too(**more: Any) -> Any:
    """The queries measure pods as well, so that the load book has all that moves by load need."""
    (provider,) = providers()
    units = {"cpu": "Cores", "memory": "Bytes"}
    queries = {name: {"query": f"pod {name}", "unit": unit} for name, unit in units.items()}
    provider["prometheus"]["queries"]["pod"] = queries
    return a_policy(strategies=[BY_QUERIES], metricsProviders=[provider], **more)


async def busy(scene: Scene) -> None:
    """For an hour, node bad uses 2.8 of its four cores in four pods, node good hardly anything."""
    for number in (5, 6, 7):
        scene.tell(PodAdded(web(number, "bad")))
    for _ in range(120):
        answers(scene, 2.8, "bad")
        now, vectors = scene.clock.now(), scene.meter.vectors
        uses = {"web-1": 0.7, "web-2": 0.2, "web-5": 0.7, "web-6": 0.7, "web-7": 0.7}
        pods = [({"namespace": "default", "pod": name}, cores) for name, cores in uses.items()]
        vectors["pod cpu"] = [Sample(labels, cores, now) for labels, cores in pods]
        vectors["pod memory"] = [Sample(labels, GIB / 10, now) for labels, _ in pods]
        vectors["cpu"].append(Sample({"node": "good"}, 0.2, now))
        vectors["memory"].append(Sample({"node": "good"}, GIB, now))
        for _ in range(2):
            await scene.clock.advance(SOURCE_S / 2)
    await settled()


async def test_a_move_by_queries_is_a_move_by_load() -> None:
    """Its record has the load of both nodes, and the run's status the hot nodes."""
    scene = Scene(places_by_load=True)
    async with scene.running(of_pods_too()):
        await busy(scene)
        await scene.run()

        load = scene.record["spec"]["load"]
        assert load["basis"] == "Measured"
        assert load["resources"][0]["source"]["beforePercent"] > 65
        found = scene.statuses.statuses["tidy"]["lastRun"]["load"]
        assert found["hotNodes"] == 1


async def test_moves_by_queries_need_a_profile_that_places_by_load() -> None:
    """No pod goes, and the policy says TwoYardsticks, as with the metrics API."""
    scene = Scene()
    async with scene.running(of_pods_too()):
        await busy(scene)
        await scene.run()

        assert (
            "LowNodeUtilization moves pods by what nodes use"
            in scene.rebalancers.troubles("tidy")["TwoYardsticks"]
        )
        assert scene.records.documents == {}


async def test_upstream_goes_by_the_queries_themselves() -> None:
    """As descheduler decides; such a move is not by the load book, and its record says nothing of it."""
    scene = Scene(places_by_load=True)
    async with scene.running(of_pods_too(planner="Upstream")):
        await busy(scene)
        await scene.run()

        assert "load" not in scene.record["spec"]


async def test_the_first_run_has_a_book() -> None:
    """Even before the source's own interval has come round."""
    scene = Scene(places_by_load=True)
    async with scene.running(of_pods_too()):
        answers(scene, 2.0, "bad", "good")
        await scene.run()
        assert scene.cache.cluster.has_index(LoadBook)


async def test_a_wall_clock_that_is_set_back_delays_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    async with scene.running(by_queries()):
        answers(scene, 2.0, "bad", "good")
        await seconds(scene, SOURCE_S)
        asked = len(scene.meter.asked)
        monkeypatch.setattr(scene.clock, "now", lambda: scene.clock.time - 3600.0)
        await seconds(scene, 2 * SOURCE_S)

        assert len(scene.meter.asked) == asked + 4  # two queries twice
