"""Collects garbage: dependents of deleted owners, and owners that wait for their dependents.

The collector subscribes to every resource, custom ones included, and keeps a graph of owners and dependents
by uid. Background: dependents are deleted after their owner. Foreground: the owner stays until its blocking
dependents are gone. Orphan: the references of dependents are removed before the owner.

Source: kubernetes v1.36 ``pkg/controller/garbagecollector``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roadstead.controllers.pod_state import is_terminating
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import Change, EventType
    from roadstead.values.resources import Obj

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_WITHOUT_OWNERS = ("events",)


class Place(NamedTuple):
    """The collection and the key of an object."""

    collection: str
    namespace: str
    name: str


class GarbageCollector:
    """Deletes objects whose owners no longer exist."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def start(self) -> None:
        """Subscribe to all resources."""
        store = self._context.api.store
        store.follow(self._followed)
        for collection, entry in store.everything():
            self._changed(collection, "ADDED", entry.obj, None)

    def _followed(self, collection: str, change: Change) -> None:
        if collection not in _WITHOUT_OWNERS:
            previous = change.previous.obj if change.previous else None
            self._changed(collection, change.type, change.entry.obj, previous)

    def reconcile(self, uid: str) -> None:
        """Delete an object without existing owners, or continue a deletion that waits for dependents."""
        place = self._places.get(uid)
        obj = self._object_at(place) if place else None
        if place is None or obj is None:
            return
        if is_terminating(obj):
            self._continue_deletion(place, obj)
        elif obj["metadata"].get("ownerReferences"):
            self._collect(place, obj)

    def _object_at(self, place: Place) -> Obj | None:
        entry = self._context.api.store.collection(place.collection).entries.get(
            (place.namespace, place.name)
        )
        return entry.obj if entry else None

    def _changed(self, collection: str, kind: EventType, new: Obj, old: Obj | None) -> None:
        """Update the graph, and queue the objects that a change may concern."""
        metadata = new["metadata"]
        uid = metadata["uid"]
        before = _owner_uids(old) if old else []
        now = [] if kind == "DELETED" else _owner_uids(new)
        add = self._context.queue.add
        for owner in before:
            if owner not in now and owner in self._dependents:
                self._dependents[owner].pop(uid, None)
                if not self._dependents[owner]:
                    del self._dependents[owner]
        for owner in now:
            self._dependents.setdefault(owner, {})[uid] = None
        if kind == "DELETED":
            self._places.pop(uid, None)
            for dependent in self._dependents.get(uid, ()):
                add(self.reconcile, dependent)
        else:
            self._places[uid] = Place(collection, metadata.get("namespace", ""), metadata["name"])
            if (now and now != before) or (is_terminating(new) and _waits(new)):
                add(self.reconcile, uid)
        for owner in {*before, *now}:
            # An owner may wait for this deletion, or a dependent may lose its last owner.
            if (place := self._places.get(owner)) and (above := self._object_at(place)) and _waits(above):
                add(self.reconcile, owner)

    def _continue_deletion(self, place: Place, obj: Obj) -> None:
        """Continue a foreground deletion, or orphan the dependents."""
        finalizers = obj["metadata"].get("finalizers") or []
        uid = obj["metadata"]["uid"]
        dependents = [self._places[one] for one in self._dependents.get(uid, ()) if one in self._places]
        if ORPHAN in finalizers:
            for dependent in dependents:
                self._disown(dependent, {uid})
            self._context.drop_finalizer(place.collection, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = 0
            for dependent in dependents:
                child = self._object_at(dependent)
                if child is None:
                    continue
                blocking += _blocks(child, uid)
                if not is_terminating(child):
                    self._context.queue.add(self.reconcile, child["metadata"]["uid"])
            if not blocking:
                self._context.drop_finalizer(place.collection, obj, FOREGROUND)

    def _collect(self, place: Place, obj: Obj) -> None:
        """Delete an object if none of its owners exists."""
        references: list[Obj] = obj["metadata"]["ownerReferences"]
        solid, waiting, absent = [], [], []
        for reference in references:
            owner = self._owner(reference, place.namespace)
            if owner is None:
                if self._context.api.registry.of_kind(reference["apiVersion"], reference["kind"]) is None:
                    return  # the kind is unknown, and so are its objects
                absent.append(reference["uid"])
            elif is_terminating(owner) and FOREGROUND in (owner["metadata"].get("finalizers") or ()):
                waiting.append(reference["uid"])
            else:
                solid.append(reference["uid"])
        if solid:
            if absent or waiting:
                self._disown(place, {*absent, *waiting})
            return
        has_dependents = bool(self._dependents.get(obj["metadata"]["uid"]))
        foreground = bool(waiting and has_dependents)
        self._delete(place, obj, "Foreground" if foreground else _propagation(obj))

    def _owner(self, reference: Obj, namespace: str) -> Obj | None:
        """The owner of a reference, if it exists: matched by uid, in the same namespace or cluster-scoped."""
        place = self._places.get(reference["uid"])
        if place is None or place.namespace not in ("", namespace):
            return None
        return self._object_at(place)

    def _delete(self, place: Place, obj: Obj, propagation: str | None) -> None:
        try:
            self._context.api.delete(
                place.collection,
                place.namespace or None,
                place.name,
                propagation=propagation,
                uid=obj["metadata"]["uid"],
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    def _disown(self, place: Place, uids: set[str]) -> None:
        """Remove owner references from an object."""
        obj = self._object_at(place)
        if obj is None:
            return
        kept = [one for one in obj["metadata"].get("ownerReferences") or () if one["uid"] not in uids]
        patch = {"metadata": {"uid": obj["metadata"]["uid"], "ownerReferences": kept or None}}
        self._context.api.patch(place.collection, place.namespace or None, place.name, patch)


def _owner_uids(obj: Obj) -> list[str]:
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()]


def _waits(obj: Obj) -> bool:
    """Whether an object's deletion waits for the collector."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return is_terminating(obj) and (FOREGROUND in finalizers or ORPHAN in finalizers)


def _blocks(obj: Obj, uid: str) -> bool:
    """Whether an object blocks the deletion of its owner."""
    references = obj["metadata"].get("ownerReferences") or ()
    return any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in references)


def _propagation(obj: Obj) -> str | None:
    """The propagation policy of an object's earlier deletion."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
