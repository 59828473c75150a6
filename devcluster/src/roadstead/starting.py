"""What a cluster has from the start: namespaces, the system's priority classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadstead.store.api import Api

_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, "
        "but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


def seed(api: Api) -> None:
    """Create what every cluster has."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        api.create("namespaces", {"metadata": {"name": name}})
    for name, value in _SYSTEM_PRIORITIES.items():
        api.create(
            "priorityclasses.scheduling.k8s.io",
            {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]},
        )
