"""Pods: defaults, quality of service, priority, checks, and what of a pod may change.

Source: Kubernetes v1.36 ``pkg/registry/core/pod/strategy.go``, ``pkg/apis/core/validation``,
``pkg/apis/core/v1/helper/qos``, ``plugin/pkg/admission/{priority,defaulttolerationseconds}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.devcluster import quantity_forms
from plimsoll.devcluster.copying import copied
from plimsoll.devcluster.kinds.checks import forbidden, invalid, required
from plimsoll.devcluster.kinds.kind import StatusKind
from plimsoll.devcluster.kinds.pod_spec import default_requests, default_spec, spec_causes
from plimsoll.devcluster.statuses import forbidden as refused

if TYPE_CHECKING:
    from plimsoll.devcluster.api import Api
    from plimsoll.devcluster.resources import Obj
    from plimsoll.devcluster.statuses import Cause

_COMPUTE = ("cpu", "memory")
_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_TOLERATED_SECONDS = 300
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _amounts(resources: Obj, kind: str) -> dict[str, Any]:
    return {
        name: amount
        for name, text in (resources.get(kind) or {}).items()
        if name in _COMPUTE and (amount := quantity_forms.value(text)) > 0
    }


def quality_of_service(spec: Obj) -> str:
    """The class that requests and limits of cpu and memory make."""
    if spec.get("resources"):
        holders = [spec["resources"]]
    else:
        holders = [
            container.get("resources") or {}
            for kind in ("containers", "initContainers")
            for container in spec.get(kind) or ()
        ]
    requests = [_amounts(holder, "requests") for holder in holders]
    limits = [_amounts(holder, "limits") for holder in holders]
    if not any(requests) and not any(limits):
        return "BestEffort"
    guaranteed = all(
        set(limit) == set(_COMPUTE) and request == limit
        for request, limit in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if guaranteed else "Burstable"


class Pods(StatusKind):
    """Pods."""

    returns_deleted = True

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        spec = obj.setdefault("spec", {})
        default_spec(spec)
        default_requests(spec)
        spec.setdefault("enableServiceLinks", True)

    def prepare_create(self, obj: Obj) -> None:
        """A new pod is pending."""
        spec = obj["spec"]
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [dict(GATED)]

    def admit_create(self, obj: Obj, api: Api) -> None:
        """Priority from its class; the usual tolerations."""
        _admit_priority(obj, api)
        tolerations = obj["spec"].setdefault("tolerations", [])
        for key in (_NOT_READY, _UNREACHABLE):
            if not any(_tolerates(one, key) for one in tolerations):
                tolerations.append(
                    {
                        "key": key,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": _TOLERATED_SECONDS,
                    }
                )

    def validate_create(self, obj: Obj) -> list[Cause]:
        """What is wrong with a new pod."""
        spec = obj["spec"]
        causes = spec_causes(spec)
        if spec.get("terminationGracePeriodSeconds", 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        return causes

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Status is kept, also what it says of gates."""
        new["status"] = old.get("status", {})

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Of a pod's spec hardly anything may change."""
        before, after = old["spec"], new["spec"]
        if before == after:
            return []
        causes: list[Cause] = []
        for kind in ("containers", "initContainers"):
            if len(before.get(kind) or ()) != len(after.get(kind) or ()):
                return [forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
            causes += [
                required(f"spec.{kind}[{index}].image")
                for index, container in enumerate(after.get(kind) or ())
                if not container.get("image")
            ]
        deadline, was = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
        if deadline is None and was is not None:
            causes.append(
                invalid(
                    "spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value"
                )
            )
        elif deadline is not None and not 1 <= deadline < 2**31:
            causes.append(
                invalid("spec.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
            )
        elif deadline is not None and was is not None and deadline > was:
            told = "must be less than or equal to previous value"
            causes.append(invalid("spec.activeDeadlineSeconds", deadline, told))
        causes += _toleration_changes(after, before)
        causes += _gate_changes(after, before)
        if causes:
            return causes
        gated = bool(before.get("schedulingGates"))
        if _what_is_fixed(after, gated=gated) != _what_is_fixed(before, gated=gated):
            return [forbidden("spec", _UPDATABLE)]
        return []

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Spec, owners and deletion stay; the class of service cannot change."""
        super().prepare_status(new, old)
        for key in ("ownerReferences", "deletionTimestamp"):
            if key in old["metadata"]:
                new["metadata"][key] = old["metadata"][key]
            else:
                new["metadata"].pop(key, None)
        status = new.setdefault("status", {})
        if "qosClass" in old.get("status", {}):
            status.setdefault("qosClass", old["status"]["qosClass"])

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """What is wrong with a new status."""
        del old
        causes: list[Cause] = []
        status = new.get("status") or {}
        causes += [
            required(f"status.conditions[{index}].type")
            for index, one in enumerate(status.get("conditions") or ())
            if not one.get("type")
        ]
        return causes

    def grace_seconds(self, obj: Obj, requested: int | None) -> int | None:
        """What was asked, or the pod's own; none for a pod that no kubelet runs."""
        if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in ("Failed", "Succeeded"):
            return 0
        seconds = obj["spec"].get("terminationGracePeriodSeconds", 0) if requested is None else requested
        return 1 if seconds < 0 else int(seconds)

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return _FIELDS

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream."""
        spec, status = obj["spec"], obj.get("status") or {}
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
            "status.podIPs": ",".join(one.get("ip", "") for one in status.get("podIPs") or ()),
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


_FIELDS = frozenset(
    (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )
)


def _tolerates(toleration: Obj, key: str) -> bool:
    if toleration.get("effect") not in (None, "", "NoExecute"):
        return False
    return toleration.get("key") == key or (
        not toleration.get("key") and toleration.get("operator") == "Exists"
    )


def _admit_priority(pod: Obj, api: Api) -> None:
    """Resolve the priority class.

    Raises:
        StatusError: 403, where there is no such class or the pod says otherwise than its class.
    """
    spec = pod["spec"]
    resource = api.resource("pods")
    name = spec.get("priorityClassName", "")
    value, policy = 0, "PreemptLowerPriority"
    if name:
        found = api.find("priorityclasses.scheduling.k8s.io", None, name)
        if found is None:
            raise refused(
                resource, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found"
            )
        value, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
    else:
        defaults = [one for one in api.list("priorityclasses.scheduling.k8s.io") if one.get("globalDefault")]
        if defaults:
            chosen = min(defaults, key=lambda one: int(one.get("value", 0)))
            spec["priorityClassName"] = chosen["metadata"]["name"]
            value, policy = chosen.get("value", 0), chosen.get("preemptionPolicy", policy)
    given = spec.get("priority")
    if given is not None and given != value:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise refused(resource, pod["metadata"].get("name", ""), why)
    spec["priority"] = value
    wanted = spec.get("preemptionPolicy")
    if wanted is not None and wanted != policy:
        why = (
            f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise refused(resource, pod["metadata"].get("name", ""), why)
    spec["preemptionPolicy"] = policy


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
    old = [gate.get("name") for gate in before.get("schedulingGates") or ()]
    new = [gate.get("name") for gate in after.get("schedulingGates") or ()]
    added = [name for name in new if name not in old]
    if added:
        listed = ", ".join(str(name) for name in added)
        return [
            forbidden(
                "spec.schedulingGates", f"only deletion is allowed, but found new scheduling gates '{listed}'"
            )
        ]
    if not old:
        return []
    wanted = after.get("nodeSelector") or {}
    if any(wanted.get(key) != value for key, value in (before.get("nodeSelector") or {}).items()):
        told = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        return [invalid("spec.nodeSelector", wanted, told)]
    return _narrowed_affinity(after, before)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _narrowed_affinity(after: Obj, before: Obj) -> list[Cause]:
    """A gated pod's required node affinity may be set once, and its terms may only gain expressions."""

    def terms(spec: Obj) -> list[Obj] | None:
        node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required_terms = node.get(_REQUIRED)
        return None if required_terms is None else list(required_terms.get("nodeSelectorTerms") or ())

    was, now = terms(before), terms(after)
    if was is None or was == now:
        return []
    at = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if now is None or len(now) != len(was):
        return [invalid(at, now, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    for index, (old, new) in enumerate(zip(was, now, strict=True)):
        for kind in ("matchExpressions", "matchFields"):
            old_ones, new_ones = old.get(kind) or [], new.get(kind) or []
            if new_ones[: len(old_ones)] != old_ones or (not old and new):
                told = "only additions are allowed (no mutations or deletions)"
                return [invalid(f"{at}[{index}]", new, told)]
    return []


def _what_is_fixed(spec: Obj, *, gated: bool) -> Obj:
    """A pod's spec without what may change."""
    left = {
        key: copied(value)
        for key, value in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    }
    for kind in ("containers", "initContainers"):
        for container in left.get(kind) or ():
            container.pop("image", None)
    if gated:
        left.pop("nodeSelector", None)
        affinity = left.get("affinity") or {}
        node = affinity.get("nodeAffinity") or {}
        node.pop(_REQUIRED, None)
        if not node:
            affinity.pop("nodeAffinity", None)
        if not affinity:
            left.pop("affinity", None)
    return left
