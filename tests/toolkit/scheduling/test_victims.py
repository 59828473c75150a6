"""Victims found on many nodes in one pass are those found by trial, node by node."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry, Snapshot
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.pods_by_importance import PodsByImportance
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from plimsoll.toolkit.scheduling.victims import (
    CANDIDATE,
    NO_VICTIMS,
    NONE_LOWER,
    KeptVictims,
    VictimsFound,
    victims_by_trial,
)

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name) for name in ("PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "DefaultBinder")],
)

ALL_PLUGINS = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)
ZONE = "topology.kubernetes.io/zone"


def apart(key: str) -> dict[str, Any]:
    """Required anti-affinity to web pods."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def together(key: str) -> dict[str, Any]:
    """Required affinity to web pods."""
    return {"podAffinity": apart(key)["podAntiAffinity"]}


def spread(key: str, most: int) -> dict[str, Any]:
    """Web pods evenly, by force."""
    return {
        "topologyKey": key,
        "maxSkew": most,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }


LABELS: Any = ({}, {"app": "db"}, {"app": "web"}, {"app": "web", "tier": "x"})

#: What makes a pod's fit depend on more than sums, as fields of its spec.
WISHES: Any = (
    {},
    {"affinity": apart("kubernetes.io/hostname")},
    {"affinity": apart(ZONE)},
    {"affinity": together(ZONE)},
    {"topologySpreadConstraints": [spread(ZONE, 1)]},
    {"topologySpreadConstraints": [spread(ZONE, 2), spread("kubernetes.io/hostname", 1)]},
    {"containers": [{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]},
)


def wishing(pod: Pod, wish: dict[Any, Any]) -> Pod:
    """The pod with these fields in its spec; what its containers request stays."""
    document = json.loads(msgspec.json.encode(pod))
    spec = document["spec"]
    for field, value in wish.items():
        if field == "containers":
            spec["containers"][0]["ports"] = value[0]["ports"]
        else:
            spec[field] = value
    return convert(Pod, document)


@st.composite
def full_clusters(
    draw: Callable[..., Any],
    wishes: tuple[dict[str, Any], ...] | tuple[dict[Any, Any]] = ({},),
    fewest: int = 1,
) -> Cluster:
    """Up to five small nodes, crowded with pods of several priorities, some of them protected."""
    nodes = [
        a_node(
            f"n{number}",
            cpu=draw(st.integers(1, 4)),
            pods=draw(st.integers(1, 5)),
            unschedulable=draw(st.integers(0, 4)) == 0,
            labels={"kubernetes.io/hostname": f"n{number}", ZONE: draw(st.sampled_from("ab"))},
        )
        for number in range(draw(st.integers(1 if wishes == ({},) else 3, 5)))
    ]
    pods = [
        wishing(
            a_pod(
                f"p{number}",
                node=draw(st.sampled_from(nodes)).name,
                cpu=draw(st.sampled_from(["500m", "1", "2"])),
                priority=draw(st.sampled_from([-5, 0, 1, 50])),
                labels=draw(
                    st.sampled_from([{}, {"app": "web"}, {"app": "web", "tier": "x"}, {"app": "db"}])
                ),
                status={"startTime": f"2026-01-01T0{draw(st.integers(0, 3))}:00:00Z"},
            ),
            draw(st.sampled_from(wishes)),
        )
        for number in range(draw(st.integers(4 * (fewest - 1), 12)))
    ]
    cluster = a_cluster(nodes, pods)
    for name, labels in {"web": {"app": "web"}, "x": {"tier": "x"}}.items():
        if draw(st.booleans()):
            cluster.objects.budgets[f"default/{name}"] = convert(
                PodDisruptionBudget,
                {
                    "metadata": {"name": name, "namespace": "default"},
                    "spec": {"selector": {"matchLabels": labels}},
                    "status": {"disruptionsAllowed": draw(st.integers(0, 2))},
                },
            )
    return cluster


@settings(suppress_health_check=list(HealthCheck))
@given(
    full_clusters(),
    st.sampled_from(["500m", "1", "2", "3"]),
    st.sampled_from([0, 1, 100]),
    st.lists(st.tuples(st.sampled_from(["n0", "n1", "n2"]), st.sampled_from([0, 100])), max_size=3),
)
def test_many_together_equal_one_by_one(
    cluster: Cluster, cpu: str, priority: int, nominated: list[tuple[str, int]]
) -> None:
    """Same candidates, victims in the same order, violations, refusals; and the same best."""
    scheduler = ProfileScheduler(PROFILE, cluster)
    for number, (node, rank) in enumerate(nominated):
        waiting = a_pod(f"waiting-{number}", cpu="1", priority=rank)
        scheduler.nominator.add(cluster.templates.info(waiting), node)
    pod = cluster.templates.info(a_pod("preemptor", cpu=cpu, priority=priority))
    what_if = scheduler.what_if(pod)
    snapshot = Snapshot(cluster)
    pods = snapshot.index(PodsByImportance)
    pods.refresh(snapshot)
    rows = what_if.helpful()
    assert what_if.by_sums(rows).all()

    kept = KeptVictims(snapshot)
    kept.complete(pod, rows, snapshot, what_if)

    found = []
    for row in rows.tolist():
        outcome = victims_by_trial(pod, row, pods.pods[row], DisruptionBudgets(cluster.objects), what_if)
        kind = int(kept.kinds[row])
        if isinstance(outcome, VictimsFound):
            found.append(outcome)
            assert kind == CANDIDATE
            assert kept.at(row, snapshot) == outcome
        else:
            assert outcome == (NO_VICTIMS if kind == NONE_LOWER else what_if.refusal(kind))
    assert kept.count(rows) == (len(found), sum(not each.violations for each in found))
    lowest = min((each.cost() for each in found), default=None)
    assert kept.best(rows).tolist() == [each.row for each in found if each.cost() == lowest]
    validate(cluster)


@settings(suppress_health_check=list(HealthCheck))
@given(
    full_clusters(wishes=(*[{}] * 5, *WISHES), fewest=3),
    st.sampled_from(WISHES[1:]),
    st.sampled_from(["1", "2", "3"]),
    st.sampled_from([1, 100]),
    st.lists(st.sampled_from(["n0", "n1"]), max_size=1),
)
def test_where_sums_decide_trial_finds_the_same(
    cluster: Cluster, wish: dict[str, Any], cpu: str, priority: int, nominated: list[str]
) -> None:
    """Whatever else the pod wishes: on a node that fulfils it, only room remains to be made."""
    scheduler = ProfileScheduler(ALL_PLUGINS, cluster)
    for node in nominated:
        scheduler.nominator.add(cluster.templates.info(a_pod("waiting", cpu="1", priority=100)), node)
    wanting = a_pod("preemptor", cpu=cpu, priority=priority, labels={"app": "web"})
    pod = cluster.templates.info(wishing(wanting, wish))
    what_if = scheduler.what_if(pod)
    snapshot = Snapshot(cluster)
    pods = snapshot.index(PodsByImportance)
    pods.refresh(snapshot)
    rows = what_if.helpful()
    by_sums = what_if.by_sums(rows)
    event(f"sums decide on some: {by_sums.any()}, on all: {by_sums.all()}")

    kept = KeptVictims(snapshot)
    kept.complete(pod, rows[by_sums], snapshot, what_if)

    for row in rows[by_sums].tolist():
        outcome = victims_by_trial(pod, row, pods.pods[row], DisruptionBudgets(cluster.objects), what_if)
        kind = int(kept.kinds[row])
        if isinstance(outcome, VictimsFound):
            assert kept.at(row, snapshot) == outcome
        else:
            assert outcome == (NO_VICTIMS if kind == NONE_LOWER else what_if.refusal(kind))
    if "podAffinity" in wish.get("affinity", {}):
        assert not by_sums.any()
    validate(cluster)


@pytest.mark.parametrize(
    ("wish", "decide"), [({"affinity": together(ZONE)}, False), ({"affinity": apart(ZONE)}, True)]
)
def test_sums_do_not_decide_about_a_pod_that_wants_to_be_near_another(
    wish: dict[str, Any], decide: bool
) -> None:
    """The victim may be the one that it wants to be near, and is not the one that it keeps away from."""
    labels = {"app": "web"} if not decide else {}
    cluster = a_cluster(
        [a_node("n", cpu="1", labels={ZONE: "a"})], [a_pod("p", node="n", cpu="1", labels=labels)]
    )
    pod = cluster.templates.info(wishing(a_pod("preemptor", cpu="1", priority=1), wish))
    what_if = ProfileScheduler(ALL_PLUGINS, cluster).what_if(pod)
    rows = what_if.helpful()

    assert rows.tolist() == [0]
    assert what_if.by_sums(rows).tolist() == [decide]
