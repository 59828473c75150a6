"""Claims of PodGroups: made once for all members, reserved for the group, and released with it."""

from typing import Any

import pytest

from roadstead.controllers.resource_claims import FINALIZER, is_reserved_for
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError
from simulated_cluster import Simulation

GROUPS, CLAIMS = "podgroups.scheduling.k8s.io", "resourceclaims.resource.k8s.io"
SLICES, TEMPLATES = "resourceslices.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
SHARED = {"name": "gpu", "resourceClaimTemplateName": "shared"}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}


@pytest.fixture
def cluster() -> Simulation:
    return Simulation(pod_groups=True).with_controllers()


def group(cluster: Simulation, *claims: Any) -> Any:
    policy = {"gang": {"minCount": 2}}
    made = cluster.create(
        "PodGroup", "train", resource=GROUPS, schedulingPolicy=policy, resourceClaims=list(claims)
    )
    cluster.settle()
    return made


def member(cluster: Simulation, name: str, claim: Any = SHARED) -> Any:
    made = cluster.pod(name, schedulingGroup={"podGroupName": "train"}, resourceClaims=[claim])
    cluster.settle()
    return made


def template(cluster: Simulation) -> None:
    cluster.create("ResourceClaimTemplate", "shared", resource=TEMPLATES, spec=SPEC)
    cluster.settle()


def claims(cluster: Simulation) -> Any:
    return cluster.api.list(CLAIMS, "default")


def named(cluster: Simulation, pod: str) -> Any:
    """The claim that the status of a pod names."""
    return [one["resourceClaimName"] for one in cluster.status(pod).get("resourceClaimStatuses", ())]


def reserve(cluster: Simulation, claim: Any, made: Any) -> None:
    """Write what a scheduler writes for a group."""
    held = copied(claim)
    held["metadata"]["finalizers"] = [FINALIZER]
    held = copied(cluster.api.update(CLAIMS, held))
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train"}
    consumers = [{**user, "uid": made["metadata"]["uid"]}]
    held["status"] = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": consumers}
    cluster.api.update_status(CLAIMS, held)
    cluster.settle()


def test_one_claim_is_made_for_the_group_and_all_members_name_it(cluster: Simulation) -> None:
    """Members come before the group, and the template last."""
    for name in ("a", "b"):
        member(cluster, name)
    made = group(cluster, SHARED)
    assert claims(cluster) == []

    template(cluster)

    (claim,) = claims(cluster)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert claim["metadata"]["generateName"] == "train-gpu-"
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert owner == {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    name = claim["metadata"]["name"]
    status = cluster.get(GROUPS, "train")["status"]
    assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": name}]
    assert named(cluster, "a") == named(cluster, "b") == [name]


@pytest.mark.parametrize(
    "listed", [{**SHARED, "name": "net"}, {"name": "gpu", "resourceClaimTemplateName": "other"}]
)
def test_a_pod_that_lists_a_claim_differently_gets_its_own(cluster: Simulation, listed: Any) -> None:
    """Name and source must both be the group's."""
    template(cluster)
    group(cluster, listed)

    pod = member(cluster, "a")

    owners = [one["metadata"]["ownerReferences"][0]["uid"] for one in claims(cluster)]
    assert pod["metadata"]["uid"] in owners


def test_the_reservation_of_a_group_outlives_its_members_and_goes_with_it(cluster: Simulation) -> None:
    """A member made again names the same claim; a group made again has another one."""
    template(cluster)
    made = group(cluster, SHARED)
    first = member(cluster, "a")
    (claim,) = claims(cluster)
    reserve(cluster, claim, made)
    cluster.api.delete("pods", "default", "a")
    cluster.settle()
    member(cluster, "a")

    (kept,) = claims(cluster)
    assert is_reserved_for(kept, first)
    assert named(cluster, "a") == [claim["metadata"]["name"]]

    cluster.api.delete(GROUPS, "default", "train")
    cluster.settle(5)
    assert claims(cluster) == []

    group(cluster, SHARED)
    (again,) = claims(cluster)
    assert named(cluster, "a") == [again["metadata"]["name"]] != [claim["metadata"]["name"]]
    assert again.get("status", {}) == {}


def test_a_claim_reserved_for_the_group_lets_its_members_start(cluster: Simulation) -> None:
    """A kubelet takes the group's reservation for the member's; a taint on the device ends them all."""
    cluster = cluster.with_kubelets()
    cluster.nodes("n1", devices="1")
    template(cluster)
    made = group(cluster, SHARED)
    pods = [member(cluster, name) for name in ("a", "b")]
    for pod in pods:
        cluster.bind(pod, "n1")
    cluster.settle(2)
    assert {cluster.status(name)["phase"] for name in ("a", "b")} == {"Pending"}

    reserve(cluster, claims(cluster)[0], made)
    cluster.settle(5)

    assert {cluster.status(name)["phase"] for name in ("a", "b")} == {"Running"}

    taint = {"key": "broken", "effect": "NoExecute"}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0", "taints": [taint]}]
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": devices}
    cluster.api.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    cluster.settle(60)
    cluster.settle(60)
    assert cluster.pods() == []


@pytest.mark.parametrize(
    ("listed", "fault"),
    [
        ([{"name": "a"}], "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        ([{**SHARED, "resourceClaimName": "b"}], "must specify exactly one of"),
        ([SHARED, SHARED], "Duplicate value"),
        ([{"resourceClaimName": "b"}], "Required value"),
        ([{**SHARED, "name": f"c{number}"} for number in range(5)], "must have at most 4 items"),
    ],
)
def test_faulty_claims_of_a_group_are_rejected(cluster: Simulation, listed: Any, fault: str) -> None:
    with pytest.raises(StatusError, match=fault):
        group(cluster, *listed)
