"""Sets defaults of Jobs and CronJobs and checks them.

Source: Kubernetes v1.36 ``pkg/apis/batch``: ``v1/defaults.go``, ``validation``; ``pkg/registry/batch``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    immutable,
    invalid,
    label_selector,
    not_among,
    not_negative,
    one_of,
    required,
    selects,
)
from roadstead.kinds.checks.metadata import label_faults, qualified_name_faults
from roadstead.kinds.kind import StatusKind
from roadstead.kinds.podspec.checks import default_template, template_causes
from roadstead.values.copies import copied
from roadstead.values.status_errors import Cause

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

_UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
_MOST_PARALLEL = 100_000
_LONGEST_CRON_NAME = 52


def _default_job(spec: Obj) -> None:
    """Set defaults of a job's spec."""
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2147483647 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault(
        "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    )


def job_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of a job's spec, except for its selector."""
    causes: list[Cause] = []
    for field in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        causes += not_negative(f"{at}.{field}", spec.get(field))
    per_index, most = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if most is not None and per_index is None:
        causes.append(required(f"{at}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    mode = spec.get("completionMode", "NonIndexed")
    causes += one_of(f"{at}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        causes += _indexed_causes(spec, at)
    if mode == "NonIndexed":
        causes += [
            invalid(f"{at}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
            if spec.get(field) is not None
        ]
    failure = spec.get("podFailurePolicy")
    if failure is not None:
        causes += _failure_causes(spec, failure, f"{at}.podFailurePolicy.rules")
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        words = ("Failed", "TerminatingOrFailed") if failure is None else ("Failed",)
        causes += one_of(f"{at}.podReplacementPolicy", replacement, words)
    causes += template_causes(spec["template"], f"{at}.template")
    return causes + _restart_causes(spec, f"{at}.template.spec.restartPolicy")


def _restart_causes(spec: Obj, at: str) -> list[Cause]:
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        return [required(at, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_among(at, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        message = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(at, policy, message)]
    return []


def _indexed_causes(spec: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    completions, most = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        causes.append(required(f"{at}.completions", "when completion mode is Indexed"))
    if spec.get("parallelism", 0) > _MOST_PARALLEL:
        message = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        causes.append(invalid(f"{at}.parallelism", spec["parallelism"], message))
    if most is not None and completions is not None and most > completions:
        causes.append(invalid(f"{at}.maxFailedIndexes", most, "must be less than or equal to completions"))
    if most is not None and most > _MOST_PARALLEL:
        causes.append(
            invalid(f"{at}.maxFailedIndexes", most, f"must be less than or equal to {_MOST_PARALLEL}")
        )
    return causes


_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


def _quoted(words: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{word}"' for word in words) + "]"


def _chosen(at: str, value: str, words: tuple[str, ...]) -> list[Cause]:
    return one_of(at, value, words) if value else [required(at, f"valid values: {_quoted(words)}")]


def _failure_causes(spec: Obj, policy: Obj, at: str) -> list[Cause]:
    """Faults of the rules for failed pods."""
    causes: list[Cause] = []
    pod = spec["template"]["spec"]
    names = {one.get("name", "") for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    for index, rule in enumerate(policy.get("rules") or ()):
        here, action = f"{at}[{index}]", rule.get("action", "")
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            causes.append(invalid(f"{here}.action", action, "requires the backoffLimitPerIndex to be set"))
        causes += _chosen(f"{here}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            causes += _code_causes(codes, f"{here}.onExitCodes", names)
        for number, pattern in enumerate(conditions):
            inner, kind = f"{here}.onPodConditions[{number}]", pattern.get("type", "")
            causes += [invalid(f"{inner}.type", kind, fault) for fault in qualified_name_faults(kind)]
            statuses = ("False", "True", "Unknown")
            causes += one_of(f"{inner}.status", pattern.get("status") or "True", statuses)
        if (codes is None) is not bool(conditions):
            message = "both OnExitCodes and OnPodConditions is not supported"
            if codes is None:
                message = "one of OnExitCodes and OnPodConditions is required"
            causes.append(Cause(here, f"Invalid value: specifying {message}"))
    return causes


def _code_causes(codes: Obj, at: str, names: set[str]) -> list[Cause]:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    causes = _chosen(f"{at}.operator", operator, ("In", "NotIn"))
    container = codes.get("containerName")
    if container is not None and container not in names:
        message = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{at}.containerName", container, message))
    if not values:
        causes.append(invalid(f"{at}.values", values, "at least one value is required"))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.append(invalid(f"{at}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            causes.append(duplicate(f"{at}.values[{index}]", value))
    if values != sorted(values):
        causes.append(invalid(f"{at}.values", values, "must be ordered"))
    return causes


class Jobs(StatusKind):
    """Jobs; the selector and the template's labels derive from the uid."""

    default_propagation = "Orphan"

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        spec = obj.setdefault("spec", {})
        default_template(spec.setdefault("template", {}), keeps_group=self.keeps_scheduling_group)
        _default_job(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def prepare_create(self, obj: Obj) -> None:
        """The selector names the job; a job without labels gets those of its pods."""
        super().prepare_create(obj)
        spec, uid = obj["spec"], obj["metadata"].get("uid", "")
        if spec["manualSelector"]:
            return
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for key in _UID_LABELS:
            labels.setdefault(key, uid)
        for key in _NAME_LABELS:
            labels.setdefault(key, obj["metadata"].get("name", ""))
        spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(_UID_LABELS[0], uid)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new object."""
        meta, spec = obj["metadata"], obj["spec"]
        causes = self._label_causes(obj) + self.spec_causes(spec)
        last = (spec.get("completions") or 0) - 1
        if spec["completionMode"] == "Indexed" and last >= 0:
            hostname = f"{meta.get('name', '')}-{last}"
            message = f"will not able to create pod with invalid DNS label: {hostname}"
            causes += (
                [invalid("metadata.name", meta.get("name", ""), message)] if label_faults(hostname) else []
            )
        if not causes and not meta.get("labels"):
            meta["labels"] = dict(spec["template"]["metadata"].get("labels") or {})
        return causes

    @staticmethod
    def _label_causes(obj: Obj) -> list[Cause]:
        """The pods must have the generated labels."""
        meta, selector = obj["metadata"], obj["spec"].get("selector")
        if obj["spec"]["manualSelector"] or selector is None:
            return []
        labels = obj["spec"]["template"]["metadata"].get("labels") or {}
        expected = dict.fromkeys(_UID_LABELS, meta["uid"]) | dict.fromkeys(_NAME_LABELS, meta.get("name", ""))
        causes = []
        for key, value in expected.items():
            at, message = f"spec.template.metadata.labels[{key}]", f"must be '{value}'"
            if key not in labels:
                causes.append(required(at, message))
            elif labels[key] != value:
                causes.append(invalid(at, labels, message))
        if not label_selector(selector, "") and not selects(selector, expected):
            causes.append(invalid("spec.selector", selector, "`selector` not auto-generated"))
        return causes

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """Faults of a spec."""
        causes = job_causes(spec, "spec")
        selector = spec.get("selector")
        faults = label_selector(selector, "spec.selector")
        causes += [required("spec.selector")] if selector is None else faults
        labels = spec["template"]["metadata"].get("labels") or {}
        if not faults and (selector is None or not selects(selector, labels)):
            message = "`selector` does not match template `labels`"
            causes.append(invalid("spec.template.metadata.labels", labels, message))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The template and the number of completions cannot change."""
        before, after = old["spec"], new["spec"]
        causes = self._label_causes(new) + self.spec_causes(after)
        completions, was = after.get("completions"), before.get("completions")
        if after["completionMode"] != "Indexed":
            causes += immutable("spec.completions", completions, was)
        elif completions not in (was, None, after["parallelism"]):
            message = "can only be modified in tandem with spec.parallelism"
            causes.append(invalid("spec.completions", completions, message))
        causes += immutable("spec.selector", after.get("selector"), before.get("selector"))
        if before.get("suspend"):
            spec = _changeable(new, old)
            causes += immutable("spec.template.spec", after["template"]["spec"], spec)
        else:
            causes += immutable("spec.template", after["template"], before["template"])
        for field in (
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        ):
            causes += immutable(f"spec.{field}", after.get(field), before.get(field))
        return causes

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("status.successful",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def _changeable(new: Obj, old: Obj) -> Obj:
    """A suspended job's template with the amounts and, before the start, the placement of the new one."""
    spec: Obj = copied(old["spec"]["template"]["spec"])
    wanted = new["spec"]["template"]["spec"]
    if not (old.get("status") or {}).get("startTime"):
        for field in ("nodeSelector", "tolerations", "schedulingGates"):
            spec.pop(field, None)
            if field in wanted:
                spec[field] = wanted[field]
        affinity = spec.pop("affinity", None) or {}
        affinity.pop("nodeAffinity", None)
        if "nodeAffinity" in (wanted.get("affinity") or {}):
            affinity["nodeAffinity"] = wanted["affinity"]["nodeAffinity"]
        if affinity or wanted.get("affinity") == {}:
            spec["affinity"] = affinity
    for kind in ("containers", "initContainers"):
        for container, other in zip(spec.get(kind) or (), wanted.get(kind) or (), strict=False):
            container["resources"] = other.get("resources", {})
    return spec


class CronJobs(StatusKind):
    """CronJobs."""

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("schedule", "")
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        template = spec.setdefault("jobTemplate", {})
        template.setdefault("metadata", {})
        inner = template.setdefault("spec", {}).setdefault("template", {})
        default_template(inner, keeps_group=self.keeps_scheduling_group)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new one; its jobs are named after it."""
        name, causes = obj["metadata"].get("name", ""), self.spec_causes(obj["spec"])
        if len(name) > _LONGEST_CRON_NAME:
            causes.append(
                invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters")
            )
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.spec_causes(new["spec"])

    @staticmethod
    def spec_causes(spec: Obj) -> list[Cause]:
        """Faults of a spec."""
        causes = _schedule_causes(spec["schedule"], "spec.schedule")
        for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            causes += not_negative(f"spec.{field}", spec.get(field))
        policies = ("Allow", "Forbid", "Replace")
        causes += one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], policies)
        job, at = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
        causes += job_causes(job, at)
        if job.get("selector") is not None:
            causes.append(invalid(f"{at}.selector", job["selector"], "`selector` will be auto-generated"))
        if job.get("manualSelector"):
            causes.append(not_among(f"{at}.manualSelector", True, ("nil", "false")))  # noqa: FBT003 - a value
        return causes


_NICKNAMES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = re.compile(r"@every \S+")
_FIELD = re.compile(r"[\d*/,\-?A-Za-z]+")
_FIELDS = 5


def _schedule_causes(schedule: str, at: str) -> list[Cause]:
    if not schedule:
        return [required(at)]
    parts = schedule.split()
    if schedule in _NICKNAMES or _EVERY.fullmatch(schedule):
        return []
    if len(parts) != _FIELDS:
        message = f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
        return [invalid(at, schedule, message)]
    wrong = [part for part in parts if not _FIELD.fullmatch(part)]
    return [invalid(at, schedule, f"failed to parse int from {wrong[0]}")] if wrong else []
