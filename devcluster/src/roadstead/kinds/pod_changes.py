"""Checks changes of a pod's spec and status.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidatePodUpdate``,
``ValidatePodStatusUpdate``.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    immutable,
    invalid,
    label_name,
    required,
    subdomain_name,
)
from roadstead.kinds.checks.metadata import qualified_name_faults
from roadstead.values.copies import copied

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

MIRROR = "kubernetes.io/config.mirror"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LAST = 2**31 - 1


def change_causes(after: Obj, before: Obj) -> list[Cause]:
    """Faults of a change of a pod's spec."""
    causes: list[Cause] = []
    for kind in ("containers", "initContainers"):
        if len(before.get(kind) or ()) != len(after.get(kind) or ()):
            return [*causes, forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
    deadline, was = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    at = "spec.activeDeadlineSeconds"
    if deadline is None and was is not None:
        message = "must not update from a positive integer to nil value"
        causes.append(invalid(at, None, message))
    elif deadline is not None and not 0 <= deadline <= _LAST:
        return [*causes, invalid(at, deadline, f"must be between 0 and {_LAST}, inclusive")]
    elif deadline is not None and was is not None and deadline > was:
        return [*causes, invalid(at, deadline, "must be less than or equal to previous value")]
    causes += _toleration_changes(after, before)
    causes += _gate_changes(after, before)
    gated = bool(before.get("schedulingGates"))
    if _what_is_fixed(after, before, gated=gated) != _what_is_fixed(before, before, gated=gated):
        causes.append(forbidden("spec", _UPDATABLE))
    return causes


def _toleration_changes(after: Obj, before: Obj) -> list[Cause]:
    def without_seconds(toleration: Obj) -> Obj:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [without_seconds(one) for one in after.get("tolerations") or ()]
    lost = [
        one
        for one in before.get("tolerations") or ()
        if (without_seconds(one) if one.get("effect") == "NoExecute" else one)
        not in [*kept, *(after.get("tolerations") or ())]
    ]
    if lost:
        return [
            forbidden(
                "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
            )
        ]
    return []


def _gate_changes(after: Obj, before: Obj) -> list[Cause]:
    old = [gate.get("name", "") for gate in before.get("schedulingGates") or ()]
    new = [gate.get("name", "") for gate in after.get("schedulingGates") or ()]
    causes = [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{name}'",
        )
        for index, name in enumerate(new)
        if name not in old
    ]
    if not old:
        return causes
    wanted = after.get("nodeSelector") or {}
    if any(wanted.get(key) != value for key, value in (before.get("nodeSelector") or {}).items()):
        message = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.append(invalid("spec.nodeSelector", after.get("nodeSelector"), message))
    return causes + _narrowed_affinity(after, before)


def _narrowed_affinity(after: Obj, before: Obj) -> list[Cause]:
    """A gated pod's required node affinity may be set once, and its terms may only gain expressions."""

    def terms(spec: Obj) -> list[Obj] | None:
        node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required_terms = node.get(_REQUIRED)
        return None if required_terms is None else list(required_terms.get("nodeSelectorTerms") or ())

    was, now = terms(before), terms(after)
    if not was or was == now:
        return []
    at = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if now is None or len(now) != len(was):
        return [invalid(at, now, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    message = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{at}[{index}]", new, message)
        for index, (old, new) in enumerate(zip(was, now, strict=True))
        if not _has_only_additions(new, old)
    ]


def _has_only_additions(new: Obj, old: Obj) -> bool:
    if not old and new:
        return False
    kinds = ("matchExpressions", "matchFields")
    pairs = [(new.get(kind) or [], old.get(kind) or []) for kind in kinds]
    return all(now[: len(was)] == was for now, was in pairs)


def _what_is_fixed(spec: Obj, before: Obj, *, gated: bool) -> Obj:
    """A pod's spec without the fields that may change."""
    left = {
        key: copied(value)
        for key, value in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    }
    if before.get("terminationGracePeriodSeconds", 0) < 0 and left.get("terminationGracePeriodSeconds") == 1:
        left["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    for kind in ("containers", "initContainers"):
        for container in left.get(kind) or ():
            container.pop("image", None)
    if gated:
        left.pop("nodeSelector", None)
        affinity = left.pop("affinity", None) or {}
        affinity.pop("nodeAffinity", None)
        if affinity:
            left["affinity"] = affinity
    return left


def mirror_causes(new: Obj, old: Obj) -> list[Cause]:
    """The annotation of a mirror pod cannot change."""
    was, now = ((one["metadata"].get("annotations") or {}).get(MIRROR) for one in (old, new))
    if was == now:
        return []
    message = (
        "may not add mirror pod annotation"
        if was is None
        else "may not remove or update mirror pod annotation"
    )
    return [forbidden(f"metadata.annotations[{MIRROR}]", message)]


_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE = "must be a non-negative integer"
_NOT_REQUESTED = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)


def status_causes(new: Obj, old: Obj) -> list[Cause]:
    """Faults of a change of a pod's status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    causes: list[Cause] = []
    for index, one in enumerate(status.get("conditions") or ()):
        here, kind = f"status.conditions[{index}]", one.get("type", "")
        if one.get("observedGeneration", 0) < 0:
            causes.append(invalid(f"{here}.observedGeneration", one["observedGeneration"], _NOT_NEGATIVE))
        if kind not in _SYSTEM_CONDITIONS:
            causes += [invalid(f"{here}.Type", kind, fault) for fault in qualified_name_faults(kind)]
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        at = "status.nominatedNodeName"
        causes += subdomain_name(at, nominated)
        if old["spec"].get("nodeName"):
            causes.append(forbidden(at, "may not be set on pods that are already bound to a node"))
    if status.get("observedGeneration", 0) < 0:
        causes.append(invalid("status.observedGeneration", status["observedGeneration"], _NOT_NEGATIVE))
    causes += immutable("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    causes += _restarted(status, before, old["spec"])
    for field, single in (("podIPs", ""), ("hostIPs", "hostIP")):
        causes += _address_causes(status, before, field, single)
    return causes + _claim_causes(status, old["spec"])


def _claim_causes(status: Obj, spec: Obj) -> list[Cause]:
    """Faults of the claims on devices that were made for a pod."""
    known = [one.get("name") for one in spec.get("resourceClaims") or ()]
    listed = status.get("resourceClaimStatuses") or []
    names = [one.get("name", "") for one in listed]
    causes: list[Cause] = []
    for index, one in enumerate(listed):
        here = f"status.resourceClaimStatuses[{index}]"
        if names[index] not in known:
            message = "must match the name of an entry in `spec.resourceClaims`"
            causes.append(invalid(f"{here}.name", names[index], message))
        if names[index] in names[:index]:
            causes.append(duplicate(f"{here}.name", names[index]))
        if one.get("resourceClaimName") is not None:
            causes += subdomain_name(f"{here}.resourceClaimName", one["resourceClaimName"])
    extended = status.get("extendedResourceClaimStatus")
    return causes if extended is None else causes + _extended_claim_causes(extended, spec)


def _extended_claim_causes(extended: Obj, spec: Obj) -> list[Cause]:
    """Faults of the claim for extended resources, and of which request of it serves which container."""
    at = "status.extendedResourceClaimStatus"
    name = extended.get("resourceClaimName", "")
    claim_at, list_at = f"{at}.resourceClaimName", f"{at}.requestMappings"
    causes = subdomain_name(claim_at, name) if name else [required(claim_at)]
    mappings = extended.get("requestMappings") or []
    if not mappings:
        causes.append(required(list_at, "at least one request mapping is required"))
    containers = {one["name"]: one for one in (*(spec.get("initContainers") or ()), *spec["containers"])}
    fields = ("containerName", "resourceName", "requestName")
    for index, one in enumerate(mappings):
        here, (container, resource, request) = f"{list_at}[{index}]", (one.get(field, "") for field in fields)
        known = containers.get(container)
        if known is None:
            message = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            causes.append(invalid(f"{here}.containerName", container, message))
        elif resource not in ((known.get("resources") or {}).get("requests") or ()):
            causes.append(invalid(f"{here}.resourceName", resource, _NOT_REQUESTED))
        causes += label_name(f"{at}.requestName", request)  # without the index, as upstream
        if one in mappings[:index]:
            causes += [duplicate(f"{here}.{field}", one.get(field, "")) for field in fields]
    return causes


def _restarted(status: Obj, before: Obj, spec: Obj) -> list[Cause]:
    """A terminated container that the policy does not restart stays terminated."""
    now = {one.get("name"): one for one in status.get("containerStatuses") or ()}
    containers = {one["name"]: one for one in spec["containers"]}
    causes: list[Cause] = []
    for index, was in enumerate(before.get("containerStatuses") or ()):
        ended = (was.get("state") or {}).get("terminated")
        found = now.get(was.get("name"))
        if ended is None or found is None or (found.get("state") or {}).get("terminated") is not None:
            continue
        container = containers.get(was["name"])
        if container is None or not _restarts(container, spec, ended.get("exitCode", 0)):
            message = "may not be transitioned to non-terminated state"
            causes.append(forbidden(f"status.containerStatuses[{index}].state", message))
    return causes


def _restarts(container: Obj, spec: Obj, code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        if (code in (codes.get("values") or ())) is (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _family(text: str) -> int:
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def _address_causes(status: Obj, before: Obj, field: str, single: str) -> list[Cause]:
    """Faults of addresses: one of each family, the first equal to ``podIP``."""
    given = [one.get("ip", "") for one in status.get(field) or ()]
    kept = [one.get("ip", "") for one in before.get(field) or ()]
    at = f"status.{field}"
    causes: list[Cause] = []
    if single and given and status.get(single, "") != given[0]:
        causes.append(invalid(f"{at}[0].ip", given[0], f"must be equal to `{single}`"))
    causes += [
        invalid(f"{at}[{index}]", address, _NO_ADDRESS)
        for index, address in enumerate(given)
        if not _family(address) and address not in kept
    ]
    if len(given) > 1 and (len(given) > 2 or len({_family(one) for one in given}) < 2):
        causes.append(invalid(at, status[field], "may specify no more than one IP for each IP family"))
    return causes
