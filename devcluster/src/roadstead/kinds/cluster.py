"""Sets defaults of Namespaces and PriorityClasses and checks them.

Source: Kubernetes v1.36 ``pkg/registry/core/namespace``, ``pkg/registry/scheduling``,
``pkg/apis/*/validation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import forbidden, immutable, invalid, one_of
from roadstead.kinds.checks.metadata import BUILT_IN_FINALIZERS, label_faults
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.schemas.timestamps import timestamp_of
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    import datetime as dt

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_NAME_LABEL = "kubernetes.io/metadata.name"
_UNDELETABLE = ("default", "kube-system", "kube-public")


class Namespaces(StatusKind):
    """Namespaces; they are removed when ``spec.finalizers`` is empty."""

    counts_generation = False

    def name_faults(self, name: str) -> list[str]:
        """A DNS label."""
        return label_faults(name)

    def default(self, obj: Obj) -> None:
        """The label with the name, for selectors."""
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})[_NAME_LABEL] = name

    def prepare_create(self, obj: Obj) -> None:
        """A new namespace is active and has a finalizer."""
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["status"] = {"phase": "Active"}

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Finalizers of the spec must be qualified as well."""
        message = "name is neither a standard finalizer name nor is it fully qualified"
        return [
            invalid("spec.finalizers", one, message)
            for one in obj["spec"]["finalizers"]
            if "/" not in one and one not in BUILT_IN_FINALIZERS
        ]

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Finalizers and status have subresources of their own."""
        super().prepare_update(new, old)
        new["spec"] = old.get("spec", {})

    def begin_deletion(self, old: Obj, now: dt.datetime) -> Obj | None:
        """Mark it terminating; a controller removes its finalizer.

        Raises:
            StatusError: 403, for built-in namespaces.
        """
        name = old["metadata"]["name"]
        if name in _UNDELETABLE:
            message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
            raise StatusError(403, "Forbidden", message, {"name": name, "kind": "namespaces"})
        if not (old.get("spec") or {}).get("finalizers"):
            return None
        marked = copied(old)
        if not marked["metadata"].get("deletionTimestamp"):
            marked["metadata"]["deletionTimestamp"] = timestamp_of(now)
            marked["status"] = {**(marked.get("status") or {}), "phase": "Terminating"}
        return marked

    def may_end(self, obj: Obj) -> bool:
        """Whether the spec has no finalizers left."""
        return not (obj.get("spec") or {}).get("finalizers")

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("status.phase",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        return {"status.phase": (obj.get("status") or {}).get("phase", "")}


_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_PREFIX = "system-"
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class PriorityClasses(Kind):
    """PriorityClasses."""

    counts_generation = True

    def default(self, obj: Obj) -> None:
        """The preemption policy defaults to PreemptLowerPriority."""
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """System names and values are reserved."""
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if name.startswith(_SYSTEM_PREFIX):
            if _SYSTEM.get(name) != value:
                message = "priority class names with 'system-' prefix are reserved for system use only"
                return [forbidden("metadata.name", message)]
        elif value > _HIGHEST_USER_PRIORITY:
            message = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            return [forbidden("value", message)]
        return one_of("preemptionPolicy", obj["preemptionPolicy"], ("Never", "PreemptLowerPriority"))

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The value cannot change."""
        causes = []
        if new.get("value") != old.get("value"):
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes + immutable(
            "preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy")
        )

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """A PriorityClass has no spec and stays at generation 1."""
        del new, old
        return False
