"""Decisions against the plainest scheduler there is: each plugin is asked about all nodes, each time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.kernel.library import MOST_CHANGES
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import CycleState, PreFilterResult, Registry, Snapshot
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.drawn_worlds import some_cluster, some_nodes, some_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)


def plainly(profile: Profile, cluster: Cluster, pod: Pod) -> dict[str, int] | None:
    """The total of each feasible node, with nothing kept; None where PreFilter refuses the pod."""
    state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
    names, skipped = {node.name for node in cluster.nodes}, set()
    for first in profile.pre_filter:
        answer = first.pre_filter(state, info, snapshot)
        if isinstance(answer, PreFilterResult):
            names &= answer.nodes
        elif answer.is_skip:
            skipped.add(first.name)
        elif not answer.is_success:
            return None
    for judge in profile.filter:
        if judge.name not in skipped:
            codes = judge.filter(state, info, snapshot).tolist()
            names -= {node.name for node, code in zip(cluster.nodes, codes, strict=True) if code}
    rows = snapshot.at(
        np.array([row for row, node in enumerate(cluster.nodes) if node.name in names], np.intp)
    )
    unscored = {
        each.name for each in profile.pre_score if names and each.pre_score(state, info, rows).is_skip
    }
    totals = [0] * len(names)
    for plugin in profile.score:
        if plugin.name not in unscored and names:
            points = plugin.score(state, info, rows)
            if hasattr(plugin, "normalize"):
                points = plugin.normalize(state, info, points)
            weight = profile.weights[plugin.name]
            totals = [one + weight * int(more) for one, more in zip(totals, points, strict=True)]
    return dict(zip([node.name for node in cluster.nodes if node.name in names], totals, strict=True))


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(some_cluster(), st.lists(some_pod(), min_size=1, max_size=2), st.lists(some_nodes(), max_size=2))
def test_a_pod_goes_where_the_sum_of_all_plugins_is_highest(
    drawn: tuple[Any, Any], pods: list[Pod], changes: list[Any]
) -> None:
    """Whatever is kept from earlier attempts, and after nodes have changed."""
    scheduler = ProfileScheduler(PROFILE, a_cluster(*drawn))
    cluster = scheduler.cluster
    for nodes in [(), *changes]:
        for node in nodes:
            cluster.set_node(node)
        for pod in pods:
            totals = plainly(PROFILE, cluster, pod)
            decision = schedule(scheduler, cluster.templates.info(pod))
            if not totals:
                assert decision.outcome is not AttemptOutcome.SCHEDULED
                continue
            assert decision.outcome is AttemptOutcome.SCHEDULED
            assert decision.feasible == len(totals)
            assert totals[decision.node] == max(totals.values())
            assert decision.total in (None, max(totals.values()))


def apart(kind: str, when: str) -> dict[str, Any]:
    """A rule about pods with the label app=web: apart or near by zone or host, or spread."""
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    key = "kubernetes.io/hostname" if kind.endswith("host") else "topology.kubernetes.io/zone"
    term = {"topologyKey": key, **selector}
    if kind.startswith("spread"):
        return {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": when, **term}]}
    kind = kind.removesuffix("-host")
    if when == "DoNotSchedule":
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    weighed = [{"weight": 5, "podAffinityTerm": term}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighed}}}


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["spread", "spread-host", "podAffinity", "podAntiAffinity"]),
            st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            st.sampled_from(["web", "db"]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.integers(0, 3), min_size=4, max_size=12),
)
def test_pods_that_look_at_one_another_go_there_one_after_the_other(
    drawn: list[tuple[str, str, str]], turns: list[int]
) -> None:
    """Each is placed where it was sent; now and then the first one that is there leaves."""
    zone = "topology.kubernetes.io/zone"
    nodes = [a_node(f"n{at}", cpu="8", labels={zone: f"z{at % 2}"}) for at in range(4)]
    scheduler = ProfileScheduler(PROFILE, a_cluster(nodes))
    cluster, there = scheduler.cluster, list[str]()
    for number, turn in enumerate(turns):
        if turn == 3 and there:
            cluster.displace(there.pop(0))
        kind, when, app = drawn[turn % len(drawn)]
        pod = a_pod(f"p{number}", cpu="1", labels={"app": app}, **apart(kind, when))
        totals = plainly(PROFILE, cluster, pod)
        decision = schedule(scheduler, cluster.templates.info(pod))
        assert (decision.outcome is AttemptOutcome.SCHEDULED) is bool(totals)
        if totals:
            assert decision.feasible == len(totals)
            assert totals[decision.node] == max(totals.values())
            cluster.place(cluster.templates.info(pod), decision.node)
            there.append(pod.uid)


@pytest.mark.parametrize("count", [1, 3, MOST_CHANGES + 3])
def test_a_pod_goes_there_also_after_more_changes_than_are_remembered(count: int) -> None:
    """Pods come and go between two attempts, and the last ones stay on what was the best node."""
    nodes = [a_node(name, cpu="64") for name in ("a", "b", "c")]
    scheduler = ProfileScheduler(PROFILE, a_cluster(nodes))
    cluster, pod = scheduler.cluster, a_pod("p", cpu="1")
    info = cluster.templates.info(pod)
    others = [cluster.templates.info(a_pod(f"o{number}", cpu="1")) for number in range(3)]
    for attempt in range(2):
        best = schedule(scheduler, info).node
        for number in range(count):
            other = others[number % 3]
            cluster.displace(other.uid)
            cluster.place(other, best)
        decision, totals = schedule(scheduler, info), plainly(PROFILE, cluster, pod)
        assert totals is not None
        assert decision.node != best or attempt
        assert (decision.total, totals[decision.node]) == (max(totals.values()),) * 2


WEB = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
LIKES = {"weight": 1, "preference": {"matchExpressions": [{"key": "good", "operator": "Exists"}]}}


@pytest.mark.parametrize(
    ("worse", "better", "there", "pod"),
    [
        pytest.param({"taints": ["out=of:PreferNoSchedule"]}, {}, {}, {}, id="TaintToleration"),
        pytest.param(
            {},
            {"labels": {"good": "yes"}},
            {},
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [LIKES]}}},
            id="NodeAffinity",
        ),
        pytest.param({"cpu": "8"}, {"cpu": "32"}, {}, {}, id="NodeResourcesFit"),
        pytest.param(
            {},
            {},
            {"worse": {"labels": {"app": "web"}}},
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **WEB}]},
            id="PodTopologySpread",
        ),
        pytest.param(
            {},
            {},
            {"better": {"labels": {"app": "web"}}},
            apart("podAffinity-host", "Any"),
            id="InterPodAffinity",
        ),
        pytest.param(
            {},
            {"status": {"images": [{"names": ["app:latest"], "sizeBytes": 600_000_000}]}},
            {},
            {},
            id="ImageLocality",
        ),
    ],
)
def test_each_plugin_can_decide(
    worse: dict[str, Any], better: dict[str, Any], there: dict[str, Any], pod: dict[str, Any]
) -> None:
    """Two nodes that differ for it alone; again after other pods have come and gone."""
    cluster = a_cluster(
        [a_node("worse", **{"cpu": "16", **worse}), a_node("better", **{"cpu": "16", **better})]
    )
    for name, more in there.items():
        cluster.place(cluster.templates.info(a_pod(f"on-{name}", **more)), name)
    scheduler = ProfileScheduler(PROFILE, cluster)
    asked = a_pod("p", labels={"app": "web"}, cpu="1", **pod)
    for _ in range(3):
        assert schedule(scheduler, cluster.templates.info(asked)).node == "better"
        other = cluster.templates.info(a_pod("other", cpu="1"))
        for node in ("worse", "better"):
            cluster.place(other, node)
            cluster.displace(other.uid)
