"""Claims on devices: made for pods, reserved, released and deleted."""

from typing import Any

import pytest

from roadstead.controllers.resource_claims import FINALIZER, base_name
from roadstead.values.copies import copied
from simulated_cluster import Simulation

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
FROM_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def template(cluster: Simulation, **metadata: Any) -> None:
    spec = {"metadata": metadata, "spec": CLAIM} if metadata else {"spec": CLAIM}
    cluster.create("ResourceClaimTemplate", "one-gpu", resource=TEMPLATES, **spec)
    cluster.settle()


def pod(cluster: Simulation, name: str = "p", claims: Any = FROM_TEMPLATE, **more: Any) -> Any:
    made = cluster.pod(name, resourceClaims=claims, **more)
    cluster.settle()
    return made


def claims(cluster: Simulation) -> Any:
    return cluster.api.list(CLAIMS, "default")


def allocate(cluster: Simulation, claim: Any, *pods: Any, result: Any = RESULT) -> None:
    """Write what a scheduler writes before it binds pods."""
    held = copied(claim)
    held["metadata"]["finalizers"] = [FINALIZER]
    held = copied(cluster.api.update(CLAIMS, held))
    consumers = [
        {"resource": "pods", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]} for one in pods
    ]
    held["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    cluster.api.update_status(CLAIMS, held)
    cluster.settle()


def test_a_claim_is_made_for_a_pod_from_its_template(cluster: Simulation) -> None:
    """It is named after both, belongs to the pod, and the pod's status names it."""
    template(cluster, labels={"team": "a"}, annotations={"why": "training"})

    made = pod(cluster)

    (claim,) = claims(cluster)
    meta = claim["metadata"]
    assert meta["name"].startswith("p-gpu-")
    assert meta["generateName"] == "p-gpu-"
    assert meta["labels"] == {"team": "a"}
    assert meta["annotations"] == {"why": "training", "resource.kubernetes.io/pod-claim-name": "gpu"}
    (owner,) = meta["ownerReferences"]
    uid = made["metadata"]["uid"]
    assert owner == {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert cluster.status("p")["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": meta["name"]}
    ]


def test_a_pod_waits_for_its_template(cluster: Simulation) -> None:
    """An event says so, and the claim is made as soon as the template is there."""
    pod(cluster)
    missing = (
        'PodResourceClaim gpu: resource claim template "one-gpu": resourceclaimtemplate.resource.k8s.io '
        '"one-gpu" not found'
    )
    assert ("FailedResourceClaimCreation", missing) in cluster.events()
    assert {one["source"]["component"] for one in cluster.api.list("events")} == {"resource_claim"}

    template(cluster)

    assert len(claims(cluster)) == 1


def test_a_claim_that_the_status_does_not_name_yet_is_taken(cluster: Simulation) -> None:
    """As after a crash between both writes: no second claim is made."""
    template(cluster)
    pod(cluster)
    named = cluster.status("p")["resourceClaimStatuses"]
    bare = copied(cluster.get("pods", "p"))
    del bare["status"]["resourceClaimStatuses"]
    cluster.api.update_status("pods", bare)

    cluster.settle()

    assert cluster.status("p")["resourceClaimStatuses"] == named
    assert len(claims(cluster)) == 1


def test_a_claim_that_was_deleted_is_made_again(cluster: Simulation) -> None:
    """While its pod needs one."""
    template(cluster)
    pod(cluster)
    (first,) = claims(cluster)

    cluster.api.delete(CLAIMS, "default", first["metadata"]["name"])
    cluster.settle()

    (second,) = claims(cluster)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert cluster.status("p")["resourceClaimStatuses"][0]["resourceClaimName"] == second["metadata"]["name"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_gives_its_devices_back(cluster: Simulation, phase: str) -> None:
    """Its own claim is deleted, though the pod stays."""
    template(cluster)
    made = pod(cluster)
    allocate(cluster, claims(cluster)[0], made)
    cluster.bind(made, "n1")

    cluster.end("p", phase)
    cluster.settle()

    assert claims(cluster) == []
    assert cluster.get("pods", "p") is not None


def test_a_claim_of_a_pod_that_is_gone_is_collected(cluster: Simulation) -> None:
    """With its allocation, for which the finalizer held it."""
    template(cluster)
    made = pod(cluster)
    allocate(cluster, claims(cluster)[0], made)

    cluster.api.delete("pods", "default", "p", grace_seconds=0)
    cluster.settle()

    assert claims(cluster) == []


def test_a_shared_claim_is_released_by_the_last_of_its_pods(cluster: Simulation) -> None:
    """Until then it keeps its devices; it stays, for it was not made for a pod."""
    cluster.create("ResourceClaim", "shared", resource=CLAIMS, **CLAIM)
    named = [{"name": "gpu", "resourceClaimName": "shared"}]
    pods = [pod(cluster, name, named) for name in ("a", "b")]
    allocate(cluster, cluster.get(CLAIMS, "shared"), *pods)

    cluster.api.delete("pods", "default", "a", grace_seconds=0)
    cluster.settle()
    claim = cluster.get(CLAIMS, "shared")
    assert [one["name"] for one in claim["status"]["reservedFor"]] == ["b"]
    assert "allocation" in claim["status"]

    cluster.api.delete("pods", "default", "b", grace_seconds=0)
    cluster.settle()
    claim = cluster.get(CLAIMS, "shared")
    assert claim["status"] == {}
    assert "finalizers" not in claim["metadata"]


def test_a_pod_that_is_deleted_while_it_runs_keeps_its_devices(cluster: Simulation) -> None:
    """Its containers may use them until it is gone."""
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    made = pod(cluster, claims=[{"name": "gpu", "resourceClaimName": "mine"}])
    allocate(cluster, cluster.get(CLAIMS, "mine"), made)
    cluster.bind(made, "n1")

    cluster.api.delete("pods", "default", "p")
    cluster.settle()

    assert cluster.get(CLAIMS, "mine")["status"]["reservedFor"]


def test_another_pod_of_the_same_name_is_no_consumer(cluster: Simulation) -> None:
    """The reservation was for the one before."""
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    named = [{"name": "gpu", "resourceClaimName": "mine"}]
    made = pod(cluster, claims=named)
    gone = {**made, "metadata": {**made["metadata"], "uid": "00000000-0000-4000-8000-000000000000"}}

    allocate(cluster, cluster.get(CLAIMS, "mine"), gone)

    assert cluster.get(CLAIMS, "mine")["status"] == {}


def test_a_pod_bound_past_the_scheduler_gets_allocated_claims(cluster: Simulation) -> None:
    """The controller reserves them; one without devices keeps the pod from starting."""
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    allocate(cluster, cluster.get(CLAIMS, "mine"))

    made = pod(cluster, claims=[{"name": "gpu", "resourceClaimName": "mine"}], node="n1")

    (consumer,) = cluster.get(CLAIMS, "mine")["status"]["reservedFor"]
    assert consumer["uid"] == made["metadata"]["uid"]


def test_a_deleted_claim_that_nothing_uses_goes(cluster: Simulation) -> None:
    """Though it is allocated."""
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    allocate(cluster, cluster.get(CLAIMS, "mine"))

    cluster.api.delete(CLAIMS, "default", "mine")
    cluster.settle()

    assert claims(cluster) == []


def test_long_names_are_cut_in_proportion() -> None:
    """So that both can be recognized."""
    assert base_name("p", "gpu") == "p-gpu-"
    cut = base_name("a" * 60, "b" * 20)
    assert len(cut) <= 57
    assert cut == "a" * 41 + "-" + "b" * 13


@pytest.mark.parametrize(
    ("tolerations", "stays_s"),
    [
        ([], 0.0),
        ([{"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}], 30.0),
        ([{"operator": "Exists"}], None),
    ],
)
def test_a_tainted_device_drives_pods_out(cluster: Simulation, tolerations: Any, stays_s: Any) -> None:
    """As long as its claim's allocation tolerates it; a pod of another device stays."""
    sliced = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    }
    slices = "resourceslices.resource.k8s.io"
    made = cluster.api.create(slices, {"metadata": {"name": "n1"}, "spec": sliced})
    for name, device in (("p", "gpu-0"), ("other", "gpu-1")):
        cluster.create("ResourceClaim", name, resource=CLAIMS, **CLAIM)
        user = pod(cluster, name, [{"name": "gpu", "resourceClaimName": name}])
        result = {**RESULT, "device": device, **({"tolerations": tolerations} if tolerations else {})}
        allocate(cluster, cluster.get(CLAIMS, name), user, result=result)
        cluster.bind(user, "n1")

    tainted = copied(made)
    tainted["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoExecute"}]
    cluster.api.update(slices, tainted)

    cluster.settle(1.0)
    gone = "deletionTimestamp" in cluster.get("pods", "p")["metadata"]
    assert gone == (stays_s == 0.0)
    cluster.settle(60.0)
    left = cluster.get("pods", "p")
    assert (left is None or "deletionTimestamp" in left["metadata"]) == (stays_s is not None)
    assert "deletionTimestamp" not in cluster.get("pods", "other")["metadata"]
    told = [one for one in cluster.api.list("events") if one["reason"] == "DeviceTaintManagerEviction"]
    speakers = [one["source"]["component"] for one in told]
    assert speakers == ["device-taint-eviction-controller"] * (stays_s is not None)
