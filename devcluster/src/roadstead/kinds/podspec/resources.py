"""Checks requests and limits of containers and of pods.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go`` (``validateResourceRequirements``),
``pkg/apis/core/helper/helpers.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    invalid,
    label_name,
    missing,
    one_of,
    required,
)
from roadstead.kinds.checks.metadata import qualified_name_faults
from roadstead.schemas import quantity_forms

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_HUGE = "hugepages-"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_STANDARD = {
    *_COMPUTE,
    *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE),
    *_COUNTED,
    "storage",
    "requests.storage",
}


def is_native(name: str) -> bool:
    """Whether a resource is native to Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def may_be_overcommitted(name: str) -> bool:
    """Whether limits may be above requests."""
    return is_native(name) and not name.startswith(_HUGE)


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one, as of a device plugin."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name_faults(f"requests.{name}")


def on_pod_level(name: str) -> bool:
    """Whether a pod-level request may name a resource."""
    return name in ("cpu", "memory") or name.startswith(_HUGE)


def _name_causes(name: str, at: str) -> list[Cause]:
    causes = [invalid(at, name, fault) for fault in qualified_name_faults(name)]
    if (
        not causes
        and "/" not in name
        and name not in _STANDARD
        and not name.startswith((_HUGE, f"requests.{_HUGE}"))
    ):
        causes.append(invalid(at, name, "must be a standard resource type or fully qualified"))
    return causes


def container_name_causes(name: str, at: str) -> list[Cause]:
    """Faults of a resource name in a container."""
    causes = _name_causes(name, at)
    if "/" not in name:
        if name not in _COMPUTE and not name.startswith(_HUGE):
            causes.append(invalid(at, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        causes.append(invalid(at, name, "doesn't follow extended resource name standard"))
    return causes


def pod_name_causes(name: str, at: str) -> list[Cause]:
    """Faults of a resource name at pod level."""
    causes = _name_causes(name, at)
    if causes or on_pod_level(name):
        return causes
    return one_of(at, name, ("cpu", _HUGE, "memory"))


def amount_causes(name: str, text: str, at: str) -> list[Cause]:
    """Faults of an amount of a resource."""
    causes = []
    amount = quantity_forms.value(text)
    if amount < 0:
        causes.append(invalid(at, text, "must be greater than or equal to 0"))
    if (name in _COUNTED or is_extended(name)) and not quantity_forms.is_whole(amount):
        causes.append(invalid(at, text, "must be an integer"))
    return causes


def _page_causes(name: str, text: str, at: str) -> list[Cause]:
    try:
        page = quantity_forms.value(name.removeprefix(_HUGE))
    except ValueError:
        page = quantity_forms.value("0")
    if page > 0 and quantity_forms.is_whole(page) and quantity_forms.is_multiple(text, page):
        return []
    return [invalid(at, text, f"{text} is not positive integer multiple of {name}")]


def resource_causes(
    resources: Obj,
    at: str,
    claims: frozenset[str] = frozenset(),
    name_causes: Callable[[str, str], list[Cause]] = container_name_causes,
) -> list[Cause]:
    """Faults of requests, limits and claims.

    Args:
        resources: with ``requests``, ``limits`` and ``claims``.
        at: their path.
        claims: the names of the pod's resource claims.
        name_causes: checks the names of resources.
    """
    causes: list[Cause] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            here = f"{at}.{kind}[{name}]"
            causes += name_causes(name, here) + amount_causes(name, text, here)
            if kind == "requests":
                causes += _against_limit(name, text, limits, at)
            if name.startswith(_HUGE):
                causes += _page_causes(name, text, here)
    names = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        causes.append(forbidden(at, "HugePages require cpu or memory"))
    return causes + _claim_causes(resources.get("claims") or [], f"{at}.claims", claims)


def _against_limit(name: str, text: str, limits: Obj, at: str) -> list[Cause]:
    if name not in limits:
        if may_be_overcommitted(name):
            return []
        return [required(f"{at}.limits", "Limit must be set for non overcommitable resources")]
    amount, limit = quantity_forms.value(text), quantity_forms.value(limits[name])
    if amount != limit and not may_be_overcommitted(name):
        return [invalid(f"{at}.requests", text, f"must be equal to {name} limit of {limits[name]}")]
    if amount > limit:
        message = f"must be less than or equal to {name} limit of {limits[name]}"
        return [invalid(f"{at}.requests", text, message)]
    return []


def _claim_causes(used: list[Obj], at: str, claims: frozenset[str]) -> list[Cause]:
    """Faults of the claims that a container uses."""
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, claim in enumerate(used):
        here, name, request = f"{at}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            causes.append(required(here))
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            causes.append(duplicate(here, name))
        else:
            if request:
                causes += label_name(f"{here}.request", request)
            if key in seen:
                causes.append(duplicate(here, key))
            elif not request:
                causes += [duplicate(here, name) for one in seen if one.partition("/")[0] == name]
            seen.add(key)
        if name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            causes.append(missing(here, name, f"must be one of the names in pod.spec.resourceClaims{listed}"))
    return causes
