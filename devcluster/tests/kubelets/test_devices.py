"""The simulated driver, and pods that start when their devices are theirs."""

import json
import shutil
from typing import Any

import pytest
import yaml

from roadstead.kubelets.devices import DRIVER, SLICES, Devices, devices_of
from roadstead.kubelets.nodes import DEVICES
from roadstead.pytest_plugin import StartRoadstead
from roadstead.values.copies import copied
from simulated_cluster import Simulation

CLASSES, CLAIMS = "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io"
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}}


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    """Nodes, a driver and controllers, but no scheduler."""
    return simulation.with_controllers().with_kubelets().with_devices()


def slices(cluster: Simulation) -> Any:
    return [one["spec"] for one in cluster.api.list(SLICES)]


def wish(cluster: Simulation, node: str, text: str | None) -> None:
    cluster.api.patch("nodes", None, node, {"metadata": {"annotations": {DEVICES: text}}})
    cluster.settle()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", Devices(8)),
        ("count=4,model=a100,memory=40Gi,numa=1", Devices(4, "a100", "40Gi", 1)),
    ],
)
def test_an_annotation_says_which_devices(text: str, expected: Devices) -> None:
    """A number, or a list."""
    assert devices_of(text) == expected


@pytest.mark.parametrize(
    "text", ["eight", "model=a100", "count=2,numa=0", "count=2,colour=red", "count=1,memory=x"]
)
def test_other_annotations_are_refused(text: str) -> None:
    """With what is meant."""
    with pytest.raises(ValueError, match=r"neither a number|no quantity"):
        devices_of(text)


def test_a_node_has_its_devices_in_a_slice(cluster: Simulation) -> None:
    """Spread over NUMA nodes, four of a link; their class is there as well."""
    cluster.nodes("n1", devices="8")
    cluster.nodes("n2")

    (only,) = slices(cluster)
    assert (only["nodeName"], only["driver"]) == ("n1", DRIVER)
    assert only["pool"] == {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    attributes = [one["attributes"] for one in only["devices"]]
    assert [one["numa"]["int"] for one in attributes] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [one["link"]["string"] for one in attributes] == ["link-0"] * 4 + ["link-1"] * 4
    assert len({one["uuid"]["string"] for one in attributes}) == 8
    assert only["devices"][0]["capacity"] == {"memory": {"value": "80Gi"}}
    assert cluster.get(CLASSES, DRIVER, None)["spec"]["extendedResourceName"] == "example.com/gpu"


def test_a_change_of_hardware_is_another_generation(cluster: Simulation) -> None:
    """Of all slices of the pool; devices that are taken out go with theirs."""
    cluster.nodes("n1", devices="200")
    assert [(len(one["devices"]), one["pool"]["generation"]) for one in slices(cluster)] == [
        (128, 1),
        (72, 1),
    ]

    wish(cluster, "n1", "100")
    (only,) = slices(cluster)
    assert only["pool"] == {"name": "n1", "generation": 2, "resourceSliceCount": 1}
    assert len(only["devices"]) == 100

    wish(cluster, "n1", None)
    assert slices(cluster) == []


def test_a_slice_that_others_delete_or_change_is_written_again(cluster: Simulation) -> None:
    """As drivers do."""
    cluster.nodes("n1", devices="2")
    name = cluster.api.list(SLICES)[0]["metadata"]["name"]

    cluster.api.delete(SLICES, None, name)
    cluster.settle()
    assert len(slices(cluster)[0]["devices"]) == 2

    cluster.api.patch(SLICES, None, name, {"spec": {"devices": None}})
    cluster.settle()
    assert len(slices(cluster)[0]["devices"]) == 2


def test_a_taint_that_others_write_stays(cluster: Simulation) -> None:
    """Tests and administrators mark devices as broken by it, and the pod that uses one goes."""
    cluster.nodes("n1", devices="2")
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    pod = cluster.pod("p", "n1", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
    allocated(cluster, pod, "n1")
    cluster.settle(2)
    assert cluster.status("p")["phase"] == "Running"

    found = copied(cluster.api.list(SLICES)[0])
    found["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoExecute"}]
    cluster.api.update(SLICES, found)
    cluster.settle(5)

    assert [one.get("taints", [{}])[0].get("key") for one in slices(cluster)[0]["devices"]] == [
        "broken",
        None,
    ]
    assert cluster.get("pods", "p") is None


def test_slices_go_with_their_node(cluster: Simulation) -> None:
    """They belong to it."""
    cluster.nodes("n1", devices="2")

    cluster.api.delete("nodes", None, "n1")
    cluster.settle()

    assert slices(cluster) == []


def test_an_unknown_wish_is_an_event(cluster: Simulation) -> None:
    """The node has no devices."""
    cluster.nodes("n1", devices="some")

    assert slices(cluster) == []
    assert [reason for reason, _ in cluster.events()] == ["UnknownDevices"]


def allocated(cluster: Simulation, pod: Any, node: str) -> None:
    """Give a claim's device of a node to a pod."""
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": "gpu-0"}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    consumer = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    claim = cluster.get(CLAIMS, "mine")
    status = {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}
    cluster.api.update_status(CLAIMS, {**claim, "status": {**status, "reservedFor": [consumer]}})


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_pod_starts_when_its_claim_is_allocated_here_and_reserved_for_it(
    cluster: Simulation, node: str
) -> None:
    """Until then it waits and says why; on another node than its devices it waits for ever."""
    cluster.nodes("n1", "n2", devices="1")
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    pod = cluster.pod("p", "n1", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
    cluster.settle(10)
    why = "ResourceClaim default/mine is not allocated"
    waiting = f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"
    assert cluster.status("p")["phase"] == "Pending"
    assert ("FailedPrepareDynamicResources", waiting) in cluster.events()

    allocated(cluster, pod, node)
    cluster.settle(2)

    assert cluster.status("p")["phase"] == ("Running" if node == "n1" else "Pending")


def test_devices_in_place_of_a_resource_are_not_the_nodes(cluster: Simulation) -> None:
    """A kubelet does not look for an extended resource that a claim provides."""
    cluster.nodes("n1", devices="1")
    cluster.create("ResourceClaim", "mine", resource=CLAIMS, **CLAIM)
    pod = cluster.pod("p", requests={"example.com/gpu": "1"})
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    extended = {"resourceClaimName": "mine", "requestMappings": [mapping]}
    cluster.api.update_status(
        "pods", {**pod, "status": {**pod["status"], "extendedResourceClaimStatus": extended}}
    )
    allocated(cluster, pod, "n1")

    cluster.bind(cluster.get("pods", "p"), "n1")
    cluster.settle(2)

    assert cluster.status("p")["phase"] == "Running"


TRAINING = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one-gpu, namespace: default}}
spec:
  spec:
    devices:
      requests: [{{name: gpu, exactly: {{deviceClassName: {DRIVER}}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: training, namespace: default}}
spec:
  containers: [{{name: main, image: app:1, resources: {{claims: [{{name: gpu}}]}}}}]
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
"""


@pytest.mark.skipif(
    not shutil.which("kubectl"),
    reason="devices were not looked at with kubectl, for it is not installed; the API was asked in its place",
)
def test_with_kubectl(start_roadstead: StartRoadstead) -> None:
    """A user sees nodes' slices, the class, and the claim that is made for a pod of a List."""
    cluster = start_roadstead(nodes=2, devices="4")

    both = {"apiVersion": "v1", "kind": "List", "items": [*yaml.safe_load_all(TRAINING)]}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(both))
    cluster.kubectl("wait", "pod/training", "--for=jsonpath={.status.resourceClaimStatuses}", "--timeout=60s")

    listed = cluster.kubectl("get", "resourceslices", "--no-headers").splitlines()
    assert [line.split()[1:4] for line in listed] == [
        [f"node-{n:04}", DRIVER, f"node-{n:04}"] for n in (1, 2)
    ]
    assert cluster.kubectl("get", "deviceclass", "-o", "name").split() == [
        f"deviceclass.resource.k8s.io/{DRIVER}"
    ]
    (claim,) = cluster.kubectl("get", "resourceclaims", "--no-headers").splitlines()
    assert claim.startswith("training-gpu-")
    assert claim.split()[1] == "pending"
    found = json.loads(cluster.kubectl("get", "resourceclaims", "-o", "json"))["items"][0]
    assert found["metadata"]["ownerReferences"][0]["name"] == "training"
