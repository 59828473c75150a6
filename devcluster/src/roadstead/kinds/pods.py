"""Sets defaults of Pods, admits and checks them.

Source: Kubernetes v1.36 ``pkg/registry/core/pod/strategy.go``, ``pkg/apis/core/validation``,
``pkg/apis/core/v1/helper/qos``, ``plugin/pkg/admission/{priority,defaulttolerationseconds}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.kinds.checks.fields import forbidden, invalid
from roadstead.kinds.checks.metadata import invalid_value, subdomain_faults
from roadstead.kinds.kind import StatusKind
from roadstead.kinds.pod_changes import MIRROR, change_causes, mirror_causes, status_causes
from roadstead.kinds.podspec.checks import annotation_causes, spec_causes
from roadstead.kinds.podspec.containers import padded_image_causes
from roadstead.kinds.podspec.defaults import default_pod, default_spec
from roadstead.kinds.podspec.placement import merge_label_keys
from roadstead.schemas import quantity_forms
from roadstead.values.status_errors import Cause
from roadstead.values.status_errors import forbidden as refused

if TYPE_CHECKING:
    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj

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


def _amounts(resources: Obj, kind: str) -> dict[str, Any]:
    return {
        name: amount
        for name, text in (resources.get(kind) or {}).items()
        if name in _COMPUTE and (amount := quantity_forms.value(text)) > 0
    }


def quality_of_service(spec: Obj) -> str:
    """The QoS class by requests and limits of cpu and memory."""
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
        """Set defaults."""
        spec = obj.setdefault("spec", {})
        default_spec(spec, keeps_group=self.keeps_scheduling_group)
        default_pod(spec)

    def prepare_create(self, obj: Obj) -> None:
        """A new pod is pending, and its selectors are complete."""
        spec = obj["spec"]
        merge_label_keys(spec, obj["metadata"].get("labels") or {})
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            since = obj["metadata"].get("creationTimestamp")
            obj["status"]["conditions"] = [{**GATED, "lastTransitionTime": since}]

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Add the priority of its class and the default tolerations."""
        _admit_priority(obj, objects)
        _admit_tolerations(obj["spec"])

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new pod."""
        spec = obj["spec"]
        causes = self.spec_causes(obj)
        if spec.get("ephemeralContainers"):
            causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            message = "cannot be set until all schedulingGates have been cleared"
            causes.append(forbidden("spec.nodeName", message))
        if spec.get("terminationGracePeriodSeconds", 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        return causes

    @staticmethod
    def spec_causes(obj: Obj) -> list[Cause]:
        """Faults of a pod's spec and of its annotations."""
        meta, spec = obj["metadata"], obj["spec"]
        annotations = meta.get("annotations") or {}
        causes = annotation_causes(annotations, "metadata.annotations")
        if MIRROR in annotations and not spec.get("nodeName"):
            message = "must set spec.nodeName if mirror pod annotation is set"
            causes.append(invalid(f"metadata.annotations[{MIRROR}]", annotations[MIRROR], message))
        causes += spec_causes(spec, pod_name=meta.get("name", ""), is_pod=True)
        if (group := spec.get("schedulingGroup")) is not None:
            causes += _group_causes(group)
        for kind in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(kind) or ()):
                causes += padded_image_causes(container, f"spec.{kind}[{index}]")
        return causes

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Keep the status; add fields again that admission set at creation."""
        new["status"] = old.get("status", {})
        for field in ("priority", "preemptionPolicy"):
            if field in old["spec"]:
                new["spec"].setdefault(field, old["spec"][field])
        _admit_tolerations(new["spec"])

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Few fields of a pod's spec may change."""
        causes = mirror_causes(new, old)
        if old["spec"] != new["spec"]:
            return causes + self.spec_causes(new) + change_causes(new["spec"], old["spec"])
        return causes + annotation_causes(new["metadata"].get("annotations") or {}, "metadata.annotations")

    def prepare_part(self, new: Obj, old: Obj, subresource: str) -> None:
        """Take ephemeral containers, or the resources of containers, and nothing else."""
        spec = dict(old["spec"])
        if subresource == "ephemeralcontainers":
            spec.pop("ephemeralContainers", None)
            given = new["spec"].get("ephemeralContainers")
            spec |= {"ephemeralContainers": given} if given else {}
        else:
            resources = {one.get("name"): one.get("resources") for one in new["spec"].get("containers") or ()}
            spec["containers"] = [
                {**one, "resources": resources.get(one["name"]) or {}} for one in spec["containers"]
            ]
        new["spec"], new["status"] = spec, old.get("status", {})
        new["metadata"] = {**old["metadata"], "resourceVersion": new["metadata"].get("resourceVersion", "")}

    def validate_part(self, new: Obj, old: Obj, subresource: str) -> list[Cause]:
        """As for a new pod; ephemeral containers stay as they are."""
        causes = self.spec_causes(new)
        if subresource == "ephemeralcontainers":
            after = {one.get("name"): one for one in new["spec"].get("ephemeralContainers") or ()}
            for one in old["spec"].get("ephemeralContainers") or ():
                if after.get(one["name"]) != one:
                    what = "changed" if one["name"] in after else "removed"
                    message = f'existing ephemeral containers "{one["name"]}" may not be {what}\n'
                    causes.append(forbidden("spec.ephemeralContainers", message))
        return causes

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Spec, owners, deletion and QoS class cannot change."""
        super().prepare_status(new, old)
        for key in ("ownerReferences", "deletionTimestamp"):
            if key in old["metadata"]:
                new["metadata"][key] = old["metadata"][key]
            else:
                new["metadata"].pop(key, None)
        status = new.setdefault("status", {})
        if status.get("podIPs"):
            status["podIP"] = status["podIPs"][0].get("ip", "")
        elif status.get("podIP"):
            status["podIPs"] = [{"ip": status["podIP"]}]
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
            for one in status.get(kind) or ():
                one.setdefault("state", {})
                one.setdefault("lastState", {})
        if "qosClass" in old.get("status", {}):
            status.setdefault("qosClass", old["status"]["qosClass"])

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Faults of a new status."""
        return status_causes(new, old)

    def grace_seconds(self, obj: Obj, requested: int | None) -> int | None:
        """The requested period, or the pod's own; 0 for a pod that no kubelet runs."""
        if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in ("Failed", "Succeeded"):
            return 0
        seconds = obj["spec"].get("terminationGracePeriodSeconds", 0) if requested is None else requested
        return 1 if seconds < 0 else int(seconds)

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return _FIELDS

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
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


def _admit_tolerations(spec: Obj) -> None:
    """Add tolerations of unready and unreachable nodes for five minutes, unless the pod has others."""
    tolerations = spec.setdefault("tolerations", [])
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_tolerates(one, key) for one in tolerations):
            seconds = {"tolerationSeconds": _TOLERATED_SECONDS}
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", **seconds})


def _tolerates(toleration: Obj, key: str) -> bool:
    if toleration.get("effect") not in (None, "", "NoExecute"):
        return False
    return toleration.get("key") == key or (
        not toleration.get("key") and toleration.get("operator") == "Exists"
    )


def _group_causes(group: Obj) -> list[Cause]:
    """Faults of the group that a pod names."""
    name, at = group.get("podGroupName"), "spec.schedulingGroup.podGroupName"
    if name is None:
        return [Cause(at, "Invalid value: null: must specify one of: `podGroupName`")]
    return [invalid_value(at, name, fault) for fault in subdomain_faults(name)]


def _admit_priority(pod: Obj, objects: Objects) -> None:
    """Resolve the priority class.

    Raises:
        StatusError: 403, if the class does not exist or the pod has another priority.
    """
    spec = pod["spec"]
    resource = objects.resource("pods")
    name = spec.get("priorityClassName", "")
    value, policy = 0, "PreemptLowerPriority"
    if name:
        found = objects.find("priorityclasses.scheduling.k8s.io", None, name)
        if found is None:
            raise refused(
                resource, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found"
            )
        value, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
    else:
        defaults = [
            one for one in objects.list("priorityclasses.scheduling.k8s.io") if one.get("globalDefault")
        ]
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
