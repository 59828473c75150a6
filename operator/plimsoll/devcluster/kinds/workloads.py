"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and their like: defaults, checks, generations.

Source: Kubernetes v1.36 ``pkg/apis/{apps,batch}``: ``v1/defaults.go``, ``validation``;
``pkg/registry/{apps,batch}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.devcluster.kinds.checks import (
    forbidden,
    immutable,
    invalid,
    label_selector,
    not_negative,
    one_of,
    percentage_or_number,
    required,
    selects,
)
from plimsoll.devcluster.kinds.kind import StatusKind
from plimsoll.devcluster.kinds.pod_spec import default_spec, spec_causes

if TYPE_CHECKING:
    from plimsoll.devcluster.resources import Obj
    from plimsoll.devcluster.statuses import Cause

_HISTORY = 10


class Workload(StatusKind):
    """What all have: a selector, a pod template, replicas."""

    sized = True

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        spec = obj.setdefault("spec", {})
        template = spec.setdefault("template", {})
        template.setdefault("metadata", {})
        default_spec(template.setdefault("spec", {}))
        if self.sized:
            spec.setdefault("replicas", 1)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """What is wrong with a new object."""
        return self.spec_causes(obj["spec"])

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """What is wrong with an update."""
        causes = self.spec_causes(new["spec"])
        return causes + immutable("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """What is wrong with a spec."""
        causes = not_negative("spec.replicas", spec.get("replicas"))
        causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        causes += not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        return [*causes, *self.selector_causes(spec), *self.template_causes(spec)]

    def selector_causes(self, spec: Obj) -> list[Cause]:
        """The selector must be given and choose the template."""
        selector = spec.get("selector")
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        mismatch = invalid(
            "spec.template.metadata.labels", labels, "`selector` does not match template `labels`"
        )
        if selector is None:
            return [required("spec.selector"), mismatch]
        causes = label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            causes.append(invalid("spec.selector", selector, "empty selector is invalid for deployment"))
        elif not causes and not selects(selector, labels):
            causes.append(mismatch)
        return causes

    def template_causes(self, spec: Obj) -> list[Cause]:
        """The template must be a pod that restarts always."""
        pod = spec["template"]["spec"]
        causes = spec_causes(pod, "spec.template.spec")
        if not causes:
            causes += one_of("spec.template.spec.restartPolicy", pod.get("restartPolicy"), ("Always",))
        return causes


class Deployments(Workload):
    """Deployments; their annotations count as spec, for they are copied to ReplicaSets."""

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        super().default(obj)
        spec = obj["spec"]
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", _HISTORY)
        spec.setdefault("progressDeadlineSeconds", 600)

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """Spec or annotations."""
        before, after = old["metadata"].get("annotations") or {}, new["metadata"].get("annotations") or {}
        return super().spec_changed(new, old) or before != after

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """What is wrong with a spec."""
        causes = super().spec_causes(spec)
        strategy = spec["strategy"]
        causes += one_of("spec.strategy.type", strategy["type"], ("Recreate", "RollingUpdate"))
        rolling = strategy.get("rollingUpdate")
        if strategy["type"] == "Recreate" and rolling is not None:
            told = "may not be specified when strategy `type` is 'Recreate'"
            causes.append(forbidden("spec.strategy.rollingUpdate", told))
        elif rolling is not None:
            at = "spec.strategy.rollingUpdate"
            causes += percentage_or_number(f"{at}.maxUnavailable", rolling.get("maxUnavailable"))
            if isinstance(rolling.get("maxSurge"), int):
                causes += not_negative(f"{at}.maxSurge", rolling["maxSurge"])
            if rolling.get("maxUnavailable") in (0, "0%") and rolling.get("maxSurge") in (0, "0%"):
                told = "may not be 0 when `maxSurge` is 0"
                causes.append(invalid(f"{at}.maxUnavailable", rolling["maxUnavailable"], told))
        deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
        if deadline is not None and deadline <= ready:
            causes.append(
                invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
            )
        return causes


class ReplicaSets(Workload):
    """ReplicaSets."""

    def prepare_create(self, obj: Obj) -> None:
        """A new one has no replicas."""
        obj["status"] = {"replicas": 0}

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return frozenset(("status.replicas",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream."""
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}


class StatefulSets(Workload):
    """StatefulSets."""

    _CHANGEABLE = (
        "replicas",
        "template",
        "updateStrategy",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
    )

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("revisionHistoryLimit", _HISTORY)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Obj) -> None:
        """A new one has no replicas."""
        obj["status"] = {"replicas": 0, "availableReplicas": 0}

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Little of the spec may change."""
        causes = self.spec_causes(new["spec"])

        def fixed(spec: Obj) -> Obj:
            return {key: value for key, value in spec.items() if key not in self._CHANGEABLE}

        if fixed(new["spec"]) != fixed(old["spec"]):
            told = (
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' "
                "and 'minReadySeconds' are forbidden"
            )
            causes.append(forbidden("spec", told))
        return causes


class DaemonSets(Workload):
    """DaemonSets."""

    sized = False

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        super().default(obj)
        strategy = obj["spec"].setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        obj["spec"].setdefault("revisionHistoryLimit", _HISTORY)

    def prepare_create(self, obj: Obj) -> None:
        """A new one runs nowhere."""
        obj["status"] = {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        }


_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")


class Jobs(Workload):
    """Jobs: the selector and the template's labels are made of the uid."""

    sized = False
    default_propagation = "Orphan"

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        super().default(obj)
        spec = obj["spec"]
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 2147483647 if "backoffLimitPerIndex" in spec else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        spec.setdefault(
            "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        )

    def prepare_create(self, obj: Obj) -> None:
        """The selector names the job."""
        super().prepare_create(obj)
        spec, uid = obj["spec"], obj["metadata"].get("uid", "")
        if spec.get("manualSelector"):
            return
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for key in _JOB_LABELS:
            labels.setdefault(key, uid)
        for key in _NAME_LABELS:
            labels.setdefault(key, obj["metadata"].get("name", ""))
        spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(_JOB_LABELS[0], uid)

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """What is wrong with a spec."""
        causes: list[Cause] = []
        for field in (
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
        ):
            causes += not_negative(f"spec.{field}", spec.get(field))
        causes += one_of("spec.completionMode", spec["completionMode"], ("NonIndexed", "Indexed"))
        return [*causes, *self.selector_causes(spec), *self.template_causes(spec)]

    def template_causes(self, spec: Obj) -> list[Cause]:
        """The template must be a pod that ends."""
        pod = spec["template"]["spec"]
        causes = spec_causes(pod, "spec.template.spec")
        if pod.get("restartPolicy") not in ("OnFailure", "Never"):
            valid = 'valid values: "OnFailure", "Never"'
            causes.append(required("spec.template.spec.restartPolicy", valid))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The template and what counts completions cannot change."""
        before, after = old["spec"], new["spec"]
        causes = self.spec_causes(after)
        causes += immutable("spec.selector", after.get("selector"), before.get("selector"))
        causes += immutable("spec.completionMode", after.get("completionMode"), before.get("completionMode"))
        if after.get("completionMode") != "Indexed":
            causes += immutable("spec.completions", after.get("completions"), before.get("completions"))
        if not (before.get("suspend") and not (old.get("status") or {}).get("startTime")):
            causes += immutable("spec.template", after.get("template"), before.get("template"))
        return causes

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return frozenset(("status.successful",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream."""
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


class CronJobs(StatusKind):
    """CronJobs; nothing here runs them."""

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
        default_spec(job.setdefault("template", {}).setdefault("spec", {}))

    def validate_create(self, obj: Obj) -> list[Cause]:
        """A schedule is needed."""
        schedule: Any = obj["spec"].get("schedule")
        return [] if schedule else [required("spec.schedule")]
