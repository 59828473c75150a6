"""Counts what the objects of a namespace use, in the status of its ResourceQuotas.

Source: kubernetes v1.36 ``pkg/controller/resourcequota``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.limits.quotas import QUOTAS, covers, total, usage

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import Change
    from roadstead.values.resources import Obj, Resource


class ResourceQuotaController:
    """Keeps the status of quotas."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Subscribe to quotas, and to all objects of namespaces that have one."""
        self._context.enqueue_all(QUOTAS, self.reconcile)
        self._context.api.store.follow(self._changed)

    def reconcile(self, key: str) -> None:
        """Count again."""
        quota = self._context.find(QUOTAS, key)
        if quota is None:
            return
        hard = (quota.get("spec") or {}).get("hard") or {}
        namespace = quota["metadata"]["namespace"]
        used = total(
            (
                usage(resource, obj)
                for resource in self._limited(hard)
                for obj in self._context.api.list(resource, namespace)
                if covers(quota, resource, obj)
            ),
            hard,
        )
        self._context.write_status(QUOTAS, quota, {"hard": hard, "used": used})

    def _limited(self, hard: Obj) -> list[Resource]:
        """The resources whose objects a quota may count."""
        keys = {"pods", "persistentvolumeclaims", "services", "configmaps", "secrets"}
        keys |= {"replicationcontrollers", QUOTAS}
        keys |= {name.removeprefix("count/") for name in hard if name.startswith("count/")}
        found = (self._context.api.registry.keyed(key) for key in sorted(keys))
        return [resource for resource in found if resource is not None]

    def _changed(self, collection: str, change: Change) -> None:
        if collection in (QUOTAS, "events"):
            return
        namespace = change.entry.obj["metadata"].get("namespace")
        if namespace:
            for quota in self._context.api.list(QUOTAS, namespace):
                self._context.queue.add(self.reconcile, key_of(quota))
