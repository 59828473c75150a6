"""Rejects objects that exceed a ResourceQuota of their namespace.

As upstream, admission adds what an object uses to the quota's status before it is stored, and the controller
counts again afterwards.

Source: Kubernetes v1.36 ``staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota``,
``pkg/quota/v1/evaluator/core``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.podspec.resources import is_extended
from roadstead.limits.limit_ranges import pod_total
from roadstead.schemas import quantity_forms
from roadstead.values.status_errors import forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj, Resource

QUOTAS = "resourcequotas"
_CLASS = ".storageclass.storage.k8s.io/"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = ("configmaps", "persistentvolumeclaims", "replicationcontrollers", QUOTAS, "secrets", "services")
Usage = dict[str, str]


def usage(resource: Resource, obj: Obj) -> Usage:
    """What an object uses, as quantities by the names that a quota limits."""
    used = {f"count/{resource.key}": "1"}
    spec = obj.get("spec") or {}
    if resource.key in _COUNTED:
        used[resource.key] = "1"
    if resource.key == "pods" and (obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        used |= _pod_usage(spec)
    elif resource.key == "persistentvolumeclaims":
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
        used["requests.storage"] = size
        if name := spec.get("storageClassName"):
            used |= {f"{name}{_CLASS}requests.storage": size, f"{name}{_CLASS}persistentvolumeclaims": "1"}
    elif resource.key == "services":
        kind, ports = spec.get("type"), str(len(spec.get("ports") or ()))
        if kind == "LoadBalancer":
            used["services.loadbalancers"] = "1"
        if kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)):
            used["services.nodeports"] = ports
    return used


def _pod_usage(spec: Obj) -> Usage:
    used = {"pods": "1"}
    for name, amount in pod_total(spec, "requests").items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = amount
        if name in _COMPUTE or name.startswith("hugepages-") or is_extended(name):
            used[f"requests.{name}"] = amount
    used |= {
        f"limits.{name}": amount for name, amount in pod_total(spec, "limits").items() if name in _COMPUTE
    }
    return used


def added(first: str, second: str) -> str:
    """The sum of two quantities, in the form of the first that is not 0."""
    like = first if quantity_forms.value(first) else second
    return quantity_forms.written(quantity_forms.value(first) + quantity_forms.value(second), like)


def total(usages: Iterable[Usage], names: Iterable[str]) -> Usage:
    """The sum of usages, for some names."""
    found = dict.fromkeys(names, "0")
    for one in usages:
        for name in found.keys() & one.keys():
            found[name] = added(found[name], one[name])
    return found


def covers(quota: Obj, resource: Resource, obj: Obj) -> bool:
    """Whether the scopes of a quota select an object."""
    spec = quota["spec"]
    terms = [{"scopeName": one, "operator": "Exists"} for one in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return not terms or (resource.key == "pods" and all(_in_scope(term, obj["spec"]) for term in terms))


def _in_scope(term: Obj, spec: Obj) -> bool:
    match term["scopeName"]:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            name, values = spec.get("priorityClassName", ""), term.get("values") or ()
            operators: dict[str, Callable[[], bool]] = {
                "In": lambda: name in values,
                "NotIn": lambda: name not in values,
                "Exists": lambda: bool(name),
                "DoesNotExist": lambda: not name,
            }
            return operators[term["operator"]]()
        case "CrossNamespacePodAffinity":
            kinds = [
                (spec.get("affinity") or {}).get(one) or {} for one in ("podAffinity", "podAntiAffinity")
            ]
            required = [
                one
                for kind in kinds
                for one in kind.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
            ]
            preferred = [
                one["podAffinityTerm"]
                for kind in kinds
                for one in kind.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
            ]
            return any(one.get("namespaces") or "namespaceSelector" in one for one in (*required, *preferred))
    return False


def _is_best_effort(spec: Obj) -> bool:
    return not any(
        (container.get("resources") or {}).get(field, {}).get(name)
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        for field in ("requests", "limits")
        for name in ("cpu", "memory")
    )


class QuotaAdmission:
    """Rejects what exceeds a quota.

    Args:
        write_status: replaces the status of a quota.
    """

    def __init__(self, write_status: Callable[[Obj, Obj], object]) -> None:
        self._write_status = write_status

    def default(self, resource: Resource, obj: Obj, objects: Objects) -> None:
        """Quotas complete nothing."""

    def review(
        self, resource: Resource, new: Obj, old: Obj | None, objects: Objects, *, dry_run: bool = False
    ) -> None:
        """Check a new or changed object, and add what it uses to the quotas.

        Raises:
            StatusError: 403, if it exceeds one.
        """
        if not resource.namespaced or (quotas := objects.list(QUOTAS, new["metadata"]["namespace"])) == []:
            return
        before = usage(resource, old) if old is not None else {}
        more = {
            name: amount
            for name, amount in usage(resource, new).items()
            if quantity_forms.value(amount) > quantity_forms.value(before.get(name, "0"))
        }
        more = {name: _difference(amount, before.get(name, "0")) for name, amount in more.items()}
        changes = []
        for quota in quotas:
            status = quota.get("status") or {}
            hard = status.get("hard") or {}
            names = [name for name in sorted(hard) if name in more]
            if not covers(quota, resource, new):
                continue
            name = new["metadata"].get("name", "")
            if old is None and resource.key == "pods" and (missing := _unspecified(new["spec"], hard)):
                why = f"failed quota: {quota['metadata']['name']}: must specify {missing}"
                raise forbidden(resource, name, why)
            used = status.get("used") or {}
            if not names:
                continue
            exceeded = [
                one
                for one in names
                if quantity_forms.value(added(used.get(one, "0"), more[one]))
                > quantity_forms.value(hard[one])
            ]
            if exceeded:
                texts = (
                    ",".join(f"{one}={amounts.get(one, '0')}" for one in exceeded)
                    for amounts in (more, used, hard)
                )
                why = "exceeded quota: {}, requested: {}, used: {}, limited: {}"
                raise forbidden(resource, name, why.format(quota["metadata"]["name"], *texts))
            changes.append(
                (quota, {**status, "used": {**used, **{one: added(used[one], more[one]) for one in names}}})
            )
        for quota, status in () if dry_run else changes:
            self._write_status(quota, status)


def _difference(amount: str, before: str) -> str:
    return quantity_forms.written(quantity_forms.value(amount) - quantity_forms.value(before), amount)


def _unspecified(spec: Obj, hard: Obj) -> str:
    """The requests and limits that a quota wants of each container, and the containers without them."""
    found: dict[str, list[str]] = {}
    for limited in sorted(hard):
        kind, _, name = limited.partition(".")
        field, name = (kind, name) if kind in ("requests", "limits") else ("requests", limited)
        if name not in _COMPUTE:
            continue
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            if name not in ((container.get("resources") or {}).get(field) or {}):
                found.setdefault(limited, []).append(container["name"])
    return "; ".join(f"{limited} for: {','.join(sorted(names))}" for limited, names in found.items())
