"""Sets defaults of LimitRanges and checks LimitRanges and ResourceQuotas.

Source: Kubernetes v1.36 ``pkg/apis/core/v1/defaults.go``, ``pkg/apis/core/validation`` (LimitRange,
ResourceQuota).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import forbidden, invalid, required
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.schemas import quantity_forms

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

#: Resources of pods that quotas of any scope may limit.
_OF_PODS = ("pods", "cpu", "memory", "ephemeral-storage")
_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass")


class LimitRanges(Kind):
    """LimitRanges."""

    def default(self, obj: Obj) -> None:
        """The default of a container's limit is the maximum; of its request the limit, else the minimum."""
        for limit in (obj.get("spec") or {}).get("limits") or ():
            if limit.get("type") != "Container":
                continue
            limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            requests = {**(limit.get("min") or {}), **limits, **(limit.get("defaultRequest") or {})}
            limit.update({"default": limits} if limits else {})
            limit.update({"defaultRequest": requests} if requests else {})

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of bounds that contradict each other."""
        causes: list[Cause] = []
        for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            causes += _limit_causes(limit, f"spec.limits[{index}]")
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)


def _limit_causes(limit: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    kind = limit.get("type", "")
    if kind == "Pod":
        causes += [
            forbidden(f"{at}.{field}", "may not be specified when `type` is 'Pod'")
            for field in ("default", "defaultRequest")
            if limit.get(field)
        ]
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in (limit.get(field) or {}) for field in ("min", "max")
    ):
        message = "either minimum or maximum storage value is required, but neither was provided"
        causes.append(required(f"{at}.limits", message))
    names = sorted(
        {name for field in ("min", "max", "default", "defaultRequest") for name in limit.get(field) or ()}
    )
    pairs = (
        ("min", "max", "min value {} is greater than max value {}", "min", "min"),
        (
            "defaultRequest",
            "max",
            "default request value {} is greater than max value {}",
            "defaultRequest",
            "defaultRequest",
        ),
        (
            "defaultRequest",
            "default",
            "default request value {} is greater than default limit value {}",
            "defaultRequest",
            "defaultRequest",
        ),
        ("default", "max", "default value {} is greater than max value {}", "default", "max"),
        (
            "min",
            "defaultRequest",
            "min value {} is greater than default request value {}",
            "defaultRequest",
            "defaultRequest",
        ),
        ("min", "default", "min value {} is greater than default value {}", "default", "min"),
    )
    for name in names:
        for low, high, message, field, shown in pairs:
            less, more = (limit.get(low) or {}).get(name), (limit.get(high) or {}).get(name)
            if less is None or more is None or quantity_forms.value(less) <= quantity_forms.value(more):
                continue
            causes.append(invalid(f"{at}.{field}[{name}]", limit[shown][name], message.format(less, more)))
    return causes


class ResourceQuotas(StatusKind):
    """ResourceQuotas."""

    counts_generation = False

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of amounts, and of scopes that no pod's resource can have."""
        spec = obj.setdefault("spec", {})
        causes = [
            invalid(f"spec.hard[{name}]", amount, "must be greater than or equal to 0")
            for name, amount in sorted((spec.get("hard") or {}).items())
            if quantity_forms.value(amount) < 0
        ]
        scopes = spec.get("scopes") or []
        for scope in scopes:
            if scope not in _SCOPES:
                causes.append(invalid("spec.scopes", scopes, "unsupported scope"))
            elif any(not _may_limit(scope, name) for name in spec.get("hard") or ()):
                causes.append(invalid("spec.scopes", scopes, "unsupported scope applied to resource"))
        for left, right in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
            if left in scopes and right in scopes:
                causes.append(invalid("spec.scopes", scopes, "conflicting scopes"))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation; scopes cannot change."""
        causes = self.validate_create(new)
        if sorted(new["spec"].get("scopes") or ()) != sorted(old["spec"].get("scopes") or ()):
            causes.append(invalid("spec.scopes", new["spec"].get("scopes") or [], "field is immutable"))
        return causes


def _may_limit(scope: str, name: str) -> bool:
    """Whether a quota of a scope may limit a resource."""
    if scope == "BestEffort":
        return name == "pods"
    return name.removeprefix("requests.").removeprefix("limits.") in _OF_PODS
