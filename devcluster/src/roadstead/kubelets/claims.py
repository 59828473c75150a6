"""Determines whether a kubelet may start a pod that uses devices.

Source: kubernetes v1.36 ``pkg/kubelet/cm/dra/manager.go`` (prepareResources),
``pkg/kubelet/lifecycle/predicate.go`` (removeMissingExtendedResources).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.resource_claims import CLAIMS, claim_names, is_reserved_for
from roadstead.kinds.podspec.resources import is_extended
from roadstead.values.label_selectors import matches_node

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.schemas.quantities import Amounts
    from roadstead.values.resources import Obj

_FAILED = "Failed to prepare dynamic resources: prepare dynamic resources"


def claims_fault(context: Context, pod: Obj) -> str:
    """Why a pod cannot start yet, "" if all its claims are allocated to this node and reserved for it."""
    wanted = pod["spec"].get("resourceClaims") or ()
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if not wanted and not extended:
        return ""
    made = {one["name"]: one for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    known = claim_names(pod)
    for one in wanted:
        if one["name"] in made and not made[one["name"]].get("resourceClaimName"):
            continue  # none is needed
        if one["name"] not in known:
            return f"{_FAILED}: claim {one['name']}: ResourceClaim not created yet"
        if fault := _claim_fault(context, pod, known[one["name"]]):
            return f"{_FAILED}: {fault}"
    if extended and (fault := _claim_fault(context, pod, extended["resourceClaimName"])):
        return f"{_FAILED}: {fault}"
    return ""


def _claim_fault(context: Context, pod: Obj, name: str) -> str:
    namespace = pod["metadata"]["namespace"]
    claim = context.find(CLAIMS, f"{namespace}/{name}")
    if claim is None:
        return f"ResourceClaim {namespace}/{name} does not exist"
    allocation = (claim.get("status") or {}).get("allocation")
    if allocation is None:
        return f"ResourceClaim {namespace}/{name} is not allocated"
    if not is_reserved_for(claim, pod):
        return f"pod {pod['metadata']['name']} is not allowed to use ResourceClaim {namespace}/{name}"
    node = context.find("nodes", pod["spec"]["nodeName"])
    selector = allocation.get("nodeSelector")
    if selector is not None and node is not None and not matches_node(selector, node):
        return f"ResourceClaim {namespace}/{name} is allocated on another node"
    return ""


def resources_of_node(pod: Obj, wanted: Amounts, allocatable: Amounts) -> Amounts:
    """The amounts that a pod requests from its node.

    Extended resources that the node does not have belong to the cluster, like those that a scheduler extender
    counts. Devices of the pod's claims do not count either.
    """
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    mapped = {one.get("resourceName") for one in extended.get("requestMappings") or ()}
    return {
        name: amount
        for name, amount in wanted.items()
        if (allocatable.get(name) or name not in mapped) and (name in allocatable or not is_extended(name))
    }
