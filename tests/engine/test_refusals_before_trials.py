"""Nodes that sums of requests rule out are refused as their trials would refuse them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry, Status, unschedulable
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE, default_preemption
from plimsoll.testing.builders import a_cluster, a_node, a_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)
GREEN = {"labelSelector": {"matchLabels": {"color": "green"}}}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {**GREEN, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
}
SPREAD = {
    "topologySpreadConstraints": [
        {**GREEN, "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
}
NODES = [("n0", "a"), ("n1", "a"), ("n2", "b"), ("n3", "b")]
PODS = st.lists(
    st.tuples(
        st.sampled_from([name for name, _ in NODES]),
        st.sampled_from(["500m", "1", "2", "3"]),
        st.sampled_from([0, 5, 10]),
        st.sampled_from(["green", "blue"]),
    ),
    max_size=9,
)


def decided(placed: Any, cpu: str, wishes: dict[str, Any], nominated: str) -> Any:
    """The decision about a pod of priority 7, and why each node refuses it."""
    nodes = [
        a_node(name, cpu="4", pods=3, labels={"zone": zone, "kubernetes.io/hostname": name})
        for name, zone in NODES
    ]
    pods = [
        a_pod(f"p{number}", cpu=amount, priority=priority, labels={"color": color}, node=node)
        for number, (node, amount, priority, color) in enumerate(placed)
    ]
    cluster = a_cluster(nodes, pods)
    scheduler = ProfileScheduler(PROFILE, cluster)
    if nominated:
        other = cluster.templates.info(a_pod("first", cpu="2", priority=9))
        scheduler.nominator.add(other, nominated)
    info = cluster.templates.info(a_pod("new", cpu=cpu, priority=7, labels={"color": "green"}, **wishes))
    found = schedule(scheduler, info)
    made = found.nomination
    search = made.search if made is not None else None
    return (
        found.outcome,
        found.node,
        found.message,
        made and (made.status, made.node, made.victims and [each.name for each in made.victims]),
        search and search.statuses(),
    )


@given(PODS, st.sampled_from(["1", "3", "5"]), st.sampled_from([APART, SPREAD]), st.sampled_from(["", "n1"]))
def test_trials_say_the_same(placed: Any, cpu: str, wishes: dict[str, Any], nominated: str) -> None:
    without_trials = decided(placed, cpu, wishes, nominated)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(default_preemption, "refusals_before_trial", lambda *_: {})
        assert decided(placed, cpu, wishes, nominated) == without_trials


def test_a_filter_before_the_sums_is_named_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that a pod of higher priority holds, on a node that is too small besides."""
    ports = [{"containerPort": 80, "hostPort": 80}]
    amounts = {"requests": {"cpu": "3"}}
    wishes: dict[str, Any] = {
        "containers": [{"name": "main", "image": "main:1", "resources": amounts, "ports": ports}]
    }
    holder = a_pod("holder", priority=10, node="n0", **wishes)
    said = []
    for patched in (False, True):
        cluster = a_cluster([a_node("n0", cpu="4")], [holder, a_pod("low", cpu="1", node="n0")])
        new = cluster.templates.info(a_pod("new", priority=7, **wishes))
        if patched:
            monkeypatch.setattr(default_preemption, "refusals_before_trial", lambda *_: {})
        said.append(schedule(ProfileScheduler(PROFILE, cluster), new).message)
    assert said[0] == said[1]
    assert "free ports" in said[0].partition("preemption")[2]


def test_a_node_that_stays_too_small_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[int]()

    def note(_pod: Any, row: int, *_: Any) -> Status:
        tried.append(row)
        return unschedulable("tried")

    monkeypatch.setattr(default_preemption, "victims_by_trial", note)
    # On n0 a green pod of higher priority leaves too little; on n1 the lower one is in the way.
    full = [(name, "3", 10, "blue") for name in ("n2", "n3")]
    there = [("n0", "3", 10, "green"), ("n0", "1", 0, "blue"), ("n1", "2", 0, "green"), *full]
    decided(there, "3", APART, "")
    assert tried == [1]
