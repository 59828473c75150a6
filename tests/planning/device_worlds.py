"""Nodes with devices, and pods with claims on them, for tests of plans."""

from collections.abc import Mapping, Sequence
from typing import Any

from devices.builders import DRIVER, a_claim, a_device, a_slice, exactly, fill
from plimsoll.devices.book import DeviceBook
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def the_default_profile() -> Profile:
    """kube-scheduler's plugins."""
    enabled = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return build_profile(ProfileConfig("default-scheduler"), Registry(IN_TREE), enabled)


def a_user(name: str, node: str = "", *, claim: str = "", template: str = "", **more: Any) -> Any:
    """A pod with one claim: a named one, or one that was made for it from a template."""
    status = more.pop("status", {"phase": "Running" if node else "Pending"})
    if template:
        asked = {"name": "gpu", "resourceClaimTemplateName": template}
        status = {**status, "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
    else:
        asked = {"name": "gpu", "resourceClaimName": claim}
    owner = more.pop("owner", "ReplicaSet/web")
    return a_pod(name, node=node, owner=owner, status=status, **{"resourceClaims": [asked], **more})


def a_made_claim(
    pod: str, node: str = "", devices: Sequence[str] = (), *, count: int = 1, **more: Any
) -> ResourceClaim:
    """The claim that was made for a pod, allocated where it has devices."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-default-{pod}", "controller": True}
    name = f"{pod}-gpu"
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "ownerReferences": [owner],
    }
    status = an_allocation(node, devices, (pod,)) if devices else {}
    return a_claim(name, {"name": "r", "exactly": exactly(count)}, metadata=metadata, status=status, **more)


def an_allocation(node: str, devices: Sequence[str], pods: Sequence[str]) -> Mapping[str, Any]:
    """The status of a claim with devices of a node, for these pods."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "r", "driver": DRIVER, "pool": node, "device": each} for each in devices
                ]
            },
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-default-{pod}"} for pod in pods],
    }


def a_world(nodes: Mapping[str, int], pods: Sequence[Any], *claims: ResourceClaim, **taints: Any) -> Cluster:
    """Nodes with so many devices each, named d0, d1 and so on; ``taints`` by node."""
    cluster = a_cluster([a_node(name, taints=taints.get(name, ())) for name in nodes], pods)
    slices = [a_slice(name, [a_device(f"d{at}") for at in range(count)]) for name, count in nodes.items()]
    fill(cluster.objects.ledger(DeviceBook), [each for each in slices if each.spec.devices], *claims)
    return cluster
