"""Sets the defaults that the API server sets when a pod is created: requests, priority, tolerations, ports.

Documents are plain JSON values, as they are read from a manifest.

Source: Kubernetes v1.36, ``pkg/apis/core/v1/defaults.go``, ``pkg/registry/core/pod/strategy.go`` (label
keys of affinity terms), admission plugins Priority, DefaultTolerationSeconds, LimitRanger, RuntimeClass.
Differs: LimitRanges only set defaults here, their bounds are not checked; ResourceQuotas and webhooks are not
considered.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from msgspec import Struct, field

from plimsoll.framework.errors import PlimsollError
from plimsoll.model.kinds.workload import PriorityClass
from plimsoll.model.shortened import shortened

Document: TypeAlias = dict[str, Any]

#: Priority classes that every API server has.
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

_UNREADY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S = 300


#: Maximum length of an error, in characters.
LONGEST_SENTENCE = 1000


class ManifestError(PlimsollError):
    """A manifest that defines no valid pods; the sentence gives the problem, its place, and valid values."""

    def __str__(self) -> str:
        """The sentence, truncated, since it repeats input."""
        text = super().__str__()
        return shortened(text, LONGEST_SENTENCE)


class PodDefaults(Struct, frozen=True):
    """The cluster's state that admission needs.

    Attributes:
        limit_ranges: Keyed by namespace; None if unknown.
        runtime_classes: Keyed by name; None if unknown.
    """

    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    limit_ranges: Mapping[str, Sequence[Document]] | None = None
    runtime_classes: Mapping[str, Document] | None = None

    def admit(self, pod: Document, subject: str) -> tuple[Document, list[str]]:
        """The pod as the API server would store it, and sentences about what is unknown.

        Raises:
            ManifestError: The API server would refuse it.
        """
        pod = deepcopy(pod)
        spec, notes = pod.setdefault("spec", {}), []
        for container in _containers(spec):
            _default_requests(container)
            if spec.get("hostNetwork"):
                for port in container.get("ports") or ():
                    port["hostPort"] = port.get("hostPort") or port.get("containerPort") or 0
        notes += self._set_limits(spec, pod.get("metadata", {}).get("namespace", ""), subject)
        if spec.get("resources"):
            _default_pod_level(spec)
        notes += self._set_runtime_class(spec, subject)
        self._set_priority(spec, subject)
        _set_tolerations(spec)
        _merge_label_keys(spec, pod.get("metadata", {}).get("labels") or {})
        return pod, notes

    def _set_limits(self, spec: Document, namespace: str, subject: str) -> list[str]:
        """Set the defaults of the namespace's LimitRanges in containers without an amount."""
        if self.limit_ranges is None:
            silent = [
                each.get("name", "")
                for each in _containers(spec)
                if not {"cpu", "memory"} <= _requested(each)
            ]
            if not silent:
                return []
            note = (
                f"{subject}: container {', '.join(silent)} does not request both cpu and memory; LimitRanges"
                f" of namespace {namespace} are not known"
            )
            return [note]
        for limit_range in self.limit_ranges.get(namespace, ()):
            for item in limit_range.get("spec", {}).get("limits") or ():
                if item.get("type") != "Container":
                    continue
                limits = item.get("default") or {}
                requests = {**limits, **(item.get("defaultRequest") or {})}
                for container in _containers(spec):
                    resources = container.setdefault("resources", {})
                    resources["limits"] = {**limits, **(resources.get("limits") or {})}
                    resources["requests"] = {**requests, **(resources.get("requests") or {})}
        return []

    def _set_runtime_class(self, spec: Document, subject: str) -> list[str]:
        name = spec.get("runtimeClassName")
        if not name or spec.get("overhead"):
            return []
        found = (self.runtime_classes or {}).get(name)
        if found is None:
            return [f"{subject}: the overhead and the nodes of RuntimeClass {name} are not known"]
        overhead = (found.get("overhead") or {}).get("podFixed")
        if overhead:
            spec["overhead"] = overhead
        scheduling = found.get("scheduling") or {}
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **(scheduling.get("nodeSelector") or {})}
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
        return []

    def _set_priority(self, spec: Document, subject: str) -> None:
        name = spec.get("priorityClassName")
        if name:
            found = self.priority_classes.get(name)
            if found is None and name in SYSTEM_CLASSES:
                found = PriorityClass(value=SYSTEM_CLASSES[name])
            if found is None:
                known = ", ".join(sorted({*self.priority_classes, *SYSTEM_CLASSES}))
                raise ManifestError(
                    f"{subject}: there is no PriorityClass {name}, so the API server would refuse its pods;"
                    f" the classes are {known}"
                )
        else:
            defaults = [each for each in self.priority_classes.values() if each.global_default]
            if not defaults:
                spec["priority"] = 0
                return
            found = min(defaults, key=lambda each: (each.value, each.name))
            spec["priorityClassName"] = found.name
        spec["priority"] = found.value
        spec["preemptionPolicy"] = spec.get("preemptionPolicy") or found.preemption_policy


def _containers(spec: Document) -> Iterator[Document]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _requested(container: Document) -> set[str]:
    return set((container.get("resources") or {}).get("requests") or ())


def _default_requests(container: Document) -> None:
    """Copy limits to missing requests."""
    resources = container.get("resources") or {}
    if resources.get("limits"):
        container["resources"] = {
            **resources,
            "requests": {**resources["limits"], **(resources.get("requests") or {})},
        }


def _default_pod_level(spec: Document) -> None:
    """Copy pod-level limits to pod-level requests of resources that no container requests.

    If containers request a resource, the pod-level request stays absent, and requests.py adds theirs up.
    """
    resources = spec["resources"]
    asked = {name for each in _containers(spec) for name in _requested(each)}
    requests = dict(resources.get("requests") or {})
    for name, amount in (resources.get("limits") or {}).items():
        if name not in asked:
            requests.setdefault(name, amount)
    spec["resources"] = {**resources, "requests": requests}


def _set_tolerations(spec: Document) -> None:
    """Add temporary tolerations of nodes that are not ready or not reachable, unless the pod has its own."""
    tolerations = list(spec.get("tolerations") or ())
    for key in _UNREADY:
        covered = any(
            each.get("effect") in (None, "", "NoExecute")
            and (each.get("key") == key or (not each.get("key") and each.get("operator") == "Exists"))
            for each in tolerations
        )
        if not covered:
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}
            )
    spec["tolerations"] = tolerations


def _merge_label_keys(spec: Document, labels: Mapping[str, str]) -> None:
    """Add the pod's values of ``matchLabelKeys`` to the selectors of affinity terms."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(each.get("podAffinityTerm") or {} for each in preferred)):
            selector = term.get("labelSelector")
            if selector is None:
                continue
            expressions = list(selector.get("matchExpressions") or ())
            for field_name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
                expressions += [
                    {"key": key, "operator": operator, "values": [labels[key]]}
                    for key in term.get(field_name) or ()
                    if key in labels
                ]
            if expressions:
                selector["matchExpressions"] = expressions
