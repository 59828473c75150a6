"""DaemonSets: one pod for each node that fits."""

from typing import Any

import pytest

from simulated_cluster import Simulation


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    simulation.with_controllers()
    for name in ("a", "b"):
        add_node(simulation, name)
    simulation.settle()
    return simulation


def add_node(cluster: Simulation, name: Any, labels: Any = None, taints: Any = ()) -> None:
    ready = {"type": "Ready", "status": "True"}
    cluster.api.create(
        "nodes",
        {
            "metadata": {"name": name, "labels": labels or {"pool": "x"}},
            "spec": {"taints": list(taints)} if taints else {},
            "status": {"conditions": [ready]},
        },
    )


def create(cluster: Simulation, **template: Any) -> None:
    cluster.workload("DaemonSet", "agent", template=cluster.template({"app": "agent"}, **template))
    cluster.settle()


def tied(cluster: Simulation) -> Any:
    """The nodes to which living pods are tied, sorted."""
    return sorted(node_of(pod) for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"])


def node_of(pod: Any) -> Any:
    """The node to which a pod is tied."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (name,) = terms[0]["matchFields"][0]["values"]
    return name


def run_all(cluster: Simulation) -> None:
    for pod in cluster.pods():
        cluster.ready(pod["metadata"]["name"], node=node_of(pod))


def status(cluster: Simulation) -> Any:
    return cluster.get("daemonsets.apps", "agent")["status"]


def test_follows_the_nodes(cluster: Simulation) -> None:
    """A node more is a pod more; a node that does not fit any more loses its pod."""
    create(cluster, nodeSelector={"pool": "x"})
    assert tied(cluster) == ["a", "b"]
    add_node(cluster, "c")
    add_node(cluster, "other", {"pool": "y"})
    cluster.settle()
    assert tied(cluster) == ["a", "b", "c"]

    cluster.api.patch("nodes", None, "a", {"metadata": {"labels": {"pool": None}}})
    cluster.settle()

    assert tied(cluster) == ["b", "c"]


def test_keeps_away_from_taints_that_the_template_does_not_tolerate(cluster: Simulation) -> None:
    """A cordon and a node that is not ready are tolerated; a NoSchedule taint keeps pods that are there."""
    create(cluster)
    dedicated = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    add_node(cluster, "theirs", taints=[dedicated])
    cluster.api.patch("nodes", None, "a", {"spec": {"unschedulable": True}})
    cluster.api.patch("nodes", None, "b", {"spec": {"taints": [dedicated]}})
    cluster.settle()
    assert tied(cluster) == ["a", "b"]

    cluster.api.patch("nodes", None, "b", {"spec": {"taints": [{**dedicated, "effect": "NoExecute"}]}})
    cluster.settle()

    assert tied(cluster) == ["a"]


def test_counts_by_node(cluster: Simulation) -> None:
    """Desired, current, ready, available, and misscheduled."""
    create(cluster)
    assert status(cluster)["desiredNumberScheduled"] == status(cluster)["numberUnavailable"] == 2

    run_all(cluster)

    assert status(cluster)["numberReady"] == status(cluster)["numberAvailable"] == 2
    assert "numberUnavailable" not in status(cluster)
    assert status(cluster)["numberMisscheduled"] == 0


def test_a_failed_pod_is_replaced(cluster: Simulation) -> None:
    """A pod that the kubelet refused makes room for another try."""
    create(cluster)
    failed = cluster.pods()[0]["metadata"]["name"]

    cluster.end(failed, "Failed")
    cluster.settle(31)
    if cluster.get("pods", failed):
        cluster.api.delete("pods", "default", failed, grace_seconds=0)
    cluster.settle()

    assert cluster.get("pods", failed) is None
    assert tied(cluster) == ["a", "b"]


def test_a_new_template_replaces_one_pod_after_the_other(cluster: Simulation) -> None:
    """At most one pod is not available while pods are replaced."""
    create(cluster)
    run_all(cluster)

    template = cluster.template({"app": "agent"}, "app:2")
    cluster.change("DaemonSet", "agent", {"spec": {"template": template}})
    for _ in range(4):
        cluster.settle()
        gone = [pod for pod in cluster.pods() if "deletionTimestamp" in pod["metadata"]]
        assert len(gone) <= 1
        for pod in gone:
            cluster.api.delete("pods", "default", pod["metadata"]["name"], grace_seconds=0)
        cluster.settle()
        assert len([pod for pod in cluster.pods() if not pod.get("status", {}).get("conditions")]) <= 1
        run_all(cluster)

    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:2"}
    assert status(cluster)["updatedNumberScheduled"] == 2
