"""ReplicaSets: size, successors, adoption, status."""

from typing import Any

import pytest

from simulated_cluster import Simulation


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def names(cluster: Simulation) -> Any:
    return {pod["metadata"]["name"] for pod in cluster.pods()}


def test_has_as_many_pods_as_asked_for(cluster: Simulation) -> None:
    """Pods bear the set's name, the template's labels and scheduler, and a reference to the set."""
    template = cluster.template({"app": "web"}, schedulerName="another")
    owner = cluster.workload("ReplicaSet", "web", 3, template=template)
    cluster.settle()

    pods = cluster.pods()
    assert len(pods) == 3
    for pod in pods:
        assert pod["metadata"]["name"].startswith("web-")
        assert pod["metadata"]["labels"] == {"app": "web"}
        assert pod["spec"]["schedulerName"] == "another"
        (reference,) = pod["metadata"]["ownerReferences"]
        assert reference == {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }


def test_counts_pods_as_they_become_ready_and_available(cluster: Simulation) -> None:
    """Ready immediately, available after minReadySeconds; a finished pod counts no more and is replaced."""
    cluster.workload("ReplicaSet", "web", 2, minReadySeconds=10)
    cluster.settle()
    cluster.ready()

    status = cluster.get("replicasets.apps", "web")["status"]
    assert (status["replicas"], status["readyReplicas"]) == (2, 2)
    assert "availableReplicas" not in status
    cluster.settle(11)
    assert cluster.get("replicasets.apps", "web")["status"]["availableReplicas"] == 2

    cluster.end(next(iter(names(cluster))), "Failed")
    cluster.settle()
    status = cluster.get("replicasets.apps", "web")["status"]
    assert (status["replicas"], status["readyReplicas"], len(cluster.pods())) == (2, 1, 3)


def test_a_deleted_pod_gets_a_successor(cluster: Simulation) -> None:
    """The successor has another name; there is one as soon as the deletion is asked for."""
    cluster.workload("ReplicaSet", "web", 2)
    cluster.settle()
    before = names(cluster)

    cluster.api.delete("pods", "default", min(before))
    cluster.settle()

    alive = {pod["metadata"]["name"] for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"]}
    assert len(alive) == 2
    assert min(before) not in alive


def test_shrinking_spares_those_that_are_ready(cluster: Simulation) -> None:
    """Pods that are not bound go first."""
    cluster.workload("ReplicaSet", "web", 2)
    cluster.settle()
    cluster.ready()
    kept = names(cluster)
    cluster.change("ReplicaSet", "web", {"spec": {"replicas": 5}})
    cluster.settle()

    cluster.change("ReplicaSet", "web", {"spec": {"replicas": 2}})
    cluster.settle()

    assert names(cluster) == kept


def test_a_pod_that_is_cheap_to_delete_goes_first(cluster: Simulation) -> None:
    """The annotation pod-deletion-cost decides between equals."""
    cluster.workload("ReplicaSet", "web", 3)
    cluster.settle()
    cluster.ready()
    cheap = max(names(cluster))
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    cluster.api.patch("pods", "default", cheap, cost)

    cluster.change("ReplicaSet", "web", {"spec": {"replicas": 2}})
    cluster.settle(40)

    alive = {pod["metadata"]["name"] for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"]}
    assert cheap not in alive
    assert len(alive) == 2


def test_adopts_orphans_that_it_selects(cluster: Simulation) -> None:
    """Orphans from before, and those that come later, count; strangers do not."""
    orphan = {"metadata": {"name": "early", "namespace": "default", "labels": {"app": "web"}}}
    container = {"containers": [{"name": "main", "image": "app:1"}]}
    cluster.api.create("pods", {**orphan, "spec": container})
    cluster.pod("stranger")
    cluster.workload("ReplicaSet", "web", 2)
    cluster.settle()

    assert len(names(cluster)) == 3
    assert cluster.get("pods", "early")["metadata"]["ownerReferences"][0]["name"] == "web"
    assert "ownerReferences" not in cluster.get("pods", "stranger")["metadata"]

    orphan["metadata"] = {**orphan["metadata"], "name": "late"}
    cluster.api.create("pods", {**orphan, "spec": container})
    cluster.settle()
    alive = [pod for pod in cluster.pods() if pod["metadata"].get("labels", {}).get("app") == "web"]
    assert len(alive) == 2


def test_releases_a_pod_that_it_does_not_select_any_more(cluster: Simulation) -> None:
    """A pod whose label is changed is left alone, and replaced."""
    cluster.workload("ReplicaSet", "web", 1)
    cluster.settle()
    (name,) = names(cluster)

    cluster.api.patch("pods", "default", name, {"metadata": {"labels": {"app": "debug"}}})
    cluster.settle()

    assert "ownerReferences" not in cluster.get("pods", name)["metadata"]
    assert len(names(cluster)) == 2


def test_creates_many_pods_in_batches(cluster: Simulation) -> None:
    """A set of hundreds is completed over several turns."""
    cluster.workload("ReplicaSet", "web", 300)

    cluster.settle()

    assert len(cluster.pods()) == 300
    assert cluster.get("replicasets.apps", "web")["status"]["replicas"] == 300


def test_events_are_limited(cluster: Simulation) -> None:
    """Three hundred pods make fewer than three hundred events."""
    cluster.workload("ReplicaSet", "web", 300)

    cluster.settle()

    assert 0 < len(cluster.events()) <= 25
    assert cluster.events()[0][0] == "SuccessfulCreate"
