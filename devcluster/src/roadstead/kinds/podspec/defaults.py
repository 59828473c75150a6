"""Sets defaults of pod specs.

Source: Kubernetes v1.36 ``pkg/apis/core/v1/defaults.go``; ``pkg/api/pod/util.go`` (disabled fields).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.kinds.podspec.resources import may_be_overcommitted, on_pod_level
from roadstead.schemas import quantities, quantity_forms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from roadstead.values.resources import Obj

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODES = ("secret", "configMap", "projected", "downwardAPI")
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def _default(obj: Obj, **values: object) -> None:
    """Set fields that are absent or have the zero value of their type."""
    for key, value in values.items():
        if not obj.get(key):
            obj[key] = value


def containers_of(spec: Obj, kinds: tuple[str, ...] = _CONTAINERS) -> Iterator[Obj]:
    """The containers of some kinds."""
    for kind in kinds:
        yield from spec.get(kind) or ()


def default_spec(spec: Obj, *, keeps_group: bool = False) -> None:
    """Set defaults of a pod's spec and drop fields of disabled feature gates, unless it keeps its group's."""
    _default(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if not keeps_group:
        spec.pop("schedulingGroup", None)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in containers_of(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Obj) -> None:
    container.setdefault("resources", {})
    _default(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image", "")) else "IfNotPresent"
    for port in container.get("ports") or ():
        _default(port, protocol="TCP")
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            _default(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _default_handler(probe)
            if "grpc" in probe:
                probe["grpc"].setdefault("service", "")
    lifecycle = container.get("lifecycle") or {}
    lifecycle.pop("stopSignal", None)
    for name in ("postStart", "preStop"):
        _default_handler(lifecycle.get(name) or {})
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        if "fieldRef" in source:
            _default(source["fieldRef"], apiVersion="v1")
        if "resourceFieldRef" in source:
            source["resourceFieldRef"].setdefault("divisor", "0")
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)


def _default_handler(handler: Obj) -> None:
    if (http := handler.get("httpGet")) is not None:
        _default(http, path="/", scheme="HTTP")


_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?:\.{_HOST})*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?P<tag>:[\w][\w.-]{0,127})?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


def _is_latest(image: str) -> bool:
    """Whether an image has the tag latest, and no digest.

    Source: ``github.com/distribution/reference``, which parses names of images.
    """
    found = _IMAGE.fullmatch(image)
    if found is None:
        return False
    return found["tag"] == ":latest" or not (found["tag"] or found["digest"])


def _default_volume(volume: Obj) -> None:
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for source in _MODES:
        if source in volume:
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    holders = [volume.get("downwardAPI") or {}]
    for source in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in source:
            _default(source["serviceAccountToken"], expirationSeconds=_TOKEN_SECONDS)
        holders.append(source.get("downwardAPI") or {})
    for holder in holders:
        for item in holder.get("items") or ():
            if "fieldRef" in item:
                _default(item["fieldRef"], apiVersion="v1")
            if "resourceFieldRef" in item:
                item["resourceFieldRef"].setdefault("divisor", "0")
    if "ephemeral" in volume and "volumeClaimTemplate" in volume["ephemeral"]:
        volume["ephemeral"]["volumeClaimTemplate"].setdefault("spec", {}).setdefault(
            "volumeMode", "Filesystem"
        )


# -- defaults of pods but not of templates -----------------------------------------------------------------


def default_pod(spec: Obj) -> None:
    """Default requests to limits, and host ports to container ports for pods on the host's network."""
    for container in containers_of(spec, ("initContainers", "containers")):
        limits = container["resources"].get("limits")
        if limits:
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
        for port in container.get("ports") or () if spec.get("hostNetwork") else ():
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]
    if spec.get("resources"):
        _default_pod_level(spec)
    spec.setdefault("enableServiceLinks", True)


def _default_pod_level(spec: Obj) -> None:
    """Default pod-level requests: those of its containers together, else its limits."""
    resources = spec["resources"]
    requests = dict(resources.get("requests") or {})
    limits = dict(resources.get("limits") or {})
    if limits or requests:
        for name, amount in together(spec, "limits").items():
            if name.startswith("hugepages-") and name not in limits and name not in requests:
                limits[name] = amount
    if limits:
        resources["limits"] = limits
        for name, amount in together(spec, "requests").items():
            if name not in requests and on_pod_level(name) and may_be_overcommitted(name):
                requests[name] = amount
        for name, amount in limits.items():
            if on_pod_level(name):
                requests.setdefault(name, amount)
        if requests:
            resources["requests"] = requests


def together(spec: Obj, kind: str) -> dict[str, str]:
    """The "requests" or "limits" that the containers of a pod need concurrently.

    Source: component-helpers v1.36 ``resource/helpers.go``.
    """
    texts: dict[str, str] = {}

    def amounts(container: Obj) -> dict[str, Decimal]:
        given = (container.get("resources") or {}).get(kind) or {}
        texts.update({name: text for name, text in given.items() if name not in texts})
        return {name: quantity_forms.value(text) for name, text in given.items()}

    running = quantities.concurrent_requests(spec, amounts)
    return {name: quantity_forms.written(amount, texts[name]) for name, amount in running.items()}
