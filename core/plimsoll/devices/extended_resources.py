"""Builds claims for extended resources that device classes serve.

Source: Kubernetes v1.36, ``plugins/dynamicresources/extendeddynamicresources.go`` and
``deviceclass/extendedresourcecache``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from plimsoll.model.kinds.metadata import ObjectMeta, OwnerReference
from plimsoll.model.kinds.pod import Container, Pod
from plimsoll.model.kinds.requests import is_extended
from plimsoll.model.kinds.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from plimsoll.model.kinds.resource_slice import DeviceClass
from plimsoll.model.quantity import QuantityError, units

#: Prefix of a class's name as an extended resource if it has no other name.
IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"

#: Marks a claim that was created for extended resources.
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"

#: The name of such a claim before it is created.
UNNAMED = "<extended-resources>"

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def may_be_served(resource: str) -> bool:
    """Whether a device class can serve a resource of that name."""
    return is_extended(resource) or resource.startswith(IMPLICIT_PREFIX)


class Mapped(NamedTuple):
    """The request of the claim that serves a resource of a container."""

    container: str
    resource: str
    request: str


class ExtendedRequests(NamedTuple):
    """The requests of a claim for extended resources, and the containers that they serve."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[Mapped, ...]


def classes_by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """The class of each extended resource: of two with one name the newer, then the alphabetically first."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name):
        found[f"{IMPLICIT_PREFIX}{each.name}"] = each
        name = each.spec.extended_resource_name
        if name:
            known = found.get(name)
            if known is None or _made(each) > _made(known):
                found[name] = each
    return found


def _made(each: DeviceClass) -> datetime:
    return each.metadata.creation_timestamp or _LONG_AGO


def requests_for(
    pod: Pod, resources: Sequence[str], class_of: Callable[[str], DeviceClass | None]
) -> ExtendedRequests:
    """The requests for devices that serve these resources of a pod's containers.

    Args:
        pod: The pod.
        resources: The resources to be served by devices.
        class_of: The class of a resource.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    started_first = len(pod.spec.init_containers)
    requests: list[DeviceRequest] = []
    mappings: list[Mapped] = []
    for resource in sorted(resources):
        served = class_of(resource)
        if served is None:
            continue
        lasting: list[tuple[int, str, int]] = []
        for place, container in enumerate(containers):
            amount = _amount(container, resource)
            if amount <= 0 or (place < started_first and container.restart_policy != "Always"):
                continue
            name = _name(place, container, resource)
            requests.append(_request(name, served, amount))
            mappings.append(Mapped(container.name, resource, name))
            lasting.append((place, name, amount))
        requests += _of_init_containers(pod, resource, served, lasting, mappings)
    requests.sort(key=lambda each: each.name)
    return ExtendedRequests(tuple(requests), tuple(mappings))


def _of_init_containers(
    pod: Pod,
    resource: str,
    served: DeviceClass,
    lasting: Sequence[tuple[int, str, int]],
    mappings: list[Mapped],
) -> list[DeviceRequest]:
    """The maximum that an init container needs in addition to containers that start after it."""
    largest, kept = 0, ""
    short: list[str] = []
    used: list[Mapped] = []
    for place, container in enumerate(pod.spec.init_containers):
        missing = 0 if container.restart_policy == "Always" else _amount(container, resource)
        if missing <= 0:
            continue
        for other, name, amount in lasting:
            if other >= place and missing > 0:
                used.append(Mapped(container.name, resource, name))
                missing -= amount
        if missing > 0:
            short.append(container.name)
            used.append(Mapped(container.name, resource, ""))
            if missing > largest:
                largest, kept = missing, _name(place, container, resource)
    mappings += [each if each.request else each._replace(request=kept) for each in used]
    return [_request(kept, served, largest)] if short else []


def _request(name: str, served: DeviceClass, count: int) -> DeviceRequest:
    return DeviceRequest(name=name, exactly=ExactDeviceRequest(device_class_name=served.name, count=count))


def _name(place: int, container: Container, resource: str) -> str:
    return f"container-{place}-request-{sorted(container.resources.requests).index(resource)}"


def _amount(container: Container, resource: str) -> int:
    written = container.resources.requests.get(resource)
    if written is None:
        return 0
    try:
        return units(written)
    except QuantityError:
        return 0


def claim_for(pod: Pod, asked: ExtendedRequests) -> ResourceClaim:
    """The claim in memory, before its creation."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=UNNAMED,
            namespace=pod.namespace,
            annotations={ANNOTATION: "true"},
            owner_references=(owner,),
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=asked.requests)),
    )


def is_left_over(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether an earlier attempt created a claim for the extended resources of the pod."""
    owner = claim.metadata.controller
    return claim.metadata.annotations.get(ANNOTATION) == "true" and owner is not None and owner.uid == pod.uid
