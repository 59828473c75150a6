"""Indexes dependents by their controller; adopts and releases them.

Controllers call ``Ownership.dependents`` instead of searching all pods. An orphan, an object without
controller, is offered to the owners that select it when it or they appear; an owner adopts its offers when
it is next reconciled.

Source: kubernetes v1.36 ``pkg/controller/controller_ref_manager.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import is_terminating
from roadstead.values.label_selectors import selects

if TYPE_CHECKING:
    from roadstead.store.api import Api
    from roadstead.store.store import EventType, Key
    from roadstead.values.resources import Obj

Enqueue = Callable[[str], None]
"""Called with the key ("namespace/name") of an owner whose dependents changed."""

_INDEX = "controller"


def key_of(obj: Obj) -> str:
    """The key of an object in a work queue: "namespace/name", or the name of a cluster-scoped object."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def split_key(key: str) -> tuple[str | None, str]:
    """Namespace and name of a key."""
    namespace, slash, name = key.rpartition("/")
    return (namespace if slash else None), name


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference with ``controller: true``."""
    references: list[Obj] = obj["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def _bucket(obj: Obj) -> list[str]:
    """The bucket of an object: its controller's uid, or the orphans of its namespace."""
    reference = controller_of(obj)
    return [reference["uid"] if reference else f"orphans of {obj['metadata'].get('namespace', '')}"]


@dataclass(frozen=True, slots=True)
class Owners:
    """A kind whose objects own other objects.

    Attributes:
        resource: the resource, such as "replicasets.apps".
        api_version: the API version in references to it.
        kind: the kind in references to it.
        enqueue: called with the key of an owner whose dependents changed.
        offers: the orphans that an owner selects, keyed by its uid.
    """

    resource: str
    api_version: str
    kind: str
    enqueue: Enqueue
    offers: dict[str, dict[Key, None]] = field(default_factory=dict)

    def reference_to(self, owner: Obj) -> Obj:
        """A reference that makes an owner the controller of a dependent."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }


class Ownership:
    """The index of dependents by controller, for followed resources.

    Args:
        api: reads and changes objects.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._owners: dict[str, list[Owners]] = {}

    def follow(self, dependents: str, owners: Owners) -> None:
        """Call a controller when the dependents of its objects change.

        Args:
            dependents: the resource of the dependents, such as "pods".
            owners: their owners, which may adopt orphans.
        """
        if dependents not in self._owners:
            self._owners[dependents] = []
            self._api.store.collection(dependents).add_index(_INDEX, _bucket)

            def changed(kind: EventType, new: Obj, old: Obj | None) -> None:
                self._changed(dependents, kind, new, old)

            self._api.subscribe(dependents, changed)
        self._owners[dependents].append(owners)

        def appeared(kind: EventType, new: Obj, _old: Obj | None) -> None:
            self._appeared(dependents, owners, kind, new)

        self._api.subscribe(owners.resource, appeared)
        for owner in self._api.list(owners.resource):
            self._appeared(dependents, owners, "ADDED", owner)

    def dependents(self, resource: str, owner: Obj) -> list[Obj]:
        """The objects of a resource that an owner controls, sorted by name."""
        entries = self._api.store.collection(resource).indexed(_INDEX, owner["metadata"]["uid"])
        return [entry.obj for entry in entries]

    def claim(self, resource: str, owners: Owners, owner: Obj) -> list[Obj]:
        """The owner's dependents, after it has adopted the objects that it selects and released others.

        An owner that is being deleted adopts nothing.
        """
        mine = self.dependents(resource, owner)
        selector = owner["spec"].get("selector")
        if selector is None or is_terminating(owner):
            return mine
        strangers = [obj for obj in mine if not selects(selector, obj["metadata"].get("labels"))]
        for obj in strangers:
            if not is_terminating(obj):
                self._release(resource, obj, owner)
        offers = owners.offers.get(owner["metadata"]["uid"])
        if not strangers and not offers:
            return mine
        for key in list(offers or ()):
            entry = self._api.store.collection(resource).entries.get(key)
            if entry and _is_free(entry.obj) and selects(selector, entry.obj["metadata"].get("labels")):
                self._adopt(resource, entry.obj, owners.reference_to(owner))
            if offers:
                offers.pop(key, None)
        return [
            obj
            for obj in self.dependents(resource, owner)
            if selects(selector, obj["metadata"].get("labels"))
        ]

    def _changed(self, resource: str, kind: EventType, new: Obj, old: Obj | None) -> None:
        """Queue the controller of a changed dependent, and offer an orphan."""
        before = controller_of(old) if old else None
        now = controller_of(new)
        namespace = new["metadata"].get("namespace")
        for reference in (now,) if before == now else (now, before):
            for owners in self._owners[resource] if reference else ():
                if reference and owners.kind == reference["kind"]:
                    owners.enqueue(f"{namespace}/{reference['name']}")
        if kind == "DELETED" or now is not None:
            return
        if (
            old is None
            or before is not None
            or old["metadata"].get("labels") != new["metadata"].get("labels")
        ):
            self._offer(resource, new)

    def _appeared(self, resource: str, owners: Owners, kind: EventType, owner: Obj) -> None:
        """Offer a new owner the orphans of its namespace; forget a deleted one."""
        uid = owner["metadata"]["uid"]
        if kind == "DELETED":
            owners.offers.pop(uid, None)
        elif kind == "ADDED":
            orphans = self._api.store.collection(resource).indexed(
                _INDEX, f"orphans of {owner['metadata']['namespace']}"
            )
            for entry in orphans:
                _propose(owners, owner, entry.obj)

    def _offer(self, resource: str, orphan: Obj) -> None:
        """Offer an orphan to the owners that select it."""
        if not _is_free(orphan):
            return
        for owners in self._owners[resource]:
            for owner in self._api.list(owners.resource, orphan["metadata"].get("namespace")):
                _propose(owners, owner, orphan)

    def _adopt(self, resource: str, orphan: Obj, reference: Obj) -> None:
        references = [*(orphan["metadata"].get("ownerReferences") or ()), reference]
        self._patch_references(resource, orphan, references)

    def _release(self, resource: str, obj: Obj, owner: Obj) -> None:
        uid = owner["metadata"]["uid"]
        references = [one for one in obj["metadata"]["ownerReferences"] if one["uid"] != uid]
        self._patch_references(resource, obj, references)

    def _patch_references(self, resource: str, obj: Obj, references: list[Obj]) -> None:
        metadata = obj["metadata"]
        patch = {"metadata": {"uid": metadata["uid"], "ownerReferences": references or None}}
        self._api.patch(resource, metadata.get("namespace"), metadata["name"], patch)


def _is_free(obj: Obj) -> bool:
    """Whether an object may be adopted."""
    return controller_of(obj) is None and not is_terminating(obj)


def _propose(owners: Owners, owner: Obj, orphan: Obj) -> None:
    """Offer an orphan to an owner if it selects it."""
    if is_terminating(owner) or not selects(owner["spec"].get("selector"), orphan["metadata"].get("labels")):
        return
    metadata = orphan["metadata"]
    offers = owners.offers.setdefault(owner["metadata"]["uid"], {})
    offers[metadata.get("namespace", ""), metadata["name"]] = None
    owners.enqueue(key_of(owner))
