"""Sets defaults of pods by LimitRanges, and rejects pods and claims that exceed them.

Source: Kubernetes v1.36 ``plugin/pkg/admission/limitranger``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas import quantity_forms
from roadstead.schemas.quantities import concurrent_requests
from roadstead.values.status_errors import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj, Resource

_ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, str]


class LimitRanger:
    """Applies the LimitRanges of a namespace."""

    def default(self, resource: Resource, obj: Obj, objects: Objects) -> None:
        """Set the default requests and limits of a new pod's containers."""
        if resource.key != "pods":
            return
        for limit_range in objects.list("limitranges", obj["metadata"]["namespace"]):
            for limit in (limit_range.get("spec") or {}).get("limits") or ():
                if limit["type"] == "Container":
                    _set_defaults(obj, limit)

    def review(
        self, resource: Resource, new: Obj, old: Obj | None, objects: Objects, *, dry_run: bool = False
    ) -> None:
        """Check a new pod, or a new or changed claim.

        Raises:
            StatusError: 403, with all limits that it exceeds.
        """
        del dry_run
        if resource.key not in ("pods", "persistentvolumeclaims") or (old and resource.key == "pods"):
            return
        meta = new["metadata"]
        for limit_range in objects.list("limitranges", meta["namespace"]):
            faults = [
                fault
                for limit in (limit_range.get("spec") or {}).get("limits") or ()
                for fault in _faults(resource.kind, new["spec"], limit)
            ]
            if faults := list(dict.fromkeys(faults)):
                text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
                raise forbidden(resource, meta.get("name", ""), text)


def _set_defaults(pod: Obj, limit: Obj) -> None:
    """Set what containers do not specify, and name it in an annotation as upstream does."""
    said = []
    kinds = (("requests", "request", "defaultRequest"), ("limits", "limit", "default"))
    for list_name, word in (("initContainers", "init container"), ("containers", "container")):
        for container in pod["spec"].get(list_name) or ():
            for field, singular, source in kinds:
                given = (container.get("resources") or {}).get(field) or {}
                added = {key: value for key, value in (limit.get(source) or {}).items() if key not in given}
                if added:
                    container.setdefault("resources", {})[field] = {**given, **added}
                    said.append(f"{', '.join(sorted(added))} {singular} for {word} {container['name']}")
    if said:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"


def _faults(kind: str, spec: Obj, limit: Obj) -> Iterator[str]:
    if kind == "PersistentVolumeClaim":
        if limit["type"] == kind:
            wanted = (spec.get("resources") or {}).get("requests") or {}
            yield from _minimum(limit, wanted)
            yield from _maximum(limit, wanted, "request")
        return
    if limit["type"] == "Container":
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            resources = container.get("resources") or {}
            yield from _all_faults(limit, resources.get("requests") or {}, resources.get("limits") or {})
    elif limit["type"] == "Pod":
        yield from _all_faults(limit, pod_total(spec, "requests"), pod_total(spec, "limits"))


def pod_total(spec: Obj, field: str) -> Amounts:
    """The requests or limits of a pod's containers together, as quantities in the form of the first."""
    forms: Amounts = {}

    def amounts_of(container: Obj) -> dict[str, Decimal]:
        given = (container.get("resources") or {}).get(field) or {}
        for name, text in given.items():
            forms.setdefault(name, text)
        return {name: quantity_forms.value(text) for name, text in given.items()}

    total = concurrent_requests(spec, amounts_of)
    return {name: quantity_forms.written(amount, forms[name]) for name, amount in total.items()}


def _all_faults(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _minimum(limit, requests)
    yield from _maximum(limit, limits, "limit")
    yield from _ratio(limit, requests, limits)


def _minimum(limit: Obj, requests: Amounts) -> Iterator[str]:
    for name, enforced in sorted((limit.get("min") or {}).items()):
        least, head = (
            quantity_forms.value(enforced),
            f"minimum {name} usage per {limit['type']} is {enforced}",
        )
        if name not in requests:
            yield f"{head}.  No request is specified"
        elif quantity_forms.value(requests[name]) < least:
            yield f"{head}, but request is {requests[name]}"


def _maximum(limit: Obj, amounts: Amounts, word: str) -> Iterator[str]:
    for name, enforced in sorted((limit.get("max") or {}).items()):
        most, head = quantity_forms.value(enforced), f"maximum {name} usage per {limit['type']} is {enforced}"
        if name not in amounts:
            yield f"{head}.  No {word} is specified"
        elif quantity_forms.value(amounts[name]) > most:
            yield f"{head}, but {word} is {amounts[name]}"


def _ratio(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, enforced in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        head = f"{name} max limit to request ratio per {limit['type']} is {enforced}"
        request = quantity_forms.value(requests.get(name, "0"))
        if not request:
            yield f"{head}, but no request is specified or request is 0"
        elif not (most := quantity_forms.value(limits.get(name, "0"))):
            yield f"{head}, but no limit is specified or limit is 0"
        elif most / request > quantity_forms.value(enforced):
            yield f"{head}, but provided ratio is {most / request:.6f}"
