"""NodeLoad, against worked examples, the conformance laws, and a book that readings change."""

import random
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from planning.rounds import PLACE
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, PluginSet, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import SKIP, SUCCESS, CycleState, Registry
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE, node_load
from plimsoll.plugins.node_load import NodeLoad, NodeLoadArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance
from plimsoll.usage.load_keeper import LoadKeeper

CORE, GIB = 10**9, 2**30


def plugin(**args: Any) -> NodeLoad:
    return NodeLoad(NodeLoadArgs.model_validate(args))


def measured(cluster: Cluster, at: float = 1_000.0, /, **used: tuple[float, float]) -> LoadKeeper:
    """Nodes that use so many cores and GiB."""
    keeper = LoadKeeper(cluster)
    read(keeper, at, **used)
    return keeper


def read(keeper: LoadKeeper, at: float, /, **used: tuple[float, float]) -> None:
    nodes = [LoadReading(name, cpu * CORE, memory * GIB, at) for name, (cpu, memory) in used.items()]
    keeper.observe(at, nodes=LoadReadings.of(nodes))


def nodes_of_ten(*names: str) -> Cluster:
    return a_cluster([a_node(name, cpu="10", memory="10Gi") for name in names])


def points(cluster: Cluster, requests: str = "0", **args: Any) -> list[int]:
    pod = cluster.templates.info(a_pod("p", cpu=requests, memory="0", containers=None))
    found: list[int] = plugin(**args).score(CycleState(), pod, Snapshot(cluster)).tolist()
    return found


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        # n1 uses 2 of 10 cores and 4 of 10 GiB, n2 6 and 1: (80 + 60) / 2, (40 + 90) / 2
        pytest.param({"resourceWeights": {"cpu": 1, "memory": 1}}, [70, 65], id="least used"),
        pytest.param({}, [80, 40], id="by cpu"),
        # (80 + 60 + 60) / 3, (40 + 90 + 40) / 3 = 56.7
        pytest.param(
            {"resourceWeights": {"cpu": 1, "memory": 1}, "dominantResourceWeight": 1}, [66, 56], id="dominant"
        ),
        # X 40: 40 + 60 * 20 / 40 = 70; 40 * 40 / 60 = 26.7
        pytest.param({"scoringStrategy": {"type": "TargetUsed"}}, [70, 27], id="target"),
        # without deviation: 100 * (1 - 0.4 / 2), 100 * (1 - 0.6 / 2)
        pytest.param({"scoringStrategy": {"type": "LowVariation"}}, [80, 70], id="variation"),
    ],
)
def test_scores_match_worked_examples(args: dict[str, Any], expected: list[int]) -> None:
    """Of a pod of which next to nothing is expected."""
    cluster = nodes_of_ten("n1", "n2")
    measured(cluster, n1=(2, 4), n2=(6, 1))
    pod = a_pod("p", containers=[{"name": "c", "resources": {"limits": {"cpu": "0", "memory": "0"}}}])

    found = plugin(**args).score(CycleState(), cluster.templates.info(pod), Snapshot(cluster))

    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("requests", "used", "lost"),
    [
        # n1 has 8 of 10 cores free: with the pod one pod of 4 less fits; n2 has 10 free
        pytest.param("1", 2, 15, id="it takes room"),
        pytest.param("4", 2, 0, id="large ones use the room"),
        pytest.param("0", 2, 0, id="it requests nothing"),
        pytest.param("1", 7, 4, id="never below 0"),
    ],
)
def test_small_pods_leave_room_for_large_ones(requests: str, used: int, lost: int) -> None:
    """What is on n1, and the pod, are expected to use 85 % of their requests besides what was read."""
    cluster = nodes_of_ten("n1", "n2")
    cluster.place(cluster.templates.info(a_pod("there", cpu="2", memory="0")), "n1")
    measured(cluster, n1=(used, 0), n2=(4, 0))
    pod = cluster.templates.info(a_pod("p", cpu=requests, memory="0"))
    alone, keeping = (
        plugin(**args).score(CycleState(), pod, Snapshot(cluster)).tolist()
        for args in ({}, {"keepsRoomForCores": 4})
    )
    assert keeping == [alone[0] - lost, alone[1]]


def test_a_pod_counts_as_soon_as_it_is_placed() -> None:
    """What it is expected to use, 85 % of its request, comes on top of what was measured."""
    cluster = nodes_of_ten("n1", "n2")
    measured(cluster, n1=(2, 0), n2=(2, 0))
    before = points(cluster, "1", resourceWeights={"cpu": 1})
    cluster.place(cluster.templates.info(a_pod("q", cpu="4", memory="0", node="n1")), "n1")

    after = points(cluster, "1", resourceWeights={"cpu": 1})

    assert (before[0], before[0] - after[0], after[1]) == (before[1], 34, before[1])


def test_a_node_that_is_not_measured_is_neither_best_nor_worst() -> None:
    """It counts with the median share, and no longer when its own pods are expected to use more."""
    cluster = a_cluster([a_node(f"n{n}", cpu="10", memory="10Gi") for n in range(4)])
    measured(cluster, n0=(1, 0), n1=(5, 0), n2=(9, 0))

    found = points(cluster, "1", resourceWeights={"cpu": 1})
    assert found[0] > found[1] == found[3] > found[2]

    for number in range(10):
        cluster.place(cluster.templates.info(a_pod(f"q{number}", cpu="1", memory="0", node="n3")), "n3")
    assert points(cluster, "1", resourceWeights={"cpu": 1})[3] < found[3]


def test_without_any_measurement_what_pods_are_expected_to_use_decides() -> None:
    """As requests would, so that a source that is gone does no harm."""
    cluster = nodes_of_ten("n1", "n2")
    cluster.place(cluster.templates.info(a_pod("q", cpu="4", memory="0", node="n1")), "n1")

    found = points(cluster, "1")

    assert found[0] < found[1]


def filtered(cluster: Cluster, **args: Any) -> list[str]:
    """What is said of each node; "" of one that passes."""
    one, state = plugin(**args), CycleState()
    pod = cluster.templates.info(a_pod("p", cpu="100m", memory="1Mi"))
    if one.pre_filter(state, pod, Snapshot(cluster)) is SKIP:
        return [""] * len(cluster)
    codes = one.filter(state, pod, Snapshot(cluster)).tolist()
    return [str(one.refusal(code, state, pod).message) if code else "" for code in codes]


def test_the_filter_is_off_unless_asked_for() -> None:
    """Then it refuses above its lines, in koordinator's words, and preemption is not tried."""
    cluster = nodes_of_ten("n1", "n2", "n3")
    measured(cluster, n1=(9, 1), n2=(1, 9.9), n3=(6.4, 9))
    lines = {"usageThresholds": {"cpu": 65, "memory": 95}}

    assert filtered(cluster) == ["", "", ""]
    assert filtered(cluster, **lines) == [
        "node(s) cpu usage exceed threshold",
        "node(s) memory usage exceed threshold",
        "",
    ]
    assert filtered(cluster, aggregated=lines)[0] == "node(s) cpu aggregated usage exceed threshold"
    pod = cluster.templates.info(a_pod("p"))
    assert plugin(**lines).refusal(1, CycleState(), pod).code.name == "UNRESOLVABLE"


def test_pods_of_daemonsets_pass() -> None:
    """Their node is the only one for them."""
    cluster = nodes_of_ten("n1")
    pod = cluster.templates.info(a_pod("p", owner="DaemonSet/agent"))

    one = plugin(usageThresholds={"cpu": 1})

    assert one.pre_filter(CycleState(), pod, Snapshot(cluster)) is SKIP
    other = cluster.templates.info(a_pod("q", owner="ReplicaSet/web"))
    assert one.pre_filter(CycleState(), other, Snapshot(cluster)) is SUCCESS


def test_expired_measurements_refuse_only_if_asked_to() -> None:
    """Five minutes and more without a reading; a node without any reading passes."""
    cluster = nodes_of_ten("n1", "n2")
    keeper = measured(cluster, n1=(1, 1))
    keeper.observe(1_000.0 + 3_600.0)

    assert filtered(cluster, usageThresholds={"cpu": 65}) == ["", ""]
    strict = {"usageThresholds": {"cpu": 65}, "enableScheduleWhenNodeMetricsExpired": False}
    assert filtered(cluster, **strict) == ["node(s) nodeMetric expired", ""]


def a_profile(**args: Any) -> Profile:
    """The default plugins and this one with weight 3."""
    enabled = PluginSet(enabled=(Enabled("NodeLoad", 3),))
    config = ProfileConfig(PLACE, plugins={"multiPoint": enabled}, args={"NodeLoad": args})
    return build_profile(config, Registry(IN_TREE), [Enabled(*each) for each in DEFAULT_PLUGINS.items()])


@pytest.mark.parametrize(("when", "outcome"), [("Admit", "SCHEDULED"), ("Refuse", "UNSCHEDULABLE")])
def test_load_alone_does_not_keep_a_pod_pending(when: str, outcome: str) -> None:
    """Where no node would be left; the least used one then takes the pod, and never one without room."""
    cluster = a_cluster(
        [*(a_node(name, cpu="10", memory="10Gi") for name in ("n1", "n2")), a_node("small", cpu="1")]
    )
    measured(cluster, n1=(9, 1), n2=(8, 1), small=(0, 0))
    scheduler = ProfileScheduler(a_profile(usageThresholds={"cpu": 50}, whenAllOver=when), cluster)

    decision = schedule(scheduler, cluster.templates.info(a_pod("p", cpu="2")))

    assert decision.outcome is AttemptOutcome[outcome]
    assert decision.node == ("n2" if when == "Admit" else "")
    if when == "Refuse":
        assert "2 node(s) cpu usage exceed threshold" in decision.message


@pytest.mark.parametrize(
    ("args", "kind"), [({}, "LeastUsed"), ({"usageThresholds": {"cpu": 60}}, "LowVariation")]
)
def test_what_is_kept_equals_a_computation_from_scratch(args: dict[str, Any], kind: str) -> None:
    """While pods come and go, readings come in, and what pods are expected to use changes; by numpy."""
    chance = random.Random(7)
    cluster = a_cluster([a_node(f"n{n}", cpu="10", memory="32Gi") for n in range(6)])
    keeper = LoadKeeper(cluster)
    profile = a_profile(scoringStrategy={"type": kind}, **args)
    kept = ProfileScheduler(profile, cluster)
    placed: list[Any] = []

    for step in range(60):
        owner = chance.choice("ab")
        pod = cluster.templates.info(a_pod(f"p{step}", cpu="500m", owner=f"ReplicaSet/{owner}"))
        decision, fresh = schedule(kept, pod), schedule(ProfileScheduler(profile, cluster, kernel=None), pod)
        assert (decision.node, decision.total) == (fresh.node, fresh.total)
        afresh = ProfileScheduler(profile, cluster, kernel=None)
        assert np.array_equal(kept.rank(pod).totals, afresh.rank(pod).totals)
        if decision.node:
            cluster.place(pod, decision.node)
            placed.append(pod)
        if len(placed) > 10:
            cluster.displace(placed.pop(chance.randrange(len(placed))).uid)
        if step % 3 == 0:
            now = 1_000.0 + 60.0 * step
            pods = [LoadReading(each.key, chance.random() * CORE, GIB, now) for each in placed]
            nodes = [LoadReading(f"n{n}", chance.random() * 9 * CORE, 9 * GIB, now) for n in range(5)]
            keeper.observe(now, LoadReadings.of(nodes), LoadReadings.of(pods))


def test_weights_of_nothing_are_refused() -> None:
    """The sentence says what to do."""
    with pytest.raises(ValidationError, match="all weights are 0; give one resource a weight"):
        plugin(resourceWeights={"cpu": 0})


class TestScores(ScorePluginConformance):
    """The laws of score plugins."""

    plugin = plugin()


class TestFilters(FilterPluginConformance):
    """The laws of filter plugins."""

    plugin = plugin(usageThresholds={"cpu": 50, "memory": 60})


def test_a_profile_with_it_places_by_load_whatever_its_filter() -> None:
    """So that usage is collected for it, and policies that move by load find one yardstick."""
    assert a_profile().scores_load
    defaults = [Enabled(*each) for each in DEFAULT_PLUGINS.items()]
    assert not build_profile(ProfileConfig("plain"), Registry(IN_TREE), defaults).scores_load


def test_versions_are_kept_of_so_many_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of others are the same again."""
    monkeypatch.setattr(node_load, "MOST_KEPT", 3)
    cluster = nodes_of_ten("n1", "n2")
    book = measured(cluster, n1=(1, 1), n2=(2, 2)).book
    templates = [cluster.templates.info(a_pod(f"p{at}", cpu=str(at))).template for at in range(1, 9)]
    versions = []
    for template in templates:
        versions.append(plugin().result_version(template, Snapshot(cluster)))
        assert len(book.kept) <= 3

    assert versions == [plugin().result_version(each, Snapshot(cluster)) for each in templates]
