"""Namespaces, Nodes and PriorityClasses.

Source: Kubernetes v1.36 ``pkg/registry/core/{namespace,node}``, ``pkg/registry/scheduling``,
``pkg/apis/*/validation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.devcluster.copying import copied
from plimsoll.devcluster.deleting import wire_time
from plimsoll.devcluster.kinds.checks import duplicate, forbidden, immutable, invalid, one_of, required
from plimsoll.devcluster.kinds.kind import Kind, StatusKind
from plimsoll.devcluster.kinds.metadata import label_faults, label_value_faults, qualified_name_faults
from plimsoll.devcluster.statuses import StatusError

if TYPE_CHECKING:
    import datetime as dt

    from plimsoll.devcluster.resources import Obj
    from plimsoll.devcluster.statuses import Cause

_NAME_LABEL = "kubernetes.io/metadata.name"
_UNDELETABLE = ("default", "kube-system", "kube-public")


class Namespaces(StatusKind):
    """Namespaces: they end when ``spec.finalizers`` is empty, by whoever empties them."""

    counts_generation = False

    def name_faults(self, name: str) -> list[str]:
        """A DNS label."""
        return label_faults(name)

    def default(self, obj: Obj) -> None:
        """The label that selectors know a namespace by."""
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})[_NAME_LABEL] = name

    def prepare_create(self, obj: Obj) -> None:
        """A new one is active and held by its finalizer."""
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Finalizers and status have subresources of their own."""
        super().prepare_update(new, old)
        new["spec"] = old.get("spec", {})

    def begin_deletion(self, old: Obj, now: dt.datetime) -> Obj | None:
        """Mark it terminating; whoever finalizes it does the rest.

        Raises:
            StatusError: 403, for those that every cluster has.
        """
        name = old["metadata"]["name"]
        if name in _UNDELETABLE:
            message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
            raise StatusError(403, "Forbidden", message, {"name": name, "kind": "namespaces"})
        if not (old.get("spec") or {}).get("finalizers"):
            return None
        marked = copied(old)
        if not marked["metadata"].get("deletionTimestamp"):
            marked["metadata"]["deletionTimestamp"] = wire_time(now)
            marked["status"] = {**(marked.get("status") or {}), "phase": "Terminating"}
        return marked

    def may_end(self, obj: Obj) -> bool:
        """Not before its own finalizers are gone."""
        return not (obj.get("spec") or {}).get("finalizers")

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return frozenset(("status.phase",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream."""
        return {"status.phase": (obj.get("status") or {}).get("phase", "")}


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Nodes(StatusKind):
    """Nodes: a kubelet registers one together with its status."""

    counts_generation = False

    def default(self, obj: Obj) -> None:
        """Allocatable is capacity where nothing else is said."""
        spec = obj.setdefault("spec", {})
        if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
            spec["podCIDRs"] = [spec["podCIDR"]]
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def prepare_create(self, obj: Obj) -> None:
        """Status stays as the kubelet sent it."""

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Taints must be taints."""
        return _taint_causes(obj["spec"].get("taints") or [])

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Ranges of addresses and the provider's name are set once."""
        causes = _taint_causes(new["spec"].get("taints") or [])
        if old["spec"].get("podCIDRs") and new["spec"].get("podCIDRs") != old["spec"]["podCIDRs"]:
            causes.append(
                forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
            )
        if old["spec"].get("providerID") and new["spec"].get("providerID") != old["spec"]["providerID"]:
            causes.append(
                forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
            )
        return causes

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return frozenset(("spec.unschedulable",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream."""
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def _taint_causes(taints: list[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = f"metadata.taints[{index}]"  # upstream says metadata, although it is spec
        key, effect = taint.get("key", ""), taint.get("effect", "")
        causes += [invalid(f"{at}.key", key, fault) for fault in qualified_name_faults(key)]
        causes += [
            invalid(f"{at}.value", taint.get("value"), fault)
            for fault in label_value_faults(taint.get("value", ""))
        ]
        if not effect:
            causes.append(required(f"{at}.effect"))
        else:
            causes += one_of(f"{at}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            causes.append(duplicate(at, taint))
        seen.add((key, effect))
    return causes


_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_PREFIX = "system-"
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class PriorityClasses(Kind):
    """PriorityClasses."""

    counts_generation = True

    def default(self, obj: Obj) -> None:
        """They preempt unless they say otherwise."""
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """The system's names and values are the system's."""
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if name.startswith(_SYSTEM_PREFIX):
            if _SYSTEM.get(name) != value:
                told = "priority class names with 'system-' prefix are reserved for system use only"
                return [forbidden("metadata.name", told)]
        elif value > _HIGHEST_USER_PRIORITY:
            told = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            return [forbidden("value", told)]
        return one_of("preemptionPolicy", obj["preemptionPolicy"], ("Never", "PreemptLowerPriority"))

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The value stays."""
        causes = []
        if new.get("value") != old.get("value"):
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes + immutable(
            "preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy")
        )

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """A PriorityClass has no spec, and stays at generation 1."""
        del new, old
        return False
