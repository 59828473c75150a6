"""Checks pod specs and pod templates.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidatePodSpec``,
``ValidatePodTemplateSpec``. Causes in a template leave out ``metadata`` before labels and annotations, as
upstream's do.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    invalid,
    label_name,
    one_of,
    required,
    subdomain_name,
    too_long,
)
from roadstead.kinds.checks.metadata import annotation_key_causes, label_causes, qualified_name_faults
from roadstead.kinds.podspec.containers import Surroundings, container_causes
from roadstead.kinds.podspec.defaults import default_spec, together
from roadstead.kinds.podspec.environment import file_reference_causes
from roadstead.kinds.podspec.placement import (
    affinity_causes,
    gate_causes,
    spread_causes,
    toleration_causes,
)
from roadstead.kinds.podspec.resources import pod_name_causes, resource_causes
from roadstead.kinds.podspec.security import pod_security_causes
from roadstead.kinds.podspec.volumes import volume_causes
from roadstead.schemas import quantity_forms

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SERVERS, _MOST_SEARCHES = 3, 32
_LONGEST_HOSTNAME = 64
_LAST = 2**31 - 1
_COST = re.compile(r"0|[1-9]\d*|-[1-9]\d*")


def annotation_causes(annotations: dict[str, str], at: str) -> list[Cause]:
    """Faults of the annotations of a pod or a template that the API server reads."""
    cost = annotations.get(_DELETION_COST)
    if cost is None or (_COST.fullmatch(cost) and -_LAST - 1 <= int(cost) <= _LAST):
        return []
    return [invalid(f"{at}[{_DELETION_COST}]", cost, "must be a 32bit integer")]


def spec_causes(spec: Obj, at: str = "spec", *, pod_name: str = "", is_pod: bool = False) -> list[Cause]:
    """Faults of a pod's spec.

    Args:
        spec: with its defaults.
        at: its path.
        pod_name: the pod's name, if known.
        is_pod: whether it belongs to a pod and not to a template.
    """
    volumes, causes = volume_causes(spec.get("volumes") or [], f"{at}.volumes", pod_name)
    claims = spec.get("resourceClaims") or []
    causes += _claim_causes(claims, f"{at}.resourceClaims")
    pod = Surroundings(
        volumes,
        frozenset(one["name"] for one in claims if one.get("name")),
        spec.get("terminationGracePeriodSeconds"),
        spec.get("restartPolicy", ""),
        spec.get("hostUsers") is not False,
    )
    causes += container_causes(spec, at, pod)
    if spec.get("resources") is not None:
        causes += _pod_level_causes(spec, f"{at}.resources")
    causes += _host_causes(spec, at, is_pod=is_pod)
    restarts = ("Always", "OnFailure", "Never")
    causes += one_of(f"{at}.restartPolicy", spec.get("restartPolicy"), restarts)
    causes += one_of(f"{at}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    causes += label_causes(spec.get("nodeSelector"), f"{at}.nodeSelector")
    causes += pod_security_causes(spec, at)
    causes += affinity_causes(spec.get("affinity") or {}, f"{at}.affinity")
    causes += _dns_causes(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{at}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        here, kind = f"{at}.readinessGates[{index}].conditionType", gate.get("conditionType", "")
        causes += [invalid(here, kind, fault) for fault in qualified_name_faults(kind)]
    causes += gate_causes(spec.get("schedulingGates") or [], f"{at}.schedulingGates")
    causes += spread_causes(spec.get("topologySpreadConstraints") or [], f"{at}.topologySpreadConstraints")
    causes += _name_causes(spec, at)
    causes += toleration_causes(spec.get("tolerations") or [], f"{at}.tolerations")
    causes += _alias_causes(spec.get("hostAliases") or [], f"{at}.hostAliases")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LAST:
        message = f"must be between 1 and {_LAST}, inclusive"
        causes.append(invalid(f"{at}.activeDeadlineSeconds", deadline, message))
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        policies = ("PreemptLowerPriority", "Never")
        causes += one_of(f"{at}.preemptionPolicy", policy, policies)
    causes += resource_causes({"limits": spec.get("overhead")}, f"{at}.overhead")
    causes += _system_causes(spec, at)
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            causes += file_reference_causes(container, f"{at}.{kind}[{index}]", spec.get("volumes") or [])
    return causes


def _claim_causes(claims: list[Obj], at: str) -> list[Cause]:
    """Faults of the pod's resource claims."""
    causes: list[Cause] = []
    names: set[str] = set()
    fields = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        here, name = f"{at}[{index}]", claim.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        elif name in names:
            causes.append(duplicate(f"{here}.name", name))
        else:
            causes += label_name(f"{here}.name", name)
        names.add(name)
        given = [field for field in fields if claim.get(field) is not None]
        shown = {"Name": name, "ResourceClaimName": claim.get(fields[0])}
        shown["ResourceClaimTemplateName"] = claim.get(fields[1])
        if len(given) > 1:
            message = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(invalid(here, shown, message))
        if not given:
            message = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(invalid(here, shown, message))
        for field in given:
            causes += subdomain_name(f"{here}.{field}", claim[field])
    return causes


def _pod_level_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of pod-level requests and limits: they must include those of the containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(at, "may not be set for a windows pod")]
    causes: list[Cause] = []
    if resources.get("claims") is not None:
        causes.append(forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level"))
    claims = frozenset(one["name"] for one in spec.get("resourceClaims") or () if one.get("name"))
    causes += resource_causes(resources, at, claims, pod_name_causes)
    limits = resources.get("limits") or {}
    for kind in ("requests", "limits"):
        whole = resources.get(kind) or {}
        for name, text in together(spec, kind).items():
            counts = kind == "requests" or name.startswith("hugepages-")
            if counts and name in whole and quantity_forms.value(text) > quantity_forms.value(whole[name]):
                message = f"must be greater than or equal to aggregate container {kind} of {text}"
                causes.append(invalid(f"{at}.{kind}[{name}]", whole[name], message))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, text in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and quantity_forms.value(text) > quantity_forms.value(limits[name]):
                message = f"must be less than or equal to pod limits of {limits[name]}"
                causes.append(invalid(f"{at}.containers[{index}][{name}].limits", text, message))
    return causes


def _host_causes(spec: Obj, at: str, *, is_pod: bool) -> list[Cause]:
    """Faults of fields that depend on the host's network, processes and users."""
    causes: list[Cause] = []
    if spec.get("hostNetwork"):
        for index, container in enumerate(spec.get("containers") or ()):
            for number, port in enumerate(container.get("ports") or ()):
                on_host, inside = port.get("hostPort", 0), port.get("containerPort", 0)
                if (is_pod or on_host) and on_host != inside:
                    message = "must match `containerPort` when `hostNetwork` is true"
                    here = f"{at}.containers[{index}].ports[{number}].hostPort"
                    causes.append(invalid(here, on_host, message))
    if spec.get("hostUsers") is False:
        message = "when `hostUsers` is false"
        for field, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                causes.append(forbidden(f"{at}.{name}", message))
        for kind in ("initContainers", "containers"):
            causes += [
                forbidden(f"{at}.{kind}[{index}].volumeDevices", message)
                for index, container in enumerate(spec.get(kind) or ())
                if container.get("volumeDevices")
            ]
    return causes


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _dns_causes(config: Obj | None, policy: str, at: str) -> list[Cause]:
    if policy == "None":
        if config is None:
            return [required(at, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            message = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{at}.nameservers", message)]
    config = config or {}
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    causes: list[Cause] = []
    if len(servers) > _MOST_SERVERS:
        causes.append(
            invalid(f"{at}.nameservers", servers, f"must not have more than {_MOST_SERVERS} nameservers")
        )
    causes += [
        invalid(f"{at}.nameservers[{index}]", one, _NO_ADDRESS)
        for index, one in enumerate(servers)
        if not _is_address(one)
    ]
    if len(searches) > _MOST_SEARCHES:
        message = f"must not have more than {_MOST_SEARCHES} search paths"
        causes.append(invalid(f"{at}.searches", searches, message))
    for index, one in enumerate(searches):
        if one != ".":
            causes += subdomain_name(f"{at}.searches[{index}]", one.removesuffix("."), underscores=True)
    return causes + [
        required(f"{at}.options[{index}]", "must not be empty")
        for index, option in enumerate(config.get("options") or ())
        if not option.get("name")
    ]


def _alias_causes(aliases: list[Obj], at: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, alias in enumerate(aliases):
        address = alias.get("ip", "")
        if not _is_address(address):
            causes.append(invalid(f"{at}[{index}].ip", address, _NO_ADDRESS))
        for number, name in enumerate(alias.get("hostnames") or ()):
            causes += subdomain_name(f"{at}[{index}].hostnames[{number}]", name)
    return causes


def _name_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of fields that name other objects."""
    causes: list[Cause] = []
    override = spec.get("hostnameOverride")
    if override is not None:
        here = f"{at}.hostnameOverride"
        if spec.get("setHostnameAsFQDN"):
            causes.append(forbidden(here, "may not be specified when setHostnameAsFQDN is true"))
        if spec.get("hostNetwork"):
            causes.append(forbidden(here, "may not be specified when hostNetwork is true"))
        if len(override) > _LONGEST_HOSTNAME:
            causes.append(too_long(here, _LONGEST_HOSTNAME))
        causes += subdomain_name(here, override)
    for field in ("serviceAccountName", "nodeName", "priorityClassName"):
        if spec.get(field):
            causes += subdomain_name(f"{at}.{field}", spec[field])
    if spec.get("runtimeClassName") is not None:
        causes += subdomain_name(f"{at}.runtimeClassName", spec["runtimeClassName"])
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            causes += label_name(f"{at}.{field}", spec[field])
    return causes


def _system_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of the operating system."""
    system = spec.get("os")
    if system is None:
        return []
    if not system.get("name"):
        return [required(f"{at}.os.name")]
    return one_of(f"{at}.os", system["name"], ("linux", "windows"))


def default_template(template: Obj, *, keeps_group: bool) -> None:
    """Set defaults."""
    template.setdefault("metadata", {})
    default_spec(template.setdefault("spec", {}), keeps_group=keeps_group)


def template_causes(template: Obj, at: str) -> list[Cause]:
    """Faults of a template."""
    annotations = template["metadata"].get("annotations") or {}
    causes = label_causes(template["metadata"].get("labels"), f"{at}.labels")
    causes += annotation_key_causes(annotations, f"{at}.annotations")
    causes += annotation_causes(annotations, f"{at}.annotations")
    causes += spec_causes(template["spec"], f"{at}.spec")
    if template["spec"].get("ephemeralContainers"):
        message = "ephemeral containers not allowed in pod template"
        causes.append(forbidden(f"{at}.spec.ephemeralContainers", message))
    return causes
