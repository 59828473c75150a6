"""Usage for strategies: smoothed, forgotten when stale, degraded node by node."""

from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodAdded
from plimsoll.framework import ConfigurationError
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.model.columns.cluster import Cluster
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import FakeClock, FakeMeter, RememberingObserver, settled
from plimsoll.usage.load_feed import LoadFeed
from plimsoll.usage.queried_sources import QueriedSources
from plimsoll.usage.queried_usage import STALE_S
from plimsoll.usage.sources import HALF_LIFE_S, UsageCollector
from rebalancing.scene import POLICY, Scene, a_policy, web

METRICS = [{"source": "KubernetesMetrics"}]
PROMETHEUS = [{"source": "Prometheus", "prometheus": {"url": "http://prometheus:9090"}}]
BY_METRICS = {
    "name": "LowNodeUtilization",
    "args": {
        "thresholds": {"cpu": 20},
        "targetThresholds": {"cpu": 50},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    },
}
LINES = {"thresholds": {"MetricResource": 20}, "targetThresholds": {"MetricResource": 50}}
BY_QUERY = {
    "name": "LowNodeUtilization",
    "args": {
        **LINES,
        "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "load"}},
    },
}
CORE = 10**9


def a_spec(strategy: dict[str, Any] = BY_METRICS, providers: list[dict[str, Any]] = METRICS) -> Any:
    return a_policy(strategies=[strategy], metricsProviders=providers).spec.rebalancing


def reading(name: str, cpu: float, taken: float) -> UsageReading:
    return UsageReading(name, {"cpu": int(cpu * CORE), "memory": CORE}, taken)


def uses_of_pods(now: float) -> list[UsageReading]:
    """What the pods of both nodes use."""
    return [reading(f"default/web-{n}", 0.2 if n == 2 else 0.8, now) for n in (1, 2, 5, 6, 7)]


def a_collector(meter: FakeMeter, clock: FakeClock, other: FakeMeter | None = None) -> UsageCollector:
    """Reads a metrics API, and a Prometheus or the same."""
    cluster = Cluster()
    feed = LoadFeed(meter, cluster, clock)
    sources = QueriedSources(other or meter, cluster, {}, feed, clock, RememberingObserver())
    return UsageCollector(feed, sources, clock, {})


async def test_readings_are_smoothed_over_time() -> None:
    """After one half-life the old reading counts half."""
    clock, meter = FakeClock(), FakeMeter()
    collector = a_collector(meter, clock)
    meter.node_readings = [reading("n1", 1.0, clock.now())]
    await collector.measure(a_spec(), {})

    await clock.advance(HALF_LIFE_S)
    meter.node_readings = [reading("n1", 3.0, clock.now())]
    found = await collector.measure(a_spec(), {})

    assert found.nodes["n1"]["cpu"] == 2 * CORE  # type: ignore[index] # known to exist in this test


async def test_a_stale_reading_is_no_reading() -> None:
    """Only the node that is no longer measured is left out."""
    clock, meter = FakeClock(), FakeMeter()
    collector = a_collector(meter, clock)
    meter.node_readings = [reading("old", 1.0, clock.now() - STALE_S), reading("new", 1.0, clock.now())]

    found = await collector.measure(a_spec(), {})

    assert list(found.nodes) == ["new"]  # type: ignore[arg-type] # a fake has only what is used


async def test_usage_that_no_policy_needs_is_not_read() -> None:
    """A policy by requests reads nothing, and no loop reads for it."""
    clock, meter = FakeClock(), FakeMeter()
    collector = a_collector(meter, clock)

    found = await collector.measure(a_policy().spec.rebalancing, {})  # type: ignore[arg-type] # a fake has only what is used

    assert (found.nodes, found.pods, found.samples) == (None, None, None)
    assert meter.asked == []


async def test_a_run_moves_by_what_is_measured() -> None:
    """Requests are small; the measured load is not: pods leave the node that is really busy."""
    scene = Scene(places_by_load=True)
    now = scene.clock.now()
    for number in (5, 6, 7):
        scene.tell(PodAdded(web(number, "bad")))
    scene.meter.node_readings = [reading("bad", 3.2, now), reading("good", 0.2, now)]
    scene.meter.pod_readings = uses_of_pods(now)

    async with scene.running(a_policy(strategies=[BY_METRICS], metricsProviders=METRICS)):
        await scene.run()

    assert len(scene.evictor.evicted) == 1


async def test_a_cluster_without_the_metrics_api_is_no_cluster_without_load() -> None:
    """Whatever the answer's words, there are no measurements, and the sentence says what to look for."""
    clock, meter = FakeClock(), FakeMeter()
    meter.answer = WriteResult(WriteOutcome.GONE)

    found = await a_collector(meter, clock).measure(a_spec(), {})

    assert (found.nodes, found.pods) == (None, None)
    assert found.problem == "the cluster does not serve metrics.k8s.io; is there a metrics-server?"


@pytest.mark.parametrize(
    ("strategy", "providers", "sentence"),
    [
        (BY_METRICS, METRICS, "there are no measurements of the metrics API: no server"),
        (BY_QUERY, PROMETHEUS, "there is no answer to the Prometheus query: no server"),
    ],
)
async def test_a_source_that_fails_stops_its_strategy_and_says_why(
    strategy: dict[str, Any], providers: list[dict[str, Any]], sentence: str
) -> None:
    """No eviction, no crash: a sentence in the status, and the other strategies run."""
    scene = Scene()
    scene.meter.answer = WriteResult(WriteOutcome.UNKNOWN, "no server")
    taints = {"name": "RemovePodsViolatingNodeTaints"}

    async with scene.running(a_policy(strategies=[strategy, taints], metricsProviders=providers)):
        await scene.run()

    (failure,) = scene.statuses.statuses[POLICY]["lastRun"]["failures"]
    assert failure["name"] == "LowNodeUtilization"
    assert sentence in failure["message"]
    assert scene.evictor.evicted == ["web-1"]  # by its taint


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.7, float("inf")])
async def test_a_sample_that_makes_no_sense_leaves_its_node_out(value: float) -> None:
    """The other node alone is no ground for a move."""
    scene = Scene()
    scene.meter.samples = [Sample({"instance": "bad"}, value), Sample({"instance": "good"}, 0.1)]

    async with scene.running(a_policy(strategies=[BY_QUERY], metricsProviders=PROMETHEUS)):
        await scene.run()

    assert scene.meter.asked == [("http://prometheus:9090", "load")]
    assert scene.statuses.statuses[POLICY]["lastRun"]["failures"] == []
    assert scene.evictor.evicted == []


@pytest.mark.parametrize(
    ("strategy", "source"), [(BY_METRICS, "KubernetesMetrics"), (BY_QUERY, "Prometheus")]
)
def test_a_source_that_no_provider_offers_is_refused(strategy: dict[str, Any], source: str) -> None:
    """The sentence says where to add it."""
    with pytest.raises(ConfigurationError, match=rf"metricsUtilization.source: {source} is not among"):
        Scene().rebalancers.check(a_policy(strategies=[strategy]))


async def test_a_node_is_not_judged_by_a_reading_from_before_a_move() -> None:
    """The reading was taken while the pod still ran there; the next one counts by itself, unsmoothed."""
    clock, meter = FakeClock(), FakeMeter()
    collector = a_collector(meter, clock)
    meter.node_readings = [reading("n1", 8.0, clock.now()), reading("n2", 1.0, clock.now())]
    await collector.measure(a_spec(), {})
    touched = {"n1": clock.now() + 1}

    before = await collector.measure(a_spec(), {}, touched)
    await clock.advance(30)
    meter.node_readings = [reading("n1", 2.0, clock.now()), reading("n2", 1.0, clock.now())]
    after = await collector.measure(a_spec(), {}, touched)

    assert list(before.nodes) == ["n2"]  # type: ignore[arg-type] # a fake has only what is used
    assert after.nodes["n1"]["cpu"] == 2 * CORE  # type: ignore[index] # known to exist in this test


async def test_a_query_says_nothing_of_a_node_shortly_after_a_move() -> None:
    """Over what time it averages is not known: neither the strategy's own query, nor the provider's."""
    clock, meter = FakeClock(), FakeMeter()
    collector = a_collector(meter, clock)
    names, touched = ("n1", "n2"), {"n1": clock.now()}
    cluster = {name: a_node(name) for name in names}
    own, shared = a_spec(BY_QUERY, PROMETHEUS), a_spec(BY_QUERIES, QUERIES)

    async def measured() -> list[list[str]]:
        now = clock.now()
        meter.vectors = {
            "load": [Sample({"instance": name}, 0.5) for name in names],
            "node_cpu": [Sample({"node": name}, 1.0, now) for name in names],
            "node_io": [Sample({"node": name}, 0.1, now) for name in names],
        }
        by_own = await collector.measure(own, cluster, touched)
        by_shared = await collector.measure(shared, cluster, touched)
        samples = (by_own.samples or {})["load"]
        return [[each.labels["instance"] for each in samples], sorted(by_shared.queried or {})]

    before = await measured()
    await clock.advance(STALE_S)
    after = await measured()

    assert before == [["n2"], ["n2"]]
    assert after == [["n1", "n2"], ["n1", "n2"]]


async def test_a_move_is_not_repeated_for_the_load_that_it_took_away() -> None:
    """The next run comes before the next reading: the node that was hot is left out of it."""
    scene = Scene(places_by_load=True)
    now = scene.clock.now()
    for number in (5, 6, 7):
        scene.tell(PodAdded(web(number, "bad")))
    scene.meter.node_readings = [reading("bad", 3.2, now), reading("good", 0.2, now)]
    scene.meter.pod_readings = uses_of_pods(now)

    limits = {"perWorkload": 5}
    policy = a_policy(strategies=[BY_METRICS], metricsProviders=METRICS, limits=limits)
    async with scene.running(policy):
        await scene.run()
        evicted = list(scene.evictor.evicted)
        for number, name in enumerate(evicted):
            scene.gone(scene.cache.cluster.pods[f"uid-default-{name}"].pod)
            scene.tell(PodAdded(web(20 + number, "good", created="2026-06-01T00:00:00Z")))
        await settled()
        await scene.run()

    assert {"Settled"} == {phases[-1] for phases in scene.phases}
    assert scene.evictor.evicted == evicted


BY_QUERIES = {
    "name": "LowNodeUtilization",
    "args": {
        "thresholds": {"cpu": 20, "example.com/io": 90},
        "targetThresholds": {"cpu": 50, "example.com/io": 95},
        "metricsUtilization": {"source": "Prometheus"},
    },
}
QUERIES = [
    {
        "source": "Prometheus",
        "prometheus": {
            "url": "http://prometheus:9090",
            "queries": {
                "node": {
                    "cpu": {"query": "node_cpu", "unit": "Cores"},
                    "example.com/io": {"query": "node_io", "unit": "Share"},
                },
                "pod": {"cpu": {"query": "pod_cpu", "unit": "Cores"}},
            },
        },
    }
]


def busy(scene: Scene) -> None:
    """Five pods on one node, which is busy; the other one is idle."""
    now = scene.clock.now()
    for number in (5, 6, 7):
        scene.tell(PodAdded(web(number, "bad")))
    scene.meter.vectors = {
        "node_cpu": [Sample({"node": "bad"}, 3.6, now), Sample({"node": "good"}, 0.2, now)],
        "node_io": [Sample({"node": "bad"}, 0.1, now), Sample({"node": "good"}, 0.1, now)],
        "pod_cpu": [Sample({"namespace": "default", "pod": f"web-{n}"}, 0.9, now) for n in (1, 2, 5, 6, 7)],
    }


async def test_a_run_moves_by_what_several_queries_measure() -> None:
    """One for each resource that thresholds name, all of them asked once."""
    scene = Scene()
    busy(scene)

    async with scene.running(a_policy(strategies=[BY_QUERIES], metricsProviders=QUERIES)):
        await scene.run()

    assert [query for _, query in scene.meter.asked] == ["node_cpu", "node_io", "pod_cpu"]
    assert len(scene.evictor.evicted) == 1


@pytest.mark.parametrize("value", [float("nan"), -1.0, 1e300, float("inf")])
async def test_a_hostile_value_of_a_query_leaves_its_node_out(value: float) -> None:
    """The run ends, and nothing is moved for it."""
    scene = Scene()
    busy(scene)
    now = scene.clock.now()
    scene.meter.vectors["node_cpu"][0] = Sample({"node": "bad"}, value, now)

    async with scene.running(a_policy(strategies=[BY_QUERIES], metricsProviders=QUERIES)):
        await scene.run()

    assert scene.statuses.statuses[POLICY]["lastRun"]["failures"] == []
    assert scene.evictor.evicted == []


@pytest.mark.parametrize(
    "hostile",
    [
        UsageReading("bad", {"cpu": -CORE, "memory": 0}, 0.0),
        UsageReading("bad", {"cpu": 10**309 * CORE, "memory": 0}, 0.0),
        UsageReading("bad", {"cpu": 4 * CORE, "memory": 0}, 4e9),
        UsageReading("bad", {}, 0.0),
    ],
    ids=["negative", "huge", "from the future", "empty"],
)
async def test_a_hostile_reading_leaves_its_node_out(hostile: UsageReading) -> None:
    """Till a sound one comes, which counts immediately."""
    scene = Scene(places_by_load=True)
    now = scene.clock.now()
    for number in (5, 6, 7):
        scene.tell(PodAdded(web(number, "bad")))
    taken = max(hostile.taken, now)
    scene.meter.node_readings = [
        UsageReading(hostile.name, hostile.usage, taken),
        reading("good", 0.2, now),
        reading("unknown", 4.0, now),
    ]
    scene.meter.pod_readings = uses_of_pods(now)

    async with scene.running(a_policy(strategies=[BY_METRICS], metricsProviders=METRICS)):
        await scene.run()
        evicted = list(scene.evictor.evicted)
        failures = scene.statuses.statuses[POLICY]["lastRun"]["failures"]
        later = now + 30
        scene.meter.node_readings = [reading("bad", 3.2, later), reading("good", 0.2, later)]
        scene.meter.pod_readings = uses_of_pods(later)
        await scene.clock.advance(30)
        await scene.run()

    assert (evicted, failures) == ([], [])
    assert len(scene.evictor.evicted) == 1


async def test_each_strategy_gets_what_its_own_query_returns() -> None:
    """Profiles of descheduler may each have one; a policy that keeps its behaviour has them all."""
    clock, meter = FakeClock(), FakeMeter()
    meter.vectors = {"load": [Sample({"instance": "n1"}, 0.1)], "psi": [Sample({"instance": "n1"}, 0.2)]}
    metrics = {"source": "Prometheus", "prometheus": {"query": "psi"}}
    other = {"name": "LowNodeUtilization", "args": {**LINES, "metricsUtilization": metrics}}
    spec = a_policy(strategies=[BY_QUERY, other], metricsProviders=PROMETHEUS, planner="Upstream").spec

    found = await a_collector(meter, clock).measure(spec.rebalancing, {})  # type: ignore[arg-type] # a fake has only what is used

    assert found.samples == meter.vectors


async def test_a_query_that_fails_stops_only_what_needs_it() -> None:
    """The metrics API is measured all the same, and the sentence is of the query."""
    clock, meter = FakeClock(), FakeMeter()
    meter.node_readings = [reading("n1", 1.0, clock.now())]
    broken = FakeMeter()
    broken.answer = WriteResult(WriteOutcome.UNKNOWN, "no server")
    strategies, providers = [BY_METRICS, BY_QUERIES], [*METRICS, *QUERIES]
    spec = a_policy(strategies=strategies, metricsProviders=providers, planner="Upstream").spec

    found = await a_collector(meter, clock, broken).measure(spec.rebalancing, {})  # type: ignore[arg-type] # a fake has only what is used

    assert list(found.nodes or ()) == ["n1"]
    assert (found.queried, found.problem) == (None, "no server")


def test_thresholds_that_no_query_measures_are_refused() -> None:
    """The sentence says where to add it."""
    lines = {"thresholds": {"gpu": 1}, "targetThresholds": {"gpu": 2}}
    strategy = {
        "name": "LowNodeUtilization",
        "args": {**lines, "metricsUtilization": {"source": "Prometheus"}},
    }
    with pytest.raises(
        ConfigurationError, match=r"thresholds.gpu: no query of source Prometheus measures it"
    ):
        Scene().rebalancers.check(a_policy(strategies=[strategy], metricsProviders=QUERIES))


@pytest.mark.parametrize(
    ("usage", "is_sound"),
    [
        ({}, True),
        ({"cpu": CORE, "example.com/io": 0}, True),
        ({"cpu": CORE, "example.com/io": 1}, False),
        ({"cpu": 2**80}, False),
    ],
)
def test_what_no_machine_can_use_is_no_reading(usage: dict[str, int], is_sound: bool) -> None:
    """Nor an amount of something that is not measured."""
    assert UsageReading("n", usage, 0.0).is_sound is is_sound
