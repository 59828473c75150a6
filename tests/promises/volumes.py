"""Volumes that pods have a node attach, by driver, and the limits of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from promises.commits import Obj
from promises.view import View

CLAIMS, VOLUMES, CSI_NODES = "persistentvolumeclaims", "persistentvolumes", "csinodes.storage.k8s.io"


def attached(pods: Iterable[Obj], view: View) -> dict[str, set[str]]:
    """The volumes of some pods, by driver: those of bound claims, each once."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        for volume in pod["spec"].get("volumes") or ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
            known = view.find(CLAIMS, pod["metadata"].get("namespace") or "", claim)
            name = (known or {}).get("spec", {}).get("volumeName") or ""
            source = ((view.find(VOLUMES, "", name) or {}).get("spec") or {}).get("csi")
            if source:
                found.setdefault(source["driver"], set()).add(name)
    return found


def attach_limits(node: str, view: View) -> dict[str, int]:
    """How many volumes a node may have attached, by driver."""
    drivers = ((view.find(CSI_NODES, "", node) or {}).get("spec") or {}).get("drivers") or ()
    counts = {each["name"]: (each.get("allocatable") or {}).get("count") for each in drivers}
    return {name: count for name, count in counts.items() if count is not None}
