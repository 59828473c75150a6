"""Sets defaults of HorizontalPodAutoscalers and checks them.

Source: Kubernetes v1.36 ``pkg/apis/autoscaling``: ``v2/defaults.go``, ``validation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import invalid, required
from roadstead.kinds.kind import StatusKind

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause


class HorizontalPodAutoscalers(StatusKind):
    """HorizontalPodAutoscalers."""

    counts_generation = False

    def default(self, obj: Obj) -> None:
        """At least one replica, and 80 per cent of the requested CPU."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]

    def prepare_create(self, obj: Obj) -> None:
        """Nothing is known yet."""
        obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of bounds and target."""
        spec = obj["spec"]
        causes: list[Cause] = []
        reference = spec.get("scaleTargetRef") or {}
        causes += [
            required(f"spec.scaleTargetRef.{field}") for field in ("kind", "name") if not reference.get(field)
        ]
        least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
        if least < 1:
            causes.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
        if most < 1:
            causes.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
        elif most < least:
            message = "must be greater than or equal to `minReplicas`"
            causes.append(invalid("spec.maxReplicas", most, message))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)
