"""Claims and volumes: binding, provisioning, protection, reclaiming."""

from typing import Any

import pytest

from simulated_cluster import Simulation

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def storage_class(
    cluster: Simulation, name: str, provisioner: str, *, late: bool = False, default: bool = False
) -> None:
    metadata: Any = {"name": name}
    if default:
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    mode = "WaitForFirstConsumer" if late else "Immediate"
    cluster.api.create(CLASSES, {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode})


def claim(cluster: Simulation, name: str = "data", size: str = "1Gi", **spec: Any) -> Any:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    cluster.create("PersistentVolumeClaim", name, resource=CLAIMS, **spec)
    cluster.settle()
    return cluster.get(CLAIMS, name)


def volume(cluster: Simulation, name: str, size: str = "1Gi", **spec: Any) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": f"/tmp/{name}"},
        **spec,
    }
    cluster.api.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
    cluster.settle()


def phases(cluster: Simulation, resource: str = CLAIMS) -> Any:
    return {one["metadata"]["name"]: one["status"]["phase"] for one in cluster.api.list(resource)}


def user(cluster: Simulation, name: str = "user", node: str = "n1", claim_name: str = "data") -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    cluster.pod(name, node=node, volumes=volumes)
    cluster.settle()


def deleted(cluster: Simulation, name: str = "data") -> Any:
    """The claim, or None, after its deletion was requested."""
    cluster.api.delete(CLAIMS, "default", name)
    cluster.settle()
    return cluster.get(CLAIMS, name)


def test_a_claim_that_no_pod_uses_goes_at_its_deletion(cluster: Simulation) -> None:
    claim(cluster)

    assert deleted(cluster) is None


def test_a_claim_stays_until_the_last_pod_that_uses_it_is_deleted(cluster: Simulation) -> None:
    """As in kube-controller-manager 1.36, a pod that has ended counts, and one without a node does not."""
    claim(cluster)
    user(cluster, "first")
    user(cluster, "second")
    user(cluster, "unbound", node="")

    assert deleted(cluster)["metadata"]["deletionTimestamp"]
    cluster.end("first", "Succeeded")
    cluster.api.delete("pods", "default", "second", grace_seconds=0)
    cluster.settle()
    assert cluster.get(CLAIMS, "data")
    cluster.api.delete("pods", "default", "first", grace_seconds=0)
    cluster.settle()

    assert cluster.get(CLAIMS, "data") is None


def test_an_ephemeral_volume_has_a_claim_that_goes_with_its_pod(cluster: Simulation) -> None:
    """Named after pod and volume, in use until the pod is gone."""
    storage_class(cluster, "standard", "kubernetes.io/host-path", default=True)
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    cluster.pod("user", node="n1", volumes=volumes)
    cluster.settle()
    assert phases(cluster) == {"user-scratch": "Bound"}

    assert deleted(cluster, "user-scratch") is not None
    cluster.api.delete("pods", "default", "user", grace_seconds=0)
    cluster.settle()

    assert cluster.get(CLAIMS, "user-scratch") is None


def test_a_namespace_with_claims_and_pods_is_deleted(cluster: Simulation) -> None:
    cluster.api.create("namespaces", {"metadata": {"name": "mine"}})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.api.create(CLAIMS, {"metadata": {"name": "data", "namespace": "mine"}, "spec": spec})
    cluster.settle()

    cluster.api.delete("namespaces", None, "mine")
    cluster.settle(2)

    assert cluster.get("namespaces", "mine", None) is None


def test_the_smallest_volume_that_suffices_is_bound(cluster: Simulation) -> None:
    volume(cluster, "ample", "10Gi")
    volume(cluster, "small", "1Gi")
    volume(cluster, "fits", "2Gi")
    volume(cluster, "shared", "2Gi", accessModes=["ReadOnlyMany"])
    volume(cluster, "classy", "2Gi", storageClassName="other")

    bound = claim(cluster, size="1500Mi")

    assert bound["spec"]["volumeName"] == "fits"
    assert bound["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "2Gi"},
    }
    assert bound["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert phases(cluster, VOLUMES) == {
        "ample": "Available",
        "small": "Available",
        "fits": "Bound",
        "shared": "Available",
        "classy": "Available",
    }


def test_a_claim_is_bound_when_its_volume_comes_later(cluster: Simulation) -> None:
    assert claim(cluster)["status"] == {"phase": "Pending"}
    assert (
        "FailedBinding",
        "no persistent volumes available for this claim and no storage class is set",
    ) in cluster.events()

    volume(cluster, "late")

    assert phases(cluster) == {"data": "Bound"}


def test_a_volume_that_names_a_claim_is_kept_for_it(cluster: Simulation) -> None:
    volume(cluster, "kept", claimRef={"namespace": "default", "name": "chosen"})

    claim(cluster, "other")
    claim(cluster, "chosen")

    assert phases(cluster) == {"other": "Pending", "chosen": "Bound"}


def test_a_claim_that_names_a_volume_gets_no_other(cluster: Simulation) -> None:
    volume(cluster, "other")
    claim(cluster, volumeName="wanted")
    assert phases(cluster) == {"data": "Pending"}

    volume(cluster, "wanted", "5Gi")

    assert cluster.get(CLAIMS, "data")["status"]["capacity"] == {"storage": "5Gi"}
    assert phases(cluster, VOLUMES) == {"other": "Available", "wanted": "Bound"}


def test_volumes_of_a_host_path_class_are_made_and_go_with_their_claims(cluster: Simulation) -> None:
    storage_class(cluster, "standard", "kubernetes.io/host-path", default=True)

    bound = claim(cluster)

    name = f"pvc-{bound['metadata']['uid']}"
    assert (bound["spec"]["volumeName"], bound["spec"]["storageClassName"]) == (name, "standard")
    made = cluster.get(VOLUMES, name, None)
    assert made["metadata"]["finalizers"] == [
        "kubernetes.io/pv-controller",
        "kubernetes.io/pv-protection",
    ]
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert deleted(cluster) is None
    assert phases(cluster, VOLUMES) == {}


def test_a_claim_without_class_gets_the_default_class_that_comes_later(cluster: Simulation) -> None:
    claim(cluster)
    claim(cluster, "without", storageClassName="")

    storage_class(cluster, "standard", "kubernetes.io/host-path", default=True)
    cluster.settle()

    assert phases(cluster) == {"data": "Bound", "without": "Pending"}


@pytest.mark.parametrize(
    ("provisioner", "reason", "message"),
    [
        (
            "kubernetes.io/no-provisioner",
            "ProvisioningFailed",
            "no volume plugin matched name: kubernetes.io/no-provisioner",
        ),
        (
            "example.com/disks",
            "ExternalProvisioning",
            "Waiting for a volume to be created either by the external provisioner 'example.com/disks'",
        ),
    ],
)
def test_other_provisioners_are_waited_for(
    cluster: Simulation, provisioner: str, reason: str, message: str
) -> None:
    storage_class(cluster, "other", provisioner)

    waiting = claim(cluster, storageClassName="other")

    assert waiting["status"] == {"phase": "Pending"}
    assert next(said for one, said in cluster.events() if one == reason).startswith(message)


def test_a_late_claim_waits_for_a_node(cluster: Simulation) -> None:
    """A volume is made when the scheduler has written the node on the claim, and the node is there."""
    storage_class(cluster, "late", "kubernetes.io/host-path", late=True)
    claim(cluster, storageClassName="late")
    assert ("WaitForFirstConsumer", "waiting for first consumer to be created before binding") in (
        cluster.events()
    )
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    cluster.api.patch(CLAIMS, "default", "data", selected)
    cluster.settle()
    assert phases(cluster) == {"data": "Pending"}
    assert ("ProvisioningFailed", 'Failed to get target node: node "n1" not found') in cluster.events()

    cluster.nodes("n1")
    cluster.settle(16)

    assert phases(cluster) == {"data": "Bound"}


@pytest.mark.parametrize(
    ("policy", "path", "phase"),
    [
        ("Retain", "/tmp/data", "Released"),
        ("Delete", "/tmp/data", None),
        ("Delete", "/data", "Failed"),
        ("Recycle", "/data", "Available"),
    ],
)
def test_the_policy_decides_what_becomes_of_a_volume(
    cluster: Simulation, policy: str, path: str, phase: str | None
) -> None:
    volume(cluster, "disk", persistentVolumeReclaimPolicy=policy, hostPath={"path": path})
    claim(cluster)

    deleted(cluster)

    assert phases(cluster, VOLUMES).get("disk") == phase
    if phase == "Failed":
        message = "host_path deleter only supports /tmp/.+ but received provided /data"
        assert cluster.get(VOLUMES, "disk", None)["status"]["message"] == message


def test_a_released_volume_is_not_bound_to_a_claim_of_the_same_name(cluster: Simulation) -> None:
    """The reference has the uid of the deleted claim."""
    volume(cluster, "disk")
    claim(cluster)
    deleted(cluster)

    claim(cluster)

    assert phases(cluster) == {"data": "Pending"}
    assert phases(cluster, VOLUMES) == {"disk": "Released"}


def test_a_claim_that_is_made_again_is_another_one(cluster: Simulation) -> None:
    """Also where the controller has not seen that the first was gone."""
    volume(cluster, "disk")
    claim(cluster)
    cluster.api.patch(CLAIMS, "default", "data", {"metadata": {"finalizers": None}})
    cluster.api.delete(CLAIMS, "default", "data")

    claim(cluster)

    assert phases(cluster) == {"data": "Pending"}
    assert phases(cluster, VOLUMES) == {"disk": "Released"}


def test_a_claim_whose_volume_is_deleted_is_lost(cluster: Simulation) -> None:
    """The volume stays while it is bound, unless its finalizer is removed by force."""
    volume(cluster, "disk")
    claim(cluster)
    cluster.api.delete(VOLUMES, None, "disk")
    cluster.settle()
    assert phases(cluster, VOLUMES) == {"disk": "Bound"}

    cluster.api.patch(VOLUMES, None, "disk", {"metadata": {"finalizers": None}})
    cluster.settle()

    assert phases(cluster) == {"data": "Lost"}
