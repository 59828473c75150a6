"""Recorded decisions about devices: the objects of a case in the book of devices, and their allocations."""

import time
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking
from plimsoll.devices.pod_devices import PodDevices
from plimsoll.engine.decision import Evaluation
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.model.quantity import nanos
from recordings.device_writes import carried_out

#: What a recording writes in the place of a name that is made by chance.
ANY = "*"


class Difference(NamedTuple):
    """What was recorded, and what came out."""

    what: str
    expected: object
    got: object
    node: str = ""


def publish_devices(given: Mapping[str, Any], cluster: Cluster) -> None:
    """Put slices, classes and claims of a case into the book of its cluster."""
    book = cluster.objects.ledger(DeviceBook)
    kinds = ("resourceSlices", "deviceClasses", "resourceClaims")
    book.is_served, book.now = any(each in given for each in kinds), time.time()
    for each in given.get("resourceSlices", ()):
        book.set_slice(convert(ResourceSlice, each))
    for each in given.get("deviceClasses", ()):
        book.set_class(convert(DeviceClass, each))
    for each in given.get("resourceClaims", ()):
        book.set_claim(convert(ResourceClaim, each))
    for each in given.get("pendingAllocations", ()):
        claim = convert(ResourceClaim, each)
        assert claim.status.allocation is not None
        book.allocate(claim, claim.status.allocation)


def differences(expected: Mapping[str, Any], cluster: Cluster, got: Evaluation) -> Iterator[Difference]:
    """What the claims of the pod get on each feasible node, compared with what was recorded."""
    recorded, devices = expected.get("dra", {}), got.state.find(PodDevices)
    for node in got.feasible:
        row = cluster.rows[node]
        bookings = () if devices is None else devices.bookings(row, cluster.nodes[row], lambda: ANY)
        theirs = recorded.get("allocations", {}).get(node, {})
        ours = {each.claim.key: _plain(each) for each in bookings if each.allocation is not None}
        wanted = {key: _comparable(each) for key, each in theirs.items()}
        if ours != wanted:
            yield Difference("allocations", wanted, ours, node)
        asked = recorded.get("extended", {}).get(node)
        made = next((each.extended for each in bookings if each.extended is not None), None)
        if made is not None or asked is not None:
            written = {"requests": [], "mappings": []} if made is None else _extended(made)
            said = {key: _comparable((asked or {}).get(key) or []) for key in ("requests", "mappings")}
            if written != said:
                yield Difference("extended", said, written, node)


def wrong_writes(
    expected: Mapping[str, Any], cluster: Cluster, pod: PodInfo, got: Evaluation
) -> Iterator[Difference]:
    """What binding to the recorded host writes for claims, and what undoing that writes."""
    recorded, devices = expected.get("dra", {}), got.state.find(PodDevices)
    host = recorded.get("host", "")
    if not host or host not in got.feasible or devices is None:
        return
    bookings = devices.bookings(cluster.rows[host], cluster.nodes[cluster.rows[host]], lambda: ANY)
    allocated = {each.claim.key for each in bookings if each.allocation is None}
    written, status, undone = carried_out(cluster, pod, host, bookings)
    for what, ours in (("writes", written), ("unreserve", undone)):
        if what == "unreserve" and what not in recorded:
            continue  # it waits for binding conditions
        theirs = recorded.get(what, [])
        wanted, found = ([_plain_write(each, allocated) for each in some] for some in (theirs, ours))
        if wanted != found:
            yield Difference(what, wanted, found, host)
    ended = recorded.get("preBind", {"code": "Success", "reasons": []})
    outcome = "Wait" if status is None else status.code.value
    reasons = [] if status is None else list(status.reasons)
    if ended["code"] != outcome or (outcome == "Error" and ended["reasons"] != reasons):
        yield Difference("preBind", ended, (outcome, reasons), host)


def _plain_write(write: Mapping[str, Any], allocated: Container[str]) -> Any:
    """A write as it is compared.

    An allocation that stays gets no new time here; what drivers say of devices is not sent, so it stays.
    """
    plain: dict[str, Any] = {key: _comparable(each) or None for key, each in write.items()}
    status = plain.get("status")
    if status:
        status.pop("devices", None)
        if f"{write['namespace']}/{write['name']}" in allocated:
            status["allocation"].pop("allocationTimestamp", None)
    return plain


def given_back(expected: Mapping[str, Any], cluster: Cluster, got: Evaluation) -> Iterator[Difference]:
    """What PostFilter takes back."""
    recorded, devices = expected.get("dra", {}), got.state.find(PodDevices)
    refused = [cluster.rows[node] for node, each in got.statuses.items() if each.plugin == "DynamicResources"]
    unused = [] if devices is None else [each.key for each in devices.unused(refused, Snapshot(cluster))]
    acceptable = recorded.get("deallocated", [])
    if bool(unused) != bool(acceptable) or not set(unused) <= set(acceptable):
        yield Difference("deallocated", acceptable, unused)


def _extended(made: Any) -> dict[str, object]:
    requests = [
        {
            "name": each.name,
            "exactly": {
                "allocationMode": "ExactCount",
                "count": each.exactly.count,
                "deviceClassName": each.exactly.device_class_name,
            },
        }
        for each in made.requests
    ]
    mappings = [
        {"containerName": each.container, "resourceName": each.resource, "requestName": each.request}
        for each in made.mappings
    ]
    return {"requests": requests, "mappings": mappings}


def _plain(booking: Booking) -> object:
    return _comparable(msgspec.to_builtins(booking.allocation))


def _comparable(value: object) -> Any:
    """The same without empty fields; quantities by value."""
    if isinstance(value, Mapping):
        return {
            key: {name: nanos(amount) for name, amount in each.items()}
            if key == "consumedCapacity"
            else _comparable(each)
            for key, each in value.items()
            if each not in (None, [], (), "", {}) or key == "devices"
        }
    if isinstance(value, list | tuple):
        return [_comparable(each) for each in value]
    return value
