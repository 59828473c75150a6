"""Places: which nodes surely take a pod, by the rules of the API."""

from __future__ import annotations

from typing import Any

import pytest

from promises.commits import Commit, Obj
from promises.placeable import REQUIRED, Places
from promises.view import View

ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str = "a", taints: tuple[Obj, ...] = (), cpu: str = "2") -> Obj:
    """A node that is ready."""
    return {
        "metadata": {"name": name, "uid": name, "labels": {ZONE: zone, "kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str = "new", on: str = "", cpu: str = "1", priority: int = 0, **spec: Any) -> Obj:
    """A pod with a label of its name's first letter."""
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": name[0]}},
        "spec": {"nodeName": on, "containers": containers, "priority": priority, **spec},
        "status": {},
    }


def places(wanted: Obj, *objects: Obj) -> Places:
    """Of a cluster with these nodes and pods."""
    view = View()
    for each in (*objects, wanted):
        view.see(Commit("pods" if "containers" in each["spec"] else "nodes", "ADDED", each))
    return Places(view)


TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "n"}}}
TAINT = {"key": "gone", "effect": "NoSchedule"}
IN_B = {"nodeSelectorTerms": [{}, {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}
SPREAD = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
BY_NODE = {**SPREAD, "topologyKey": "kubernetes.io/hostname"}
OPEN: Obj = {"containers": [{"ports": [{"containerPort": 80}]}]}
PORT: Obj = {"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]}


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        pytest.param(pod(), [], ["x", "y"], id="room on both"),
        pytest.param(pod(cpu="3"), [], [], id="more than a node has"),
        pytest.param(pod(), [pod("old", "x", "1500m")], ["y"], id="too little is left"),
        pytest.param(
            pod(), [{**pod("old", cpu="1500m"), "status": {"nominatedNodeName": "x"}}], ["y"], id="nominated"
        ),
        pytest.param(pod(**PORT), [pod("old", "x", **PORT)], ["y"], id="port taken"),
        pytest.param(pod(nodeSelector={ZONE: "b"}), [], ["y"], id="selector"),
        pytest.param(pod(affinity={"nodeAffinity": {REQUIRED: IN_B}}), [], ["y"], id="node affinity"),
        pytest.param(
            pod(affinity={"podAntiAffinity": {REQUIRED: [TERM]}}), [pod("n1", "x")], ["y"], id="keeps away"
        ),
        pytest.param(
            pod(),
            [pod("old", "x", affinity={"podAntiAffinity": {REQUIRED: [TERM]}})],
            ["y"],
            id="kept away",
        ),
        pytest.param(
            pod(affinity={"podAntiAffinity": {REQUIRED: [TERM]}}),
            [pod("old", "x")],
            ["x", "y"],
            id="not from it",
        ),
        pytest.param(
            pod("web"),
            [pod("old", "x", affinity={"podAntiAffinity": {REQUIRED: [TERM]}})],
            ["x", "y"],
            id="others are kept away",
        ),
        pytest.param(pod(**OPEN), [pod("old", "x", **OPEN)], ["x", "y"], id="ports of their own"),
        pytest.param(
            pod(hostNetwork=True, **OPEN),
            [pod("old", "x", hostNetwork=True, **OPEN)],
            ["y"],
            id="ports of the node",
        ),
        pytest.param(pod(topologySpreadConstraints=[SPREAD]), [pod("n1", "x")], ["y"], id="hard spreading"),
        pytest.param(
            pod(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]),
            [pod("n1", "x")],
            ["x", "y"],
            id="soft spreading",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[BY_NODE], nodeSelector={ZONE: "a"}),
            [pod("n1", "x")],
            ["x"],
            id="nodes that it cannot use do not count",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[SPREAD]), [pod("old", "x")], ["x", "y"], id="pods of other labels"
        ),
        pytest.param(
            pod(topologySpreadConstraints=[SPREAD]),
            [{**pod("n1", "x"), "metadata": {**pod("n1")["metadata"], "namespace": "other"}}],
            ["x", "y"],
            id="pods of another namespace",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[{**SPREAD, "minDomains": 2}]),
            [pod("n1", "x"), pod("n2", "y")],
            ["x", "y"],
            id="enough zones",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[{**SPREAD, "minDomains": 3}]),
            [pod("n1", "x"), pod("n2", "y")],
            [],
            id="too few zones",
        ),
        pytest.param(
            {**pod(), "metadata": {**pod()["metadata"], "labels": {"plimsoll.dev/pod-group": "gang"}}},
            [],
            [],
            id="one of a group",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[SPREAD, BY_NODE]),
            [pod("n1", "x"), pod("n2", "y")],
            ["x", "y"],
            id="nodes without one of the labels do not count",
        ),
        pytest.param(pod(schedulingGates=[{"name": "a/b"}]), [], [], id="gated"),
        pytest.param(pod(affinity={"podAffinity": {REQUIRED: [TERM]}}), [], [], id="not evaluated"),
    ],
)
def test_a_place_is_sure(wanted: Obj, there: list[Obj], expected: list[str]) -> None:
    """Each rule takes a node away; a rule that is not evaluated takes all.

    A third node is tainted, and in no zone.
    """
    third = node("z", taints=(TAINT,))
    del third["metadata"]["labels"][ZONE]
    found = places(wanted, node("x", "a"), node("y", "b"), third, *there).of(wanted)

    assert list(found) == expected


@pytest.mark.parametrize(("labels", "expected"), [({ZONE: ""}, []), ({}, ["x", "y"])])
def test_an_empty_label_is_a_zone_of_its_own(labels: dict[str, str], expected: list[str]) -> None:
    """Also of a node that the pod does not tolerate; it has none of the pods."""
    third = node("z", taints=({"key": "gone", "effect": "NoSchedule"},))
    third["metadata"]["labels"] = labels
    wanted, there = pod(topologySpreadConstraints=[SPREAD]), [pod("n1", "x"), pod("n2", "y")]
    found = places(wanted, node("x", "a"), node("y", "b"), third, *there).of(wanted)

    assert list(found) == expected


def test_a_taint_keeps_away_what_does_not_tolerate_it() -> None:
    """By key, operator and effect."""
    tolerant = pod(tolerations=[{"key": "gone", "operator": "Exists"}])
    other = pod(tolerations=[{"key": "gone", "value": "x"}])

    assert list(places(tolerant, node("x", taints=(TAINT,))).of(tolerant)) == ["x"]
    assert list(places(other, node("x", taints=(TAINT,))).of(other)) == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(priority=10), ["x"], id="more important"),
        pytest.param(pod(priority=0), [], id="as important"),
        pytest.param(pod(priority=10, preemptionPolicy="Never"), [], id="never preempts"),
        pytest.param(pod(priority=10, cpu="3"), [], id="too large for the node"),
    ],
)
def test_less_important_pods_make_room(wanted: Obj, expected: list[str]) -> None:
    """As preemption would."""
    assert list(places(wanted, node("x"), pod("old", "x", "2")).by_force(wanted)) == expected


@pytest.mark.parametrize(
    ("of_wanted", "of_other"),
    [pytest.param(10, 10, id="as important"), pytest.param(0, -5, id="not important")],
)
def test_others_stay(of_wanted: int, of_other: int) -> None:
    """Only what is less important goes, and only for what has a priority."""
    wanted = pod(priority=of_wanted)

    assert list(places(wanted, node("x"), pod("old", "x", "2", priority=of_other)).by_force(wanted)) == []


@pytest.mark.parametrize(
    "demand",
    [
        pytest.param(PORT, id="host port"),
        pytest.param({"topologySpreadConstraints": [SPREAD]}, id="hard spreading"),
        pytest.param({"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}}, id="anti-affinity"),
        pytest.param({"volumes": [{"name": "tmp", "emptyDir": {}}]}, id="volume"),
        pytest.param({"schedulingGates": [{"name": "a/b"}]}, id="gate"),
    ],
)
def test_room_for_plain_demands_alone(demand: Obj) -> None:
    """Of others nothing is said: removing pods may not help them."""
    wanted = pod(priority=10, **demand)

    assert list(places(wanted, node("x"), pod("old", "x", "2")).by_force(wanted)) == []
