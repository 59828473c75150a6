"""Finds the volume that a claim may bind to.

Source: component-helpers v1.36 ``storage/volume/pv_helpers.go`` (FindMatchingVolume).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import is_terminating
from roadstead.kinds.storage import BETA_CLASS
from roadstead.schemas.quantities import milli
from roadstead.values.label_selectors import matches_node, selects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
LATE = "WaitForFirstConsumer"


def annotations_of(obj: Obj) -> dict[str, str]:
    """The object's annotations; an empty dict without them."""
    return obj["metadata"].get("annotations") or {}


def class_of(claim: Obj) -> str:
    """The name of the claim's storage class; "" without one."""
    return annotations_of(claim).get(BETA_CLASS) or (claim["spec"].get("storageClassName") or "")


def is_bound(claim: Obj) -> bool:
    """Whether the claim has its volume, and pods may use it."""
    return (claim.get("status") or {}).get("phase") == "Bound" and bool(claim["spec"].get("volumeName"))


def refers_to(volume: Obj, claim: Obj) -> bool:
    """Whether the volume is reserved for the claim; a reference without uid suffices."""
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return False
    metadata = claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return same and reference.get("uid") in (None, "", metadata["uid"])


def satisfies(volume: Obj, claim: Obj) -> bool:
    """Whether size, modes and class of a volume suffice for a claim."""
    has, wants = volume["spec"], claim["spec"]
    return (
        milli((has.get("capacity") or {}).get("storage", "0")) >= requested(claim)
        and set(wants.get("accessModes") or ()) <= set(has.get("accessModes") or ())
        and has.get("volumeMode", "Filesystem") == wants.get("volumeMode", "Filesystem")
        and (has.get("storageClassName") or "") == class_of(claim)
    )


def requested(claim: Obj) -> int:
    """The storage that a claim requests, in thousandths of a byte."""
    return milli(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def reaches(volume: Obj, node: Obj) -> bool:
    """Whether the volume can be used on a node."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or matches_node(required, node)


def matching_volume(
    claim: Obj, volumes: Iterable[Obj], *, node: Obj | None = None, reserved_only: bool = False
) -> Obj | None:
    """The volume that is reserved for the claim, or the smallest available one that suffices.

    Args:
        claim: the claim, which has no volume.
        volumes: all volumes.
        node: the node on which the volume must be usable.
        reserved_only: ignore volumes that are not reserved for the claim.
    """
    selector, best = claim["spec"].get("selector"), None
    for volume in volumes:
        if (
            is_terminating(volume)
            or not satisfies(volume, claim)
            or not (node is None or reaches(volume, node))
        ):
            continue
        if refers_to(volume, claim):
            return volume
        if reserved_only or volume["spec"].get("claimRef") is not None:
            continue
        if (volume.get("status") or {}).get("phase") != "Available":
            continue
        if selector is not None and not selects(selector, volume["metadata"].get("labels")):
            continue
        if best is None or _size(volume) < _size(best):
            best = volume
    return best


def _size(volume: Obj) -> int:
    return milli(volume["spec"]["capacity"]["storage"])
