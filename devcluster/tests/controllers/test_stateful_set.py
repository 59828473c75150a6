"""StatefulSets: names, order, claims, updates."""

from typing import Any

import pytest

from simulated_cluster import Simulation


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def create(cluster: Simulation, replicas: Any, **spec: Any) -> None:
    claim: dict[str, Any] = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    cluster.workload("StatefulSet", "db", replicas, serviceName="db", volumeClaimTemplates=[claim], **spec)
    cluster.settle()


def names(cluster: Simulation) -> Any:
    return [pod["metadata"]["name"] for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"]]


def images(cluster: Simulation) -> Any:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}


def forget_deleted(cluster: Simulation) -> None:
    for pod in cluster.pods():
        if "deletionTimestamp" in pod["metadata"]:
            cluster.api.delete("pods", "default", pod["metadata"]["name"], grace_seconds=0)
    cluster.settle()


def test_starts_one_after_the_other(cluster: Simulation) -> None:
    """The next pod waits until the one before is ready."""
    create(cluster, 3)
    assert names(cluster) == ["db-0"]
    cluster.ready()
    assert names(cluster) == ["db-0", "db-1"]
    cluster.ready()
    cluster.ready()

    assert names(cluster) == ["db-0", "db-1", "db-2"]
    status = cluster.get("statefulsets.apps", "db")["status"]
    counts = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert [status[one] for one in counts] == [3] * 5


def test_parallel_starts_all_together(cluster: Simulation) -> None:
    """PodManagementPolicy Parallel waits for no pod."""
    create(cluster, 3, podManagementPolicy="Parallel")

    assert names(cluster) == ["db-0", "db-1", "db-2"]


def test_a_pod_knows_its_name_and_its_claim(cluster: Simulation) -> None:
    """Host name, subdomain, labels and volume are of its ordinal."""
    create(cluster, 1)

    (pod,) = cluster.pods()
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert labels["apps.kubernetes.io/pod-index"] == "0"
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "data")
    assert volume["persistentVolumeClaim"]["claimName"] == "data-db-0"
    assert cluster.get("persistentvolumeclaims", "data-db-0")["metadata"]["labels"] == {"app": "db"}


def test_a_deleted_pod_comes_back_with_its_name(cluster: Simulation) -> None:
    """Only after the old one is gone; its claim stays."""
    create(cluster, 1)
    cluster.ready()
    claim = cluster.get("persistentvolumeclaims", "data-db-0")["metadata"]["uid"]
    before = cluster.get("pods", "db-0")["metadata"]["uid"]

    cluster.api.delete("pods", "default", "db-0")
    cluster.settle()
    forget_deleted(cluster)

    assert cluster.get("pods", "db-0")["metadata"]["uid"] != before
    assert cluster.get("persistentvolumeclaims", "data-db-0")["metadata"]["uid"] == claim


def test_a_failed_pod_is_replaced(cluster: Simulation) -> None:
    """An evicted or failed pod makes room for its successor."""
    create(cluster, 1)
    before = cluster.get("pods", "db-0")["metadata"]["uid"]

    cluster.end("db-0", "Failed")
    cluster.settle()
    forget_deleted(cluster)

    assert cluster.get("pods", "db-0")["metadata"]["uid"] != before


def test_shrinks_from_the_highest(cluster: Simulation) -> None:
    """The highest ordinal goes first."""
    create(cluster, 3, podManagementPolicy="Parallel")
    cluster.ready()

    cluster.change("StatefulSet", "db", {"spec": {"replicas": 1}})
    cluster.settle()
    forget_deleted(cluster)

    assert names(cluster) == ["db-0"]


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        pytest.param(0, {"db-0": "app:2", "db-1": "app:2", "db-2": "app:2"}, id="all"),
        pytest.param(2, {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}, id="from-the-partition"),
    ],
)
def test_a_new_template_replaces_pods_from_the_highest(
    cluster: Simulation, partition: Any, expected: Any
) -> None:
    """One at a time, each after the one above is ready again, down to the partition."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    create(cluster, 3, podManagementPolicy="Parallel", updateStrategy=strategy)
    cluster.ready()

    template = cluster.template({"app": "db"}, "app:2")
    cluster.change("StatefulSet", "db", {"spec": {"template": template}})
    cluster.settle()
    replaced = []
    for _ in range(8):
        replaced += [
            pod["metadata"]["name"] for pod in cluster.pods() if "deletionTimestamp" in pod["metadata"]
        ]
        forget_deleted(cluster)
        cluster.ready()

    assert images(cluster) == expected
    assert replaced == sorted(replaced, reverse=True)
    assert len(cluster.api.list("controllerrevisions.apps", "default")) == 2


def test_on_delete_waits_for_somebody_to_delete(cluster: Simulation) -> None:
    """A new template counts for pods that are deleted by hand."""
    create(cluster, 1, updateStrategy={"type": "OnDelete"})
    cluster.ready()
    template = cluster.template({"app": "db"}, "app:2")
    cluster.change("StatefulSet", "db", {"spec": {"template": template}})
    cluster.settle(60)
    assert images(cluster) == {"db-0": "app:1"}

    cluster.api.delete("pods", "default", "db-0", grace_seconds=0)
    cluster.settle()

    assert images(cluster) == {"db-0": "app:2"}
