"""Builds the schemas of built-in kinds.

Types come from the models of the generated client (they follow the OpenAPI document of the same release);
the tables below add information that it lacks: the merging of lists, quantities, omitted zeros.

Source of the tables: ``api/openapi-spec`` and the Go types of Kubernetes v1.36.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from roadstead.schemas.models import models
from roadstead.schemas.schemas import (
    AMOUNT,
    ANY,
    BOOLEAN,
    BYTES,
    BYTES_OMITTED,
    FALSE_OMITTED,
    INT_OR_STRING,
    INTEGER,
    KEPT_STRING,
    LONG,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    STRING,
    TIME,
    ZERO_LONG_OMITTED,
    ZERO_OMITTED,
    Array,
    Mapping,
    Node,
    Struct,
)

#: (model, field): (keys for apply, merge key for strategic merge patch). "*" is any model.
_KEYED: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("V1ObjectMeta", "ownerReferences"): (("uid",), "uid"),
    ("V1PodSpec", "containers"): (("name",), "name"),
    ("V1PodSpec", "initContainers"): (("name",), "name"),
    ("V1PodSpec", "ephemeralContainers"): (("name",), "name"),
    ("V1PodSpec", "volumes"): (("name",), "name"),
    ("V1PodSpec", "imagePullSecrets"): (("name",), "name"),
    ("V1PodSpec", "hostAliases"): (("ip",), "ip"),
    ("V1PodSpec", "topologySpreadConstraints"): (("topologyKey", "whenUnsatisfiable"), "topologyKey"),
    ("V1PodSpec", "schedulingGates"): (("name",), "name"),
    ("V1PodSpec", "resourceClaims"): (("name",), "name"),
    ("*", "env"): (("name",), "name"),
    ("V1Container", "ports"): (("containerPort", "protocol"), "containerPort"),
    ("V1EphemeralContainer", "ports"): (("containerPort", "protocol"), "containerPort"),
    ("*", "volumeMounts"): (("mountPath",), "mountPath"),
    ("*", "volumeDevices"): (("devicePath",), "devicePath"),
    ("V1ResourceRequirements", "claims"): (("name",), ""),
    ("V1PodStatus", "podIPs"): (("ip",), "ip"),
    ("V1PodStatus", "hostIPs"): ((), "ip"),
    ("V1PodStatus", "resourceClaimStatuses"): (("name",), "name"),
    ("V1NodeStatus", "addresses"): (("type",), "type"),
    ("V1ServiceSpec", "ports"): (("port", "protocol"), "port"),
    ("V1ServiceAccount", "secrets"): (("name",), "name"),
    ("V1JobStatus", "conditions"): ((), "type"),
    ("*", "conditions"): (("type",), "type"),
    ("V1CSINodeSpec", "drivers"): (("name",), "name"),
    ("V1ResourceClaimStatus", "reservedFor"): (("uid",), "uid"),
    ("V1ResourceClaimStatus", "devices"): (("driver", "device", "pool", "shareID"), ""),
}
#: (model, field): a set for apply; both merge in strategic merge patches.
_SETS = {("V1ObjectMeta", "finalizers"), ("V1NodeSpec", "podCIDRs")}
#: Models that are owned by one manager as a whole.
_ATOMIC_MODELS = {
    "V1OwnerReference",
    "V1LabelSelector",
    "V1ObjectReference",
    "V1LocalObjectReference",
    "V1NodeSelector",
    "V1NodeSelectorTerm",
    "V1ConfigMapKeySelector",
    "V1SecretKeySelector",
    "V1ObjectFieldSelector",
    "V1ResourceFieldSelector",
    "V1TypedLocalObjectReference",
    "V1SecretReference",
    "V1ScopeSelector",
    "V1TopologySelectorTerm",
    "V1RoleRef",
    "RbacV1Subject",
}
_ATOMIC_MAPS = {("V1PodSpec", "nodeSelector"), ("V1ServiceSpec", "selector")}
#: Maps and fields of quantities.
_QUANTITY_MAPS = {
    "limits",
    "requests",
    "capacity",
    "allocatable",
    "overhead",
    "allocatedResources",
    "hard",
    "used",
    "min",
    "max",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
}
_QUANTITY_MODELS = (
    "V1Resource",
    "V1Volume",
    "V1Node",
    "V1PodSpec",
    "V1LimitRange",
    "V1Persistent",
    "V1Container",
)
_QUANTITIES = {
    ("V1EmptyDirVolumeSource", "sizeLimit"),
    ("V1ResourceFieldSelector", "divisor"),
    ("V1CSIStorageCapacity", "capacity"),
    ("V1CSIStorageCapacity", "maximumVolumeSize"),
    ("V1DeviceCapacity", "value"),
    ("V1Counter", "value"),
    ("V1CapacityRequestPolicy", "default"),
    ("V1CapacityRequestPolicy", "validValues"),
    ("V1CapacityRequestPolicyRange", "min"),
    ("V1CapacityRequestPolicyRange", "max"),
    ("V1CapacityRequestPolicyRange", "step"),
    ("V1CapacityRequirements", "requests"),
    ("V1DeviceRequestAllocationResult", "consumedCapacity"),
}
_MICRO_TIMES = {
    ("V1LeaseSpec", "acquireTime"),
    ("V1LeaseSpec", "renewTime"),
    ("CoreV1Event", "eventTime"),
    ("EventsV1Event", "eventTime"),
    ("CoreV1EventSeries", "lastObservedTime"),
    ("EventsV1EventSeries", "lastObservedTime"),
}
#: Objects of the model that are numbers or strings in JSON.
_INT_OR_STRING = {"minAvailable", "maxUnavailable", "maxSurge", "targetPort", "port"}
#: Booleans that are not pointers in Go and are omitted if false.
_FALSE_OMITTED = {
    "unschedulable",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "paused",
    "tty",
    "stdin",
    "stdinOnce",
    "publishNotReadyAddresses",
    "globalDefault",
}
_READ_ONLY = {("V1VolumeMount", "readOnly")}
#: Numbers that are not pointers in Go and are omitted if 0.
_ZERO_OMITTED = {
    "minReadySeconds",
    "hostPort",
    "nodePort",
    "updatedReplicas",
    "readyReplicas",
    "unavailableReplicas",
    "observedGeneration",
    "fullyLabeledReplicas",
    "numberUnavailable",
    "numberAvailable",
    "updatedNumberScheduled",
    "initialDelaySeconds",
    "count",
    "deprecatedCount",
}
#: Numbers of 64 bits.
_LONGS = {
    "generation",
    "observedGeneration",
    "deletionGracePeriodSeconds",
    "terminationGracePeriodSeconds",
    "gracePeriodSeconds",
    "activeDeadlineSeconds",
    "tolerationSeconds",
    "runAsUser",
    "runAsGroup",
    "fsGroup",
    "supplementalGroups",
    "expirationSeconds",
    "startingDeadlineSeconds",
    "sizeBytes",
    "remainingItemCount",
    "revision",
}
_LONGS_IN = {
    ("V1SleepAction", "seconds"),
    ("V1NodeSwapStatus", "capacity"),
    ("V1LinuxContainerUser", "gid"),
    ("V1LinuxContainerUser", "uid"),
    ("V1ExactDeviceRequest", "count"),
    ("V1DeviceSubRequest", "count"),
    ("V1DeviceAttribute", "int"),
    ("V1ResourcePool", "resourceSliceCount"),
}
#: Maps of bytes.
_BYTES = {
    ("V1ConfigMap", "binaryData"),
    ("V1Secret", "data"),
    ("AdmissionregistrationV1WebhookClientConfig", "caBundle"),
    ("ApiextensionsV1WebhookClientConfig", "caBundle"),
    ("V1CertificateSigningRequestSpec", "request"),
    ("V1CertificateSigningRequestStatus", "certificate"),
}
_ZERO_OMITTED_IN = {
    ("V1DeploymentStatus", "replicas"),
    ("V1DeploymentStatus", "availableReplicas"),
    ("V1ReplicaSetStatus", "availableReplicas"),
    ("V1JobStatus", "active"),
    ("V1JobStatus", "succeeded"),
    ("V1JobStatus", "failed"),
    ("V1ContainerStateTerminated", "signal"),
}
#: Strings that are pointers in Go: an empty one is a value.
_EMPTY_KEPT = {"storageClassName", "volumeAttributesClassName", "ingressClassName", "holderIdentity"}
_EMPTY_KEPT_IN = {
    ("V1DeviceAttribute", "string"),
    ("V1DeviceAttribute", "version"),
    ("V1DeviceClassSpec", "extendedResourceName"),
    ("V1DeviceConstraint", "matchAttribute"),
    ("V1DeviceConstraint", "distinctAttribute"),
    ("V1ResourceSliceSpec", "nodeName"),
    ("V1Device", "nodeName"),
    ("V1DeviceRequestAllocationResult", "shareID"),
    ("V1AllocatedDeviceStatus", "shareID"),
    ("V1PodResourceClaimStatus", "resourceClaimName"),
    ("V1PodResourceClaim", "resourceClaimName"),
    ("V1PodResourceClaim", "resourceClaimTemplateName"),
    ("V1TopologySpreadConstraint", "nodeAffinityPolicy"),
    ("V1TopologySpreadConstraint", "nodeTaintsPolicy"),
}

#: (group, kind): the model, if its name is not version and kind.
_MODEL_NAMES = {
    ("", "Event"): "CoreV1Event",
    ("events.k8s.io", "Event"): "EventsV1Event",
    ("resource.k8s.io", "ResourceClaim"): "ResourceV1ResourceClaim",
    ("policy", "Eviction"): "V1Eviction",
    ("authentication.k8s.io", "TokenRequest"): "AuthenticationV1TokenRequest",
}


@cache
def struct(model: str) -> Struct:
    """The schema of a model, looked up by its name."""
    made = Struct(model, atomic=model in _ATOMIC_MODELS)
    _filling[model] = made
    for name, (kind, _) in models()[model]["fields"].items():
        made.fields[name] = _node(model, name, kind)
    return made


_filling: dict[str, Struct] = {}


def _of(model: str) -> Struct:
    """The schema of a model; types that contain themselves get the one under construction."""
    return _filling[model] if model in _filling else struct(model)


def schema_of(group: str, version: str, kind: str) -> Struct | None:
    """The schema of a built-in kind, or None."""
    name = _MODEL_NAMES.get((group, kind)) or f"{version.capitalize()}{kind}"
    return struct(name) if name in models() else None


def _node(model: str, name: str, kind: str) -> Node:
    if found := re.fullmatch(r"list\[(.*)\]", kind):
        return _array(model, name, found[1])
    if found := re.fullmatch(r"dict\(str, (.*)\)", kind):
        if (model, name) in _QUANTITIES:
            return Mapping(QUANTITY)
        if found[1] == "str" and name in _QUANTITY_MAPS and model.startswith(_QUANTITY_MODELS):
            return Mapping(AMOUNT)
        inner = (
            BYTES
            if (model, name) in _BYTES
            else KEPT_STRING
            if found[1] == "str"
            else _node(model, "", found[1])
        )
        return Mapping(inner, atomic=(model, name) in _ATOMIC_MAPS)
    if kind in models():
        return _of(kind)
    return _scalar(model, name, kind)


def _array(model: str, name: str, item: str) -> Array:
    keys, merge_key = _KEYED.get((model, name)) or _KEYED.get(("*", name)) or ((), "")
    if (model, name) in _QUANTITIES:
        return Array(QUANTITY)
    items = KEPT_STRING if item == "str" else _node(model, name if item == "int" else "", item)
    in_set = (model, name) in _SETS
    defaults: dict[str, Any] = {"protocol": "TCP"} if "protocol" in keys else {}
    return Array(
        items, keys=keys, is_set=in_set, merge_key=merge_key, merges_values=in_set, defaults=defaults
    )


def _scalar(model: str, name: str, kind: str) -> Node:
    at = (model, name)
    match kind:
        case "str" if model == "V1Condition":
            return KEPT_STRING
        case "str" if at in _BYTES:
            return BYTES_OMITTED
        case "str":
            return (
                QUANTITY
                if at in _QUANTITIES
                else KEPT_STRING
                if name in _EMPTY_KEPT or at in _EMPTY_KEPT_IN
                else STRING
            )
        case "int":
            if name in _ZERO_OMITTED or at in _ZERO_OMITTED_IN:
                return ZERO_LONG_OMITTED if name in _LONGS or at in _LONGS_IN else ZERO_OMITTED
            return LONG if name in _LONGS or at in _LONGS_IN else INTEGER
        case "bool":
            return FALSE_OMITTED if name in _FALSE_OMITTED or at in _READ_ONLY else BOOLEAN
        case "float":
            return NUMBER
        case "datetime":
            return MICRO_TIME if at in _MICRO_TIMES else TIME
        case "object" if name in _INT_OR_STRING:
            return INT_OR_STRING
        case _:
            return ANY
