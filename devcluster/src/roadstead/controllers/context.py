"""Defines the context that controllers and kubelets share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roadstead.controllers.ownership import key_of, split_key

BY_NODE = "spec.nodeName"
"""The index of pods by node; the API server uses it for field selectors, too."""

if TYPE_CHECKING:
    from roadstead.controllers.event_recorder import EventRecorder
    from roadstead.controllers.ownership import Ownership
    from roadstead.controllers.work_queue import Reconcile, WorkQueue
    from roadstead.store.api import Api
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj


@dataclass(frozen=True, slots=True)
class Context:
    """The API, the work queue, the index of dependents and the event recorder.

    Attributes:
        job_groups: Whether Jobs get PodGroups.
    """

    api: Api
    queue: WorkQueue
    ownership: Ownership
    events: EventRecorder
    job_groups: bool = False

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.queue.clock()

    def find(self, resource: str, key: str) -> Obj | None:
        """The object of a key in a work queue; None if it was deleted."""
        namespace, name = split_key(key)
        entry = self.api.store.collection(resource).entries.get((namespace or "", name))
        return entry.obj if entry else None

    def pods_on(self, node: str) -> list[Obj]:
        """The pods that are bound to a node."""
        return [entry.obj for entry in self.api.store.collection("pods").indexed(BY_NODE, node)]

    def write_status(self, resource: str, obj: Obj, status: Obj) -> Obj:
        """Write an object's status if it changes."""
        if status == (obj.get("status") or {}):
            return obj
        return self.api.update_status(resource, {**obj, "status": status})

    def drop_finalizer(self, resource: str, obj: Obj, finalizer: str) -> None:
        """Remove a finalizer of an object that still exists."""
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if finalizer in finalizers:
            kept = [one for one in finalizers if one != finalizer]
            patch = {"metadata": {"uid": metadata["uid"], "finalizers": kept or None}}
            self.api.patch(resource, metadata.get("namespace"), metadata["name"], patch)

    def enqueue_all(
        self, resource: str, reconcile: Reconcile, after_s: float = 0.0, *, restart: bool = False
    ) -> None:
        """Reconcile the objects of a resource: the current ones, and each after a delay when it changes.

        With ``restart`` each change restarts the delay.
        """

        def changed(_kind: EventType, new: Obj, _old: Obj | None) -> None:
            self.queue.add(reconcile, key_of(new), after_s, restart=restart)

        self.api.subscribe(resource, changed)
        for obj in self.api.list(resource):
            self.queue.add(reconcile, key_of(obj))


class Controller(Protocol):
    """Moves the actual state towards the desired one.

    ``start`` subscribes it and queues the current objects.
    """

    def start(self) -> None:
        """Subscribe to the objects."""
