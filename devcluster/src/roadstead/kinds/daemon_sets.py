"""Sets defaults of DaemonSets, checks them and counts the generations of their templates.

Source: Kubernetes v1.36 ``pkg/apis/apps``: ``v1/defaults.go``, ``validation``; ``pkg/registry/apps``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    invalid,
    label_selector,
    not_among,
    not_negative,
    percentage_or_number,
    required,
    selects,
)
from roadstead.kinds.workloads import DEFAULT_HISTORY, Workload, amount_of

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSets(Workload):
    """DaemonSets."""

    sized = False
    error_kind = "daemonset"
    error_template_kind = "DaemonSet"
    counts = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    )
    parts = ()
    always = counts[:4]

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        super().default(obj)
        strategy = obj["spec"].setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        obj["spec"].setdefault("revisionHistoryLimit", DEFAULT_HISTORY)

    def prepare_create(self, obj: Obj) -> None:
        """A new one has an empty status; an annotation counts generations of its template."""
        obj["status"] = dict.fromkeys(self.always, 0)
        _set_generation(obj, max(1, _generation(obj)))

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """A new template increments that generation."""
        super().prepare_update(new, old)
        _set_generation(new, _generation(old) + (new["spec"]["template"] != old["spec"]["template"]))

    def selected_causes(self, spec: Obj) -> list[Cause]:
        """The selector must match the template."""
        selector = spec.get("selector")
        causes = label_selector(selector, "spec.selector")
        labels = spec["template"]["metadata"].get("labels") or {}
        given = selector is not None and (selector.get("matchLabels") or selector.get("matchExpressions"))
        if selector is not None and not given:
            causes.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
        matches = bool(causes) or (selector is not None and selects(selector, labels))
        return causes + self.template_causes(spec, matches=matches)

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """Faults of a spec."""
        causes = super().spec_causes(spec)
        strategy, at = spec["updateStrategy"], "spec.updateStrategy"
        if strategy["type"] == "RollingUpdate":
            unavailable = strategy["rollingUpdate"]["maxUnavailable"]
            surge = strategy["rollingUpdate"]["maxSurge"]
            causes += percentage_or_number(f"{at}.rollingUpdate.maxUnavailable", unavailable)
            causes += percentage_or_number(f"{at}.rollingUpdate.maxSurge", surge)
            if amount_of(unavailable) and amount_of(surge):
                message = "may not be set when maxUnavailable is non-zero"
                causes.append(invalid(f"{at}.rollingUpdate.maxSurge", surge, message))
            elif not amount_of(unavailable) and not amount_of(surge):
                message = "cannot be 0 when maxSurge is 0"
                causes.append(required(f"{at}.rollingUpdate.maxUnavailable", message))
        elif strategy["type"] != "OnDelete":
            causes.append(not_among(at, strategy, ("RollingUpdate", "OnDelete")))
        return causes + not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _generation(obj: Obj) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(_GENERATION, "")
    return int(text) if text.isdigit() else 0


def _set_generation(obj: Obj, number: int) -> None:
    obj["metadata"].setdefault("annotations", {})[_GENERATION] = str(number)
