"""Deployments: rollout, scaling, pause, revisions, conditions."""

from typing import Any

import pytest

from simulated_cluster import Simulation

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def deploy(cluster: Simulation, replicas: int = 2, surge: int = 1, unavailable: int = 0, **spec: Any) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    spec = {"strategy": strategy, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, **spec}
    cluster.workload("Deployment", "web", replicas, **spec)
    cluster.settle()


def roll_to(cluster: Simulation, image: Any) -> None:
    template = cluster.template({"app": "web"}, image)
    cluster.change("Deployment", "web", {"spec": {"template": template}})
    cluster.settle()


def sets(cluster: Simulation) -> Any:
    """The ReplicaSets' sizes by image."""
    found = cluster.api.list("replicasets.apps", "default")
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"] for one in found
    }


def status(cluster: Simulation) -> Any:
    return cluster.get("deployments.apps", "web")["status"]


def conditions(cluster: Simulation) -> Any:
    return {one["type"]: (one["status"], one["reason"]) for one in status(cluster)["conditions"]}


def complete(cluster: Simulation) -> None:
    """Make pods ready until nothing changes any more."""
    for _ in range(20):
        before = [pod["metadata"]["name"] for pod in cluster.pods()]
        cluster.ready()
        cluster.settle(31)
        for pod in cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                cluster.api.delete("pods", "default", pod["metadata"]["name"], grace_seconds=0)
        cluster.settle()
        if [pod["metadata"]["name"] for pod in cluster.pods()] == before:
            return


def test_makes_a_replica_set_of_its_template(cluster: Simulation) -> None:
    """Named after the Deployment and a hash, which labels and selector bear, too."""
    deploy(cluster)

    (one,) = cluster.api.list("replicasets.apps", "default")
    digest = one["metadata"]["labels"]["pod-template-hash"]
    assert one["metadata"]["name"] == f"web-{digest}"
    assert one["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": digest}}
    assert one["spec"]["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": digest}
    assert one["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    assert {pod["metadata"]["generateName"] for pod in cluster.pods()} == {f"web-{digest}-"}


def test_tells_when_it_is_complete(cluster: Simulation) -> None:
    """Progressing until all pods are available, and then why it stopped."""
    deploy(cluster)
    assert conditions(cluster) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }
    assert status(cluster)["unavailableReplicas"] == 2

    complete(cluster)

    assert conditions(cluster) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert status(cluster)["availableReplicas"] == status(cluster)["updatedReplicas"] == 2
    assert cluster.get("deployments.apps", "web")["metadata"]["generation"] == 1


def test_rolls_out_no_faster_than_readiness(cluster: Simulation) -> None:
    """With surge 1 and unavailable 0 the second pod waits for the first to be ready."""
    deploy(cluster)
    complete(cluster)

    roll_to(cluster, "app:2")
    assert sets(cluster) == {"app:1": 2, "app:2": 1}
    cluster.settle(60)
    assert sets(cluster) == {"app:1": 2, "app:2": 1}
    complete(cluster)

    assert sets(cluster) == {"app:1": 0, "app:2": 2}


def test_going_back_uses_the_old_set_with_a_new_revision(cluster: Simulation) -> None:
    """There are two sets after three rollouts, and the history has the first number."""
    deploy(cluster)
    complete(cluster)
    for image in ("app:2", "app:1"):
        roll_to(cluster, image)
        complete(cluster)

    assert sets(cluster) == {"app:1": 2, "app:2": 0}
    assert cluster.get("deployments.apps", "web")["metadata"]["annotations"][REVISION] == "3"
    found = cluster.api.list("replicasets.apps", "default")
    revisions = {one["metadata"]["annotations"][REVISION] for one in found}
    assert revisions == {"2", "3"}
    newest = next(one for one in found if one["metadata"]["annotations"][REVISION] == "3")
    assert newest["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"


def test_a_paused_deployment_scales_but_does_not_roll_out(cluster: Simulation) -> None:
    """A new template makes no set while the Deployment is paused; a new size counts."""
    deploy(cluster)
    complete(cluster)
    cluster.change("Deployment", "web", {"spec": {"paused": True}})
    cluster.settle()
    assert conditions(cluster)["Progressing"] == ("Unknown", "DeploymentPaused")

    roll_to(cluster, "app:2")
    cluster.change("Deployment", "web", {"spec": {"replicas": 4}})
    cluster.settle()
    assert sets(cluster) == {"app:1": 4}
    cluster.change("Deployment", "web", {"spec": {"paused": False}})
    cluster.settle()

    assert "app:2" in sets(cluster)


def test_a_size_changed_in_a_rollout_is_shared_out(cluster: Simulation) -> None:
    """Both sets grow in proportion, and the surge is kept."""
    deploy(cluster, replicas=10, surge=2, unavailable=0)
    complete(cluster)
    roll_to(cluster, "app:2")
    assert sets(cluster) == {"app:1": 10, "app:2": 2}

    cluster.change("Deployment", "web", {"spec": {"replicas": 20}})
    cluster.settle()

    # allowed 22, to add 10: round(10 * 22 / 12) - 10 = 8 and round(2 * 22 / 12) - 2 = 2
    assert sets(cluster) == {"app:1": 18, "app:2": 4}


def test_recreate_waits_until_the_old_pods_are_gone(cluster: Simulation) -> None:
    """No pod of the new template starts while one of the old is left."""
    deploy(cluster, strategy={"type": "Recreate"})
    complete(cluster)

    roll_to(cluster, "app:2")
    assert sets(cluster) == {"app:1": 0}
    complete(cluster)

    assert sets(cluster) == {"app:1": 0, "app:2": 2}


def test_old_sets_beyond_the_history_are_deleted(cluster: Simulation) -> None:
    """With a limit of one, one empty set is kept: the newest of the old."""
    deploy(cluster, revisionHistoryLimit=1)
    complete(cluster)
    for image in ("app:2", "app:3", "app:4"):
        roll_to(cluster, image)
        complete(cluster)

    assert sets(cluster) == {"app:3": 0, "app:4": 2}


def test_a_rollout_without_progress_is_reported(cluster: Simulation) -> None:
    """After its deadline the Deployment says that it is stuck."""
    deploy(cluster, progressDeadlineSeconds=60)

    cluster.settle(59)
    assert conditions(cluster)["Progressing"] == ("True", "ReplicaSetUpdated")
    cluster.settle(3)

    assert conditions(cluster)["Progressing"] == ("False", "ProgressDeadlineExceeded")


def test_what_it_leaves_goes_with_it(cluster: Simulation) -> None:
    """Its sets and pods are deleted when it is."""
    deploy(cluster)

    cluster.api.delete("deployments.apps", "default", "web", propagation="Background")
    cluster.settle(60)

    assert sets(cluster) == {}
    assert all("deletionTimestamp" in pod["metadata"] for pod in cluster.pods())
