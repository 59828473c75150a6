"""The simple scheduler: which node it chooses, why it chooses none, and claims that wait for it."""

from typing import Any

import pytest

from roadstead.scheduler import Scheduler
from simulated_cluster import Simulation

CLASSES, CLAIMS, VOLUMES = "storageclasses.storage.k8s.io", "persistentvolumeclaims", "persistentvolumes"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    simulation.with_controllers().with_kubelets()
    Scheduler(simulation.context).start()
    return simulation


def node_of(cluster: Simulation, name: str) -> Any:
    cluster.settle()
    return cluster.get("pods", name)["spec"].get("nodeName")


def why(cluster: Simulation, name: str) -> Any:
    cluster.settle()
    (condition,) = [one for one in cluster.status(name)["conditions"] if one["type"] == "PodScheduled"]
    return condition["reason"], condition["message"]


def late_class(cluster: Simulation, provisioner: str) -> None:
    late = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.api.create(CLASSES, {"metadata": {"name": "late"}, **late})


def claiming_pod(cluster: Simulation, name: str = "user") -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    cluster.create("PersistentVolumeClaim", name, resource=CLAIMS, **spec)
    cluster.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    cluster.settle(2)


def test_pods_are_spread_by_what_they_request(cluster: Simulation) -> None:
    """The node with the least allocated share; the first in the alphabet of equal ones."""
    cluster.nodes("n1", "n2")

    cluster.pod("large", requests={"cpu": "3"})
    cluster.pod("small", requests={"cpu": "1"})
    cluster.pod("other", requests={"cpu": "1"})

    assert [node_of(cluster, name) for name in ("large", "small", "other")] == ["n1", "n2", "n2"]
    assert ("Scheduled", "Successfully assigned default/large to n1") in cluster.events()


def test_it_never_allocates_more_than_a_node_has(cluster: Simulation) -> None:
    """A pod waits, and is bound when another has left or has ended."""
    cluster.nodes("n1", cpu="2")
    cluster.pod("first", requests={"cpu": "2"})
    cluster.pod("second", requests={"cpu": "2"})
    assert why(cluster, "second") == ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")

    cluster.end("first", "Succeeded")
    assert node_of(cluster, "second") == "n1"
    cluster.pod("third", requests={"cpu": "2"})
    assert node_of(cluster, "third") is None
    cluster.api.delete("pods", "default", "second", grace_seconds=0)

    assert node_of(cluster, "third") == "n1"


def test_each_filter_says_why(cluster: Simulation) -> None:
    cluster.nodes("cordoned", "tainted", "full")
    cluster.api.patch("nodes", None, "cordoned", {"spec": {"unschedulable": True}})
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    cluster.api.patch("nodes", None, "tainted", {"spec": {"taints": [taint]}})

    cluster.pod("pod", requests={"cpu": "100"})
    cluster.pod("choosy", nodeSelector={"disk": "ssd"})
    cluster.pod("tolerant", tolerations=[{"key": "a", "operator": "Exists"}], requests={"cpu": "1"})

    assert why(cluster, "pod")[1] == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable."
    )
    assert "2 node(s) didn't match Pod's node affinity/selector" in why(cluster, "choosy")[1]
    assert node_of(cluster, "tolerant") in ("tainted", "full")


def test_pods_of_other_schedulers_and_gated_ones_are_left_alone(cluster: Simulation) -> None:
    cluster.nodes("n1")
    cluster.pod("others", schedulerName="plimsoll")
    cluster.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    assert [node_of(cluster, name) for name in ("others", "gated")] == [None, None]

    cluster.api.patch("pods", "default", "gated", {"spec": {"schedulingGates": []}})

    assert node_of(cluster, "gated") == "n1"


def test_a_job_runs_to_its_end(cluster: Simulation) -> None:
    cluster.nodes("n1")
    template = {
        "metadata": {"annotations": {"roadstead.test/exit-after": "1"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"},
    }
    cluster.create("Job", "work", completions=2, template=template)

    cluster.settle(20)

    assert cluster.get("jobs.batch", "work")["status"]["succeeded"] == 2


def test_a_late_claim_gets_a_volume_where_its_pod_goes(cluster: Simulation) -> None:
    """The pod is bound when its claim is."""
    cluster.nodes("n1")
    late_class(cluster, "kubernetes.io/host-path")

    claiming_pod(cluster)

    assert (
        cluster.get(CLAIMS, "user")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    )
    assert cluster.get(CLAIMS, "user")["status"]["phase"] == "Bound"
    assert node_of(cluster, "user") == "n1"


def test_a_pod_waits_until_its_volume_is_provisioned(cluster: Simulation) -> None:
    """By a program that is not part of the cluster; the node is written on the claim meanwhile."""
    cluster.nodes("n1")
    late_class(cluster, "example.com/disks")
    claiming_pod(cluster)
    claim = cluster.get(CLAIMS, "user")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert node_of(cluster, "user") is None

    reference = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "example.com", "volumeHandle": "1"},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
    }
    cluster.api.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})

    assert node_of(cluster, "user") == "n1"


def test_the_volumes_of_a_class_without_provisioner_decide_on_the_node(cluster: Simulation) -> None:
    """Two pods with claims, one local volume: one pod is bound, to the node of the volume."""
    cluster.nodes("n1", "n2")
    late_class(cluster, "kubernetes.io/no-provisioner")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    cluster.api.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
    cluster.settle()

    claiming_pod(cluster, "first")
    claiming_pod(cluster, "second")

    assert (node_of(cluster, "first"), node_of(cluster, "second")) == ("n2", None)
    assert why(cluster, "second")[1] == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]},
            'persistentvolumeclaim "none" not found',
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "unbound"}}]},
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
            "resource claims are not supported by the simple scheduler",
        ),
    ],
)
def test_a_pod_whose_claims_are_not_there_waits(cluster: Simulation, spec: Any, message: str) -> None:
    cluster.nodes("n1")
    unbound = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.create("PersistentVolumeClaim", "unbound", resource=CLAIMS, **unbound)

    cluster.pod("pod", **spec)

    assert why(cluster, "pod")[1] == message
