"""Deletes pods that tolerate a NoExecute taint of their node not at all or no longer.

Source: kubernetes v1.36 ``pkg/controller/tainteviction/taint_eviction.go``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_terminating, with_condition
from roadstead.schemas.timestamps import to_seconds
from roadstead.values.label_selectors import tolerates

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

COMPONENT = "taint-eviction-controller"


@dataclass(frozen=True, slots=True)
class Driving:
    """A NoExecute taint and its start: ``timeAdded``, or the time at which it was first seen."""

    taint: Obj
    seen_s: float

    @property
    def since_s(self) -> float:
        """Seconds since the epoch."""
        added = self.taint.get("timeAdded")
        return to_seconds(added) if added else self.seen_s


class TaintEvictionController:
    """Deletes pods that do not tolerate NoExecute taints."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tainted: dict[str, list[Driving]] = {}

    def start(self) -> None:
        """Subscribe to nodes and pods."""
        api = self._context.api
        api.subscribe("nodes", self._node_changed)
        api.subscribe("pods", self._pod_changed)
        for node in api.list("nodes"):
            self._node_changed("ADDED", node, None)

    def reconcile(self, key: str) -> None:
        """Delete a pod whose toleration has expired, or requeue it for its expiry."""
        pod = self._context.find("pods", key)
        if pod is None or is_terminating(pod):
            return
        taints = self._tainted.get(pod["spec"].get("nodeName", ""))
        if not taints:
            return
        stay_s = _stay_s(pod, taints, self._context.now)
        if stay_s is None:
            return
        if stay_s > 0:
            self._context.queue.add(self.reconcile, key, stay_s)
            return
        metadata = pod["metadata"]
        conditions = with_condition(
            (pod.get("status") or {}).get("conditions") or [],
            "DisruptionTarget",
            "True",
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
            now=self._context.now,
        )
        self._context.write_status("pods", pod, {**(pod.get("status") or {}), "conditions": conditions})
        self._context.events.record(
            COMPONENT, pod, "TaintManagerEviction", f"Marking for deletion Pod {key_of(pod)}"
        )
        self._context.api.delete("pods", metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def _node_changed(self, kind: EventType, node: Obj, _old: Obj | None) -> None:
        """Queue a node's pods if its NoExecute taints change."""
        name = node["metadata"]["name"]
        taints = [one for one in (node.get("spec") or {}).get("taints") or () if one["effect"] == "NoExecute"]
        if kind == "DELETED":
            taints = []
        before = self._tainted.get(name, [])
        if taints == [one.taint for one in before]:
            return
        self._tainted[name] = [
            next((one for one in before if one.taint == taint), Driving(taint, self._context.now))
            for taint in taints
        ]
        if not taints:
            del self._tainted[name]
            return
        for pod in self._context.pods_on(name):
            self._context.queue.add(self.reconcile, key_of(pod))

    def _pod_changed(self, kind: EventType, pod: Obj, old: Obj | None) -> None:
        """Queue a pod that was bound to a tainted node."""
        node = pod["spec"].get("nodeName")
        if kind != "DELETED" and node in self._tainted and (old is None or not old["spec"].get("nodeName")):
            self._context.queue.add(self.reconcile, key_of(pod))


def _stay_s(pod: Obj, taints: list[Driving], now: float) -> float | None:
    """Seconds until a pod must leave: None for never, 0 or less for now."""
    stays: list[float] = []
    for taint in taints:
        toleration = tolerates(pod["spec"].get("tolerations"), taint.taint)
        if toleration is None:
            return 0.0
        seconds = toleration.get("tolerationSeconds")
        if seconds is not None:
            stays.append(taint.since_s + max(0, seconds) - now)
    return min(stays, default=None)
