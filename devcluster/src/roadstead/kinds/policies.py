"""Checks PodDisruptionBudgets.

Source: Kubernetes v1.36 ``pkg/registry/policy/poddisruptionbudget``, ``pkg/apis/policy/validation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    invalid,
    label_selector,
    not_negative,
    one_of,
    percentage_or_number,
)
from roadstead.kinds.checks.metadata import path_segment_faults
from roadstead.kinds.kind import StatusKind

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause


_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class PodDisruptionBudgets(StatusKind):
    """PodDisruptionBudgets."""

    qualified_finalizers = False
    unconditional_update = False

    def name_faults(self, name: str) -> list[str]:
        """Any path segment is a name."""
        return path_segment_faults(name)

    def prepare_create(self, obj: Obj) -> None:
        """A new budget allows no disruption until its status is computed."""
        obj["status"] = dict.fromkeys(_COUNTS, 0)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of limits and selector."""
        spec = obj.setdefault("spec", {})
        causes: list[Cause] = []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            message = "minAvailable and maxUnavailable cannot be both set"
            causes.append(invalid("spec", spec, message))
        for field in ("minAvailable", "maxUnavailable"):
            if field in spec:
                causes += percentage_or_number(f"spec.{field}", spec[field])
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None:
            causes += one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
        return causes + label_selector(spec.get("selector"), "spec.selector")

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Counts are always present."""
        super().prepare_status(new, old)
        status = new.setdefault("status", {})
        for field in _COUNTS:
            status.setdefault(field, 0)

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Counts must not be negative."""
        del old
        status = new.get("status") or {}
        causes: list[Cause] = []
        for field in _COUNTS:
            causes += not_negative(f"status.{field}", status.get(field))
        return causes
