"""Deletes the contents of terminating namespaces, and then their finalizer.

Source: kubernetes v1.36 ``pkg/controller/namespace/deletion/namespaced_resources_deleter.go``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import is_terminating, with_condition
from roadstead.store.api import Write
from roadstead.store.subresources import finalize
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj, Resource

RESOURCE = "namespaces"
FINALIZER = "kubernetes"
AGAIN_S = 0.1
BATCH = 64
_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class NamespaceController:
    """Empties namespaces that are being deleted."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to namespaces."""
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Delete the contents of a terminating namespace; remove the finalizer when it is empty."""
        namespace = self._context.find(RESOURCE, key)
        if namespace is None or not is_terminating(namespace):
            return
        if FINALIZER not in (namespace["spec"].get("finalizers") or ()):
            return
        remaining: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for resource in self._namespaced():
            for obj in self._delete_some(resource, key):
                remaining[f"{resource.plural}.{resource.group}"] += 1
                finalizers.update(obj["metadata"].get("finalizers") or ())
        namespace = self._context.find(RESOURCE, key)
        if namespace is None:
            return
        if remaining:
            self._write_conditions(namespace, remaining, finalizers)
            self._context.queue.add(self.reconcile, key, AGAIN_S)
        else:
            self._finish(namespace)

    def _namespaced(self) -> list[Resource]:
        """One resource for each collection of namespaced objects."""
        api = self._context.api
        found = (one for one in api.registry if one.namespaced and not one.ephemeral)
        return list({one.collection: one for one in found}.values())

    def _delete_some(self, resource: Resource, namespace: str) -> list[Obj]:
        """Delete up to ``BATCH`` objects of a resource; return the remaining ones."""
        api = self._context.api
        alive = [one for one in api.list(resource.key, namespace) if not is_terminating(one)]
        for obj in alive[:BATCH]:
            try:
                api.delete(resource.key, namespace, obj["metadata"]["name"], propagation="Background")
            except StatusError as error:
                if error.code not in (404, 409):
                    raise
        return api.list(resource.key, namespace)

    def _write_conditions(self, namespace: Obj, remaining: Counter[str], finalizers: Counter[str]) -> None:
        """Write conditions that name the remaining objects and finalizers."""
        found = {
            "NamespaceContentRemaining": (
                "SomeResourcesRemain",
                "Some resources are remaining: "
                + ", ".join(
                    f"{name} has {count} resource instances" for name, count in sorted(remaining.items())
                ),
            )
        }
        if finalizers:
            found["NamespaceFinalizersRemaining"] = (
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: "
                + ", ".join(
                    f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
                ),
            )
        status = dict(namespace.get("status") or {})
        conditions = status.get("conditions") or []
        for kind, (reason, message) in {**_FINE, **found}.items():
            state = "True" if kind in found else "False"
            conditions = with_condition(conditions, kind, state, reason, message, now=self._context.now)
        status["conditions"] = conditions
        self._context.write_status(RESOURCE, namespace, status)

    def _finish(self, namespace: Obj) -> None:
        """Remove this controller's finalizer; without finalizers the namespace is removed."""
        kept = [one for one in namespace["spec"]["finalizers"] if one != FINALIZER]
        changed = {**namespace, "spec": {**namespace["spec"], "finalizers": kept}}
        finalize(self._context.api, namespace["metadata"]["name"], changed, Write())
