"""Checks containers, init containers and ephemeral containers.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``validateContainerCommon``,
``validateInitContainers``, ``validateEphemeralContainers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    invalid,
    label_name,
    missing,
    not_among,
    one_of,
    port_number,
    required,
    too_many,
)
from roadstead.kinds.podspec.environment import environment_causes
from roadstead.kinds.podspec.mounts import mount_causes
from roadstead.kinds.podspec.probes import port_name_faults, probe_causes
from roadstead.kinds.podspec.resources import resource_causes
from roadstead.kinds.podspec.security import container_security_causes

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ONLY_LONG_RUNNING = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    *_PROBES,
)
_MOST_RULES, _MOST_CODES = 20, 255


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The properties of a pod that the checks of its containers need.

    Attributes:
        volumes: the valid ones, keyed by name.
        claims: the names of its resource claims.
        grace: its grace period in seconds.
        restart_policy: of the pod.
        host_users: whether its users are those of the host.
    """

    volumes: dict[str, Obj]
    claims: frozenset[str]
    grace: int | None
    restart_policy: str
    host_users: bool


def container_causes(spec: Obj, at: str, pod: Surroundings) -> list[Cause]:
    """Faults of all containers of a pod's spec."""
    containers = spec.get("containers") or []
    causes = [] if containers else [required(f"{at}.containers")]
    names: set[str] = set()
    for index, container in enumerate(containers):
        here, name = f"{at}.containers[{index}]", container.get("name", "")
        causes += _common_causes(container, here, pod)
        if name in names:
            causes.append(duplicate(f"{here}.name", name))
        names.add(name)
        causes += probe_causes(container, here, pod.grace)
        causes += _restart_causes(container, here)
    causes += _host_port_causes(containers, f"{at}.containers")
    for index, container in enumerate(spec.get("initContainers") or ()):
        here, name = f"{at}.initContainers[{index}]", container.get("name", "")
        causes += _common_causes(container, here, pod)
        causes += _restart_causes(container, here)
        if name in names:
            causes.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        causes += _host_port_causes([container], f"{at}.initContainers")
        causes += _init_causes(container, here, pod)
    return causes + _ephemeral_causes(spec, f"{at}.ephemeralContainers", pod, names)


def _init_causes(container: Obj, at: str, pod: Surroundings) -> list[Cause]:
    if container.get("restartPolicy") == "Always":
        return probe_causes(container, at, pod.grace)
    causes = [
        forbidden(f"{at}.{field}", _ONLY_LONG_RUNNING)
        for field in ("lifecycle", *_PROBES)
        if container.get(field) is not None
    ]
    message = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return causes + [
        invalid(f"{at}.resizePolicy[{index}].restartPolicy", "RestartContainer", message)
        for index, one in enumerate(container.get("resizePolicy") or ())
        if one.get("restartPolicy") == "RestartContainer"
    ]


def _ephemeral_causes(spec: Obj, at: str, pod: Surroundings, names: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    others, message = set(names), "cannot be set for an Ephemeral Container"
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here, name, target = f"{at}[{index}]", container.get("name", ""), container.get("targetContainerName")
        causes += _common_causes(container, here, pod) + padded_image_causes(container, here)
        if name in names:
            causes.append(duplicate(f"{here}.name", name))
        names.add(name)
        if target and target not in others:
            causes.append(missing(f"{here}.targetContainerName", target))
        causes += [forbidden(f"{here}.{field}", message) for field in _NOT_EPHEMERAL if container.get(field)]
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            causes += [
                forbidden(f"{here}.volumeMounts[{number}].{field}", message)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return causes


def padded_image_causes(container: Obj, at: str) -> list[Cause]:
    """Faults of images with surrounding spaces, which templates may have."""
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [invalid(f"{at}.image", image, "must not have leading or trailing whitespace")]


def _common_causes(container: Obj, at: str, pod: Surroundings) -> list[Cause]:
    name = container.get("name", "")
    causes = label_name(f"{at}.name", name) if name else [required(f"{at}.name")]
    if not container.get("image"):
        causes.append(required(f"{at}.image"))
    policies = ("File", "FallbackToLogsOnError")
    causes += one_of(f"{at}.terminationMessagePolicy", container.get("terminationMessagePolicy"), policies)
    causes += _port_causes(container.get("ports") or [], f"{at}.ports")
    causes += environment_causes(container, at)
    causes += mount_causes(container, at, pod.volumes)
    pulls = ("Always", "IfNotPresent", "Never")
    causes += one_of(f"{at}.imagePullPolicy", container.get("imagePullPolicy"), pulls)
    causes += resource_causes(container.get("resources") or {}, f"{at}.resources", pod.claims)
    causes += _resize_causes(container.get("resizePolicy") or [], f"{at}.resizePolicy", pod.restart_policy)
    context = container.get("securityContext") or {}
    return causes + container_security_causes(context, f"{at}.securityContext", host_users=pod.host_users)


def _port_causes(ports: list[Obj], at: str) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name, number = f"{at}[{index}]", port.get("name", ""), port.get("containerPort")
        if name:
            faults = port_name_faults(name)
            causes += [invalid(f"{here}.name", name, fault) for fault in faults]
            if not faults and name in names:
                causes.append(duplicate(f"{here}.name", name))
            names.add(name)
        causes += (
            port_number(f"{here}.containerPort", number) if number else [required(f"{here}.containerPort")]
        )
        if port.get("hostPort"):
            causes += port_number(f"{here}.hostPort", port["hostPort"])
        causes += one_of(f"{here}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
    return causes


def _host_port_causes(containers: list[Obj], at: str) -> list[Cause]:
    """A host port may occur once."""
    causes: list[Cause] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if text in taken:
                causes.append(duplicate(f"{at}[{index}].ports[{number}].hostPort", text))
            taken.add(text)
    return causes


def _resize_causes(policies: list[Obj], at: str, restart_policy: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(policies):
        name, policy = one.get("resourceName", ""), one.get("restartPolicy", "")
        if name in seen:
            causes.append(duplicate(f"{at}[{index}]", name))
        seen.add(name)
        causes += one_of(at, name, ("cpu", "memory")) if name else [required(at)]
        causes += one_of(at, policy, ("NotRequired", "RestartContainer")) if policy else [required(at)]
        if restart_policy == "Never" and policy != "NotRequired":
            message = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            causes.append(invalid(at, policy, message))
    return causes


def _restart_causes(container: Obj, at: str) -> list[Cause]:
    """Faults of a container's own restart policy and of its rules by exit code."""
    causes: list[Cause] = []
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None:
        causes += one_of(f"{at}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    elif rules:
        message = "must specify restartPolicy when restart rules are used"
        causes.append(required(f"{at}.restartPolicy", message))
    if len(rules) > _MOST_RULES:
        causes.append(too_many(f"{at}.restartPolicyRules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        here, codes = f"{at}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action") != "Restart":
            causes.append(not_among(f"{here}.action", rule.get("action", ""), ("Restart",)))
        if codes is None:
            causes.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        causes += one_of(f"{here}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
        if len(codes.get("values") or ()) > _MOST_CODES:
            causes.append(too_many(f"{here}.exitCodes.values", len(codes["values"]), _MOST_CODES))
    return causes
