"""Sets defaults of Deployments and ReplicaSets and checks them; defines the parts that all workloads share.

Source: Kubernetes v1.36 ``pkg/apis/apps``: ``v1/defaults.go``, ``validation``; ``pkg/registry/apps``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    forbidden,
    immutable,
    invalid,
    label_selector,
    not_above_all,
    not_among,
    not_negative,
    one_of,
    required,
    selects,
    share_or_number,
)
from roadstead.kinds.kind import StatusKind
from roadstead.kinds.podspec.checks import default_template, template_causes

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

#: Default of ``revisionHistoryLimit``.
DEFAULT_HISTORY = 10
_TEMPLATE = "spec.template"


class Workload(StatusKind):
    """The common part of workloads: a selector, a pod template, replicas.

    Attributes:
        sized: whether it has a number of replicas.
        error_kind: the kind in messages about selectors.
        error_template_kind: the kind in messages about templates; as upstream, a Deployment's say ReplicaSet.
        counts: fields of the status that are not negative.
        parts: counts that are at most ``replicas``.
        always: counts that are shown even if 0.
    """

    sized = True
    error_kind = "deployment"
    error_template_kind = "ReplicaSet"
    bad_selector = "invalid label selector"
    counts: tuple[str, ...] = ("replicas", "readyReplicas", "availableReplicas")
    parts: tuple[str, ...] = ("readyReplicas", "availableReplicas")
    ready_count_path = "readyReplicas"
    always: tuple[str, ...] = ()

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        spec = obj.setdefault("spec", {})
        default_template(spec.setdefault("template", {}), keeps_group=self.keeps_scheduling_group)
        if self.sized:
            spec.setdefault("replicas", 1)

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Some counts are always present."""
        super().prepare_status(new, old)
        status = new.setdefault("status", {})
        for field in self.always:
            status.setdefault(field, 0)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new object."""
        return self.spec_causes(obj["spec"])

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Faults of an update."""
        causes = self.spec_causes(new["spec"])
        return causes + immutable("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """Faults of a spec."""
        causes = not_negative("spec.replicas", spec.get("replicas"))
        causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        return causes + self.selected_causes(spec)

    def selected_causes(self, spec: Obj) -> list[Cause]:
        """The selector is required and must match the template; the template's pods restart always."""
        selector = spec.get("selector")
        if selector is None:
            return [required("spec.selector"), *self.template_causes(spec, matches=False)]
        causes = label_selector(selector, "spec.selector")
        if causes:
            return [*causes, invalid("spec.selector", selector, self.bad_selector)]
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            causes.append(
                invalid("spec.selector", selector, f"empty selector is invalid for {self.error_kind}")
            )
            return causes + self.template_causes(spec, matches=True)
        labels = spec["template"]["metadata"].get("labels") or {}
        return causes + self.template_causes(spec, matches=selects(selector, labels))

    def template_causes(self, spec: Obj, *, matches: bool) -> list[Cause]:
        """Faults of the template.

        Args:
            spec: of the workload.
            matches: whether the selector matches it.
        """
        pod = spec["template"]["spec"]
        causes: list[Cause] = []
        if not matches:
            labels = spec["template"]["metadata"].get("labels")
            message = "`selector` does not match template `labels`"
            causes.append(invalid(f"{_TEMPLATE}.metadata.labels", labels, message))
        causes += template_causes(self.checked_template(spec), _TEMPLATE)
        causes += one_of(f"{_TEMPLATE}.spec.restartPolicy", pod.get("restartPolicy"), ("Always",))
        if pod.get("activeDeadlineSeconds") is not None:
            message = f"activeDeadlineSeconds in {self.error_template_kind} is not Supported"
            causes.append(forbidden(f"{_TEMPLATE}.spec.activeDeadlineSeconds", message))
        return causes

    def checked_template(self, spec: Obj) -> Obj:
        """The template of the created pods."""
        template: Obj = spec["template"]
        return template

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Counts are not negative, and parts do not exceed the whole."""
        status = new.get("status") or {}
        causes: list[Cause] = []
        for field in ("observedGeneration", *self.counts, "terminatingReplicas", "collisionCount"):
            causes += not_negative(f"status.{field}", status.get(field))
        for field in self.parts:
            if status.get(field, 0) > status.get("replicas", 0):
                message = "cannot be greater than status.replicas"
                causes.append(invalid(f"status.{field}", status.get(field, 0), message))
        if self.parts and status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
            message = f"cannot be greater than {self.ready_count_path}"
            causes.append(invalid("status.availableReplicas", status.get("availableReplicas", 0), message))
        before, after = (old.get("status") or {}).get("collisionCount"), status.get("collisionCount")
        if before is not None and (after or 0) < before:
            causes.append(invalid("status.collisionCount", after or 0, "cannot be decremented"))
        return causes


class Deployments(Workload):
    """Deployments; annotations count as spec, because they are copied to ReplicaSets."""

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Labels cannot change either."""
        super().prepare_status(new, old)
        new["metadata"].pop("labels", None)
        if "labels" in old["metadata"]:
            new["metadata"]["labels"] = old["metadata"]["labels"]

    counts = (
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    )
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        super().default(obj)
        spec = obj["spec"]
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", DEFAULT_HISTORY)
        spec.setdefault("progressDeadlineSeconds", 600)

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """A change of spec or annotations."""
        before, after = old["metadata"].get("annotations") or {}, new["metadata"].get("annotations") or {}
        return super().spec_changed(new, old) or before != after

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """Faults of a spec."""
        causes = super().spec_causes(spec) + _strategy_causes(spec["strategy"])
        causes += not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        deadline, ready = spec["progressDeadlineSeconds"], spec.get("minReadySeconds", 0)
        causes += not_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= ready:
            message = "must be greater than minReadySeconds"
            causes.append(invalid("spec.progressDeadlineSeconds", deadline, message))
        return causes


def _strategy_causes(strategy: Obj) -> list[Cause]:
    rolling, at = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if strategy["type"] == "Recreate":
        message = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(at, message)]
    if strategy["type"] != "RollingUpdate":
        # Upstream's path is the whole strategy, not its type.
        return [not_among("spec.strategy", strategy, ("Recreate", "RollingUpdate"))]
    unavailable, surge = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
    causes = share_or_number(f"{at}.maxUnavailable", unavailable)
    causes += share_or_number(f"{at}.maxSurge", surge)
    if not amount_of(unavailable) and not amount_of(surge):
        causes.append(invalid(f"{at}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return causes + not_above_all(f"{at}.maxUnavailable", unavailable)


def amount_of(value: object) -> int:
    """The number of a count or a percentage; 0 for other values."""
    if isinstance(value, str):
        return 0 if share_or_number("", value) else int(value[:-1])
    return value if isinstance(value, int) else 0


class ReplicaSets(Workload):
    """ReplicaSets."""

    counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    always = ("replicas",)
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

    def prepare_create(self, obj: Obj) -> None:
        """A new one has no replicas."""
        obj["status"] = dict.fromkeys(self.always, 0)

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("status.replicas",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}
