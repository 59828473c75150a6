"""Defines columns of the kinds that are neither pods, nodes nor workloads.

Source: kubernetes v1.36 ``pkg/printers/internalversion/printers.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.table_columns.columns import (
    AGE,
    CREATED,
    NAME,
    NONE,
    UNSET,
    Column,
    at,
    field,
    human_duration,
    labels,
    selector,
    since,
    wide,
)

if TYPE_CHECKING:
    import datetime as dt

    from roadstead.values.resources import Obj

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(given: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _data(obj: Obj, _now: dt.datetime) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _addresses(endpoints: Obj, _now: dt.datetime) -> str:
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in endpoints.get("subsets") or []
        for port in subset.get("ports") or []
        for address in subset.get("addresses") or []
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or NONE


ENDPOINTS = (NAME, Column("Endpoints", _addresses), AGE)
WEBHOOKS = (NAME, Column("Webhooks", lambda obj, _now: len(obj.get("webhooks") or ())), AGE)
CONFIG_MAPS = (NAME, Column("Data", _data), AGE)
SECRETS = (NAME, Column("Type", field("type")), Column("Data", _data), AGE)
SERVICE_ACCOUNTS = (NAME, Column("Secrets", lambda obj, _: len(obj.get("secrets") or [])), AGE)


def _of_quota(*, limits: bool) -> Any:
    """Used and hard amounts, either of limits or of all else."""

    def cell(quota: Obj, _now: dt.datetime) -> str:
        hard, used = at(quota, "status", "hard", default={}), at(quota, "status", "used", default={})
        return ", ".join(
            f"{name}: {used.get(name, '0')}/{hard[name]}"
            for name in sorted(hard)
            if name.startswith("limits.") is limits
        )

    return cell


QUOTAS = (NAME, Column("Request", _of_quota(limits=False)), Column("Limit", _of_quota(limits=True)), AGE)
LEASES = (NAME, Column("Holder", field("spec", "holderIdentity")), AGE)
NAMESPACES = (NAME, Column("Status", field("status", "phase")), AGE)


def _claim_status(claim: Obj, _now: dt.datetime) -> str:
    if claim["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(at(claim, "status", "phase", default=""))


def _claim_part(*steps: str, modes: bool = False) -> Any:
    """Capacity and modes are shown for a claim that has a volume."""

    def cell(claim: Obj, _now: dt.datetime) -> str:
        if not at(claim, "spec", "volumeName"):
            return ""
        found = at(claim, *steps, default=[] if modes else "")
        return _modes(found) if modes else str(found)

    return cell


def _class(obj: Obj, _now: dt.datetime) -> str:
    beta = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(beta or at(obj, "spec", "storageClassName", default=""))


_ATTRIBUTES = Column("VolumeAttributesClass", field("spec", "volumeAttributesClassName", default=UNSET))
_VOLUME_MODE = wide("VolumeMode", field("spec", "volumeMode", default=UNSET))

CLAIMS = (
    NAME,
    Column("Status", _claim_status),
    Column("Volume", field("spec", "volumeName")),
    Column("Capacity", _claim_part("status", "capacity", "storage")),
    Column("Access Modes", _claim_part("status", "accessModes", modes=True)),
    Column("StorageClass", _class),
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)


def _claim_of(volume: Obj, _now: dt.datetime) -> str:
    claim = at(volume, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


VOLUMES = (
    NAME,
    Column("Capacity", field("spec", "capacity", "storage")),
    Column("Access Modes", lambda volume, _: _modes(at(volume, "spec", "accessModes", default=[]))),
    Column("Reclaim Policy", field("spec", "persistentVolumeReclaimPolicy")),
    Column("Status", _claim_status),
    Column("Claim", _claim_of),
    Column("StorageClass", _class),
    _ATTRIBUTES,
    Column("Reason", field("status", "reason")),
    AGE,
    _VOLUME_MODE,
)


def _hosts(ingress: Obj, _now: dt.datetime) -> str:
    found = [rule["host"] for rule in at(ingress, "spec", "rules", default=[]) if rule.get("host")]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or "*"


def _ingress_address(ingress: Obj, _now: dt.datetime) -> str:
    balanced = at(ingress, "status", "loadBalancer", "ingress", default=[])
    return ",".join(one.get("ip") or one.get("hostname", "") for one in balanced)


INGRESSES = (
    NAME,
    Column("Class", field("spec", "ingressClassName", default=NONE)),
    Column("Hosts", _hosts),
    Column("Address", _ingress_address),
    Column("Ports", lambda ingress, _: "80, 443" if at(ingress, "spec", "tls") else "80"),
    AGE,
)
INGRESS_CLASSES = (
    NAME,
    Column("Controller", field("spec", "controller")),
    Column("Parameters", lambda obj, _: _parameters(at(obj, "spec", "parameters"))),
    AGE,
)


def _parameters(given: Obj | None) -> str:
    if not given:
        return NONE
    group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
    return f"{given['kind']}{group}/{given['name']}"


def _request_state(request: Obj, _now: dt.datetime) -> str:
    status = at(request, "status", default={})
    kinds = {one["type"] for one in status.get("conditions") or ()}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    state += ",Failed" if "Failed" in kinds else ""
    return state + (",Issued" if status.get("certificate") else "")


def _requested_duration(request: Obj, _now: dt.datetime) -> str:
    seconds = at(request, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


SIGNING_REQUESTS = (
    NAME,
    AGE,
    Column("SignerName", field("spec", "signerName")),
    Column("Requestor", field("spec", "username")),
    Column("RequestedDuration", _requested_duration),
    Column("Condition", _request_state),
)


def _targets(scaler: Obj, _now: dt.datetime) -> str:
    """Each metric as "cpu: 40%/50%"."""
    current = {
        one["resource"]["name"]: one["resource"]["current"]
        for one in at(scaler, "status", "currentMetrics", default=[]) or ()
        if one["type"] == "Resource"
    }
    found = []
    for metric in at(scaler, "spec", "metrics", default=[]):
        if metric["type"] != "Resource":
            found.append("<unknown>")
            continue
        name, target = metric["resource"]["name"], metric["resource"]["target"]
        has = current.get(name, {})
        if target["type"] == "Utilization":
            share = has.get("averageUtilization")
            shown = f"{'<unknown>' if share is None else f'{share}%'}/{target['averageUtilization']}%"
        else:
            shown = f"{has.get('averageValue', '<unknown>')}/{target.get('averageValue', '')}"
        found.append(f"{name}: {shown}")
    return ", ".join(found) or NONE


AUTOSCALERS = (
    NAME,
    Column(
        "Reference",
        lambda obj, _: (
            f"{at(obj, 'spec', 'scaleTargetRef', 'kind')}/{at(obj, 'spec', 'scaleTargetRef', 'name')}"
        ),
    ),
    Column("Targets", _targets),
    Column("MinPods", lambda obj, _: str(at(obj, "spec", "minReplicas", default=1))),
    Column("MaxPods", lambda obj, _: at(obj, "spec", "maxReplicas", default=0)),
    Column("Replicas", lambda obj, _: at(obj, "status", "currentReplicas", default=0)),
    AGE,
)


def _ports(service: Obj, _now: dt.datetime) -> str:
    found = []
    for port in at(service, "spec", "ports", default=[]):
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        found.append(f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(found) or NONE


def _external(service: Obj, _now: dt.datetime) -> str:
    kind = at(service, "spec", "type", default="ClusterIP")
    given = at(service, "spec", "externalIPs", default=[])
    if kind == "ExternalName":
        return str(at(service, "spec", "externalName", default=""))
    if kind == "LoadBalancer":
        balanced = at(service, "status", "loadBalancer", "ingress", default=[])
        addresses = [one.get("ip") or one.get("hostname", "") for one in balanced]
        return ",".join([*addresses, *given]) or "<pending>"
    return ",".join(given) or NONE


SERVICES = (
    NAME,
    Column("Type", field("spec", "type")),
    Column("Cluster-IP", field("spec", "clusterIP", default=NONE)),
    Column("External-IP", _external),
    Column("Port(s)", _ports),
    AGE,
    wide("Selector", lambda service, _: labels(at(service, "spec", "selector"))),
)
PRIORITY_CLASSES = (
    NAME,
    Column("Value", field("value", default=0), type="integer"),
    Column("Global-Default", field("globalDefault", default=False), type="boolean"),
    AGE,
    Column("PreemptionPolicy", field("preemptionPolicy")),
)


_SCHEDULED = ("PodGroupScheduled", "PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled")


def _policy(group: Obj, _now: dt.datetime) -> str:
    return "Gang" if at(group, "spec", "schedulingPolicy", "gang") is not None else "Basic"


def _group_status(group: Obj, _now: dt.datetime) -> str:
    known = {each.get("type"): each for each in at(group, "status", "conditions") or ()}
    if "DisruptionTarget" in known:
        return str(known["DisruptionTarget"].get("reason", ""))
    scheduled = next((each for name, each in known.items() if name in _SCHEDULED), None)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


POD_GROUPS = (
    NAME,
    Column("Policy", _policy),
    Column("Workload", field("spec", "podGroupTemplateRef", "workload", "workloadName", default=NONE)),
    Column("Status", _group_status),
    AGE,
)
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _storage_class_name(obj: Obj, _now: dt.datetime) -> str:
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return f"{obj['metadata']['name']} (default)" if default else str(obj["metadata"]["name"])


STORAGE_CLASSES = (
    Column("Name", _storage_class_name, format="name"),
    Column("Provisioner", field("provisioner")),
    Column("ReclaimPolicy", field("reclaimPolicy", default="Delete")),
    Column("VolumeBindingMode", field("volumeBindingMode", default="Immediate")),
    Column("AllowVolumeExpansion", field("allowVolumeExpansion", default=False)),
    AGE,
)


def _about(event: Obj) -> Obj:
    found: Obj = event.get("involvedObject") or event.get("regarding") or {}
    return found


def _event_object(event: Obj, _now: dt.datetime) -> str:
    about = _about(event)
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(event: Obj, _now: dt.datetime) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    parts = [source.get("component") or event.get("reportingComponent") or "", source.get("host") or ""]
    return ", ".join(part for part in parts if part)


def _last_seen(event: Obj, now: dt.datetime) -> str:
    series = event.get("series") or {}
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    return since(series.get("lastObservedTime") or last or _first_time(event), now)


def _first_time(event: Obj) -> str | None:
    found = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    return str(found) if found else None


def _event_count(event: Obj, _now: dt.datetime) -> int:
    series = event.get("series") or {}
    return int(series.get("count") or event.get("count") or event.get("deprecatedCount") or 1)


EVENTS = (
    Column("Last Seen", _last_seen),
    Column("Type", field("type")),
    Column("Reason", field("reason")),
    Column("Object", _event_object),
    wide("Subobject", lambda event, _: _about(event).get("fieldPath", "")),
    wide("Source", _event_source),
    Column("Message", lambda event, _: (event.get("message") or event.get("note") or "").strip()),
    wide("First Seen", lambda event, now: since(_first_time(event), now)),
    wide("Count", _event_count),
    Column("Name", field("metadata", "name"), format="name", priority=1),
)


def _role(binding: Obj, _now: dt.datetime) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> Any:
    def cell(binding: Obj, _now: dt.datetime) -> str:
        chosen = [one for one in binding.get("subjects") or [] if one.get("kind") == kind]
        return ", ".join(
            f"{one['namespace']}/{one['name']}" if one.get("namespace") else one["name"] for one in chosen
        )

    return cell


BINDINGS = (
    NAME,
    Column("Role", _role),
    AGE,
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
)
NAME_AND_CREATION = (NAME, CREATED)
NETWORK_POLICIES = (
    NAME,
    Column("Pod-Selector", lambda obj, _: selector(at(obj, "spec", "podSelector"))),
    AGE,
)
RUNTIME_CLASSES = (NAME, Column("Handler", field("handler")), AGE)
ATTACHMENTS = (
    NAME,
    Column("Attacher", field("spec", "attacher")),
    Column("PV", field("spec", "source", "persistentVolumeName")),
    Column("Node", field("spec", "nodeName")),
    Column("Attached", field("status", "attached", default=False), type="boolean"),
    AGE,
)
CSI_NODES = (
    NAME,
    Column("Drivers", lambda obj, _: len(at(obj, "spec", "drivers", default=[])), type="integer"),
    AGE,
)
