"""Node controllers: taints, taint eviction, pods of deleted nodes."""

from typing import Any

import pytest

from roadstead.kubelets.nodes import KUBELET
from simulated_cluster import Simulation

TOLERATED = {"operator": "Exists", "effect": "NoExecute"}
DRIVES_OUT = {"key": "maintenance", "effect": "NoExecute"}


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    simulation.with_controllers().with_kubelets()
    simulation.nodes("n1", "n2")
    return simulation


def taints(cluster: Simulation, node: str = "n1") -> Any:
    """Key and effect of a node's taints, without the usual prefix."""
    message = (cluster.get("nodes", node, None).get("spec") or {}).get("taints") or []
    return sorted((one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in message)


def set_condition(cluster: Simulation, kind: Any, status: Any) -> None:
    node = cluster.get("nodes", "n1", None)
    conditions = [one for one in node["status"]["conditions"] if one["type"] != kind]
    conditions.append({"type": kind, "status": status, "lastTransitionTime": cluster.api.now()})
    cluster.api.update_status("nodes", {**node, "status": {**node["status"], "conditions": conditions}})
    cluster.settle()


def test_a_cordon_is_a_taint(cluster: Simulation) -> None:
    """Set and removed with spec.unschedulable; taints of others stay."""
    mine = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    cluster.api.patch("nodes", None, "n1", {"spec": {"unschedulable": True, "taints": [mine]}})
    cluster.settle()
    assert taints(cluster) == [("dedicated", "NoSchedule"), ("unschedulable", "NoSchedule")]

    cluster.api.patch("nodes", None, "n1", {"spec": {"unschedulable": None}})
    cluster.settle()

    assert taints(cluster) == [("dedicated", "NoSchedule")]


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("MemoryPressure", "True", [("memory-pressure", "NoSchedule")]),
        ("DiskPressure", "True", [("disk-pressure", "NoSchedule")]),
        ("PIDPressure", "True", [("pid-pressure", "NoSchedule")]),
        ("Ready", "False", [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")]),
        ("Ready", "Unknown", [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]),
    ],
)
def test_what_is_wrong_with_a_node_is_a_taint(
    cluster: Simulation, kind: Any, status: Any, expected: Any
) -> None:
    """As long as it is wrong."""
    set_condition(cluster, kind, status)
    assert taints(cluster) == expected

    set_condition(cluster, kind, "True" if kind == "Ready" else "False")

    assert taints(cluster) == []


@pytest.mark.parametrize(
    ("tolerations", "stays_s"),
    [
        pytest.param([], 0, id="untolerated"),
        pytest.param([{**TOLERATED, "tolerationSeconds": 20}], 20, id="for-a-while"),
        pytest.param([TOLERATED], None, id="for-ever"),
    ],
)
def test_a_no_execute_taint_drives_pods_out(cluster: Simulation, tolerations: Any, stays_s: Any) -> None:
    """Immediately, when their toleration expires, or never."""
    cluster.pod("a", "n1", tolerations=tolerations, terminationGracePeriodSeconds=0)
    cluster.settle(2)

    cluster.api.patch("nodes", None, "n1", {"spec": {"taints": [DRIVES_OUT]}})
    if stays_s:
        cluster.settle(stays_s - 1)
        assert "deletionTimestamp" not in cluster.get("pods", "a")["metadata"]
    cluster.settle(5)

    assert (cluster.get("pods", "a") is None) is (stays_s is not None)


def test_a_removed_taint_evicts_no_pod(cluster: Simulation) -> None:
    """The time a pod had left does not matter any more."""
    cluster.pod("a", "n1", tolerations=[{**TOLERATED, "tolerationSeconds": 20}])
    cluster.api.patch("nodes", None, "n1", {"spec": {"taints": [DRIVES_OUT]}})
    cluster.settle(10)

    cluster.api.patch("nodes", None, "n1", {"spec": {"taints": None}})
    cluster.settle(60)

    assert "deletionTimestamp" not in cluster.get("pods", "a")["metadata"]


def test_a_node_whose_kubelet_stops_loses_its_pods(cluster: Simulation) -> None:
    """Its pods are deleted after the five minutes that they tolerate; they go when the kubelet is back."""
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    not_ready = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    tolerations = [{**one, "tolerationSeconds": 300} for one in (unreachable, not_ready)]
    cluster.pod("a", "n1", tolerations=tolerations, terminationGracePeriodSeconds=30)
    cluster.settle(2)

    cluster.api.patch("nodes", None, "n1", {"metadata": {"annotations": {KUBELET: "stopped"}}})
    cluster.settle(290)
    assert "deletionTimestamp" not in cluster.get("pods", "a")["metadata"]
    cluster.settle(60)
    assert "deletionTimestamp" in cluster.get("pods", "a")["metadata"]

    cluster.api.patch("nodes", None, "n1", {"metadata": {"annotations": {KUBELET: "simulated"}}})
    cluster.settle(5)
    assert cluster.get("pods", "a") is None


def test_pods_of_a_deleted_node_are_deleted(cluster: Simulation) -> None:
    """After the quarantine, without waiting for a kubelet that is gone."""
    cluster.pod("a", "n1")
    cluster.pod("b", "n2")
    cluster.settle(2)

    cluster.api.delete("nodes", None, "n1")
    cluster.settle(39)
    assert cluster.get("pods", "a")
    cluster.settle(2)

    assert cluster.get("pods", "a") is None
    assert cluster.get("pods", "b")


def test_a_node_that_comes_back_keeps_its_pods(cluster: Simulation) -> None:
    """Within the quarantine nothing is lost."""
    cluster.pod("a", "n1")
    cluster.settle(2)

    cluster.api.delete("nodes", None, "n1")
    cluster.settle(20)
    cluster.nodes("n1")
    cluster.settle(60)

    assert cluster.get("pods", "a")
