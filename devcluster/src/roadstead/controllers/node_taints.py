"""Taints nodes by their conditions and cordons.

Source: kubernetes v1.36 ``pkg/controller/nodelifecycle/node_lifecycle_controller.go``.
Differs: a node is not declared lost when its heartbeat fails; simulated kubelets need not send one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import condition_of
from roadstead.schemas.timestamps import to_timestamp

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj

RESOURCE = "nodes"
_BY_CONDITION = {
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
}
LAG_S = 0.05
"""Delay in seconds: as upstream, a client that changes a node twice in a row sees its own change first."""
_PREFIX = "node.kubernetes.io/"
_OURS = {f"{_PREFIX}{name}" for name in (*_BY_CONDITION.values(), "unschedulable")}
_EVICTING = ("not-ready", "unreachable")


class NodeTaintController:
    """Sets the taints of nodes by their conditions and cordons."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to nodes."""
        self._context.enqueue_all(RESOURCE, self.reconcile, LAG_S, restart=True)

    def reconcile(self, key: str) -> None:
        """Update a node's taints; taints of other controllers stay."""
        node = self._context.find(RESOURCE, key)
        if node is None:
            return
        wanted = _wanted(node)
        before: list[Obj] = (node.get("spec") or {}).get("taints") or []
        kept = [one for one in before if one["key"] not in _OURS or (one["key"], one["effect"]) in wanted]
        known = {(one["key"], one["effect"]) for one in kept}
        now = to_timestamp(self._context.now)
        added: list[Obj] = [
            {"key": name, "effect": effect, "timeAdded": now}
            for name, effect in wanted
            if (name, effect) not in known
        ]
        if added or len(kept) != len(before):
            spec = {**(node.get("spec") or {}), "taints": kept + added}
            if not spec["taints"]:
                del spec["taints"]
            self._context.api.update(RESOURCE, {**node, "spec": spec})


def _wanted(node: Obj) -> dict[tuple[str, str], None]:
    """The desired taints of a node, among those that this controller sets."""
    wanted: dict[tuple[str, str], None] = {}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted[f"{_PREFIX}unschedulable", "NoSchedule"] = None
    for (kind, status), name in _BY_CONDITION.items():
        condition = condition_of(node, kind)
        if condition and condition.get("status") == status:
            wanted[_PREFIX + name, "NoSchedule"] = None
            if name in _EVICTING:
                wanted[_PREFIX + name, "NoExecute"] = None
    return wanted
