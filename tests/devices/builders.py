"""Slices, classes and claims for tests, as short as their difference."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.taken import Taken
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice

DRIVER = "gpu.example.com"


def a_device(name: str, model: str = "", **more: Any) -> dict[str, Any]:
    """A device, with a model if it has one."""
    attributes = {"model": {"string": model}} if model else {}
    return {"name": name, "attributes": {**attributes, **more.pop("attributes", {})}, **more}


def a_slice(
    node: str, devices: Sequence[Mapping[str, Any]], *, name: str = "", slices: int = 1, **spec: Any
) -> ResourceSlice:
    """A slice of the pool of a node; ``spec`` has what differs."""
    pool = {"name": node or "shared", "generation": 1, "resourceSliceCount": slices}
    place = {"nodeName": node} if node else {"allNodes": True}
    return convert(
        ResourceSlice,
        {
            "metadata": {"name": name or f"{node}-gpu"},
            "spec": {"driver": DRIVER, "pool": pool, "devices": list(devices), **place, **spec},
        },
    )


def a_class(name: str = "gpu", **spec: Any) -> DeviceClass:
    """A class of all devices."""
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": spec})


def exactly(count: int = 1, **more: Any) -> dict[str, Any]:
    """What a request asks for."""
    return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **more}


def a_claim(name: str = "mine", *requests: Mapping[str, Any], **more: Any) -> ResourceClaim:
    """A claim for one device unless ``requests`` say otherwise."""
    asked = list(requests) or [{"name": "r", "exactly": exactly()}]
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": asked, "constraints": more.pop("constraints", [])}},
            **more,
        },
    )


def a_book(
    slices: Sequence[ResourceSlice], *claims: ResourceClaim, classes: Sequence[DeviceClass] = ()
) -> DeviceBook:
    """A book of these, with the class ``gpu``."""
    book = DeviceBook()
    fill(book, slices, *claims, classes=classes)
    return book


def fill(
    book: DeviceBook,
    slices: Sequence[ResourceSlice],
    *claims: ResourceClaim,
    classes: Sequence[DeviceClass] = (),
) -> None:
    """Put these into a book that is served."""
    book.is_served = True
    for one in slices:
        book.set_slice(one)
    for each in (a_class(), *classes):
        book.set_class(each)
    for claim in claims:
        book.set_claim(claim)


def taken_by(allocations: Iterable[AllocationResult]) -> Taken:
    """The devices of these allocations."""
    taken = Taken()
    for each in allocations:
        taken.add(each)
    return taken
