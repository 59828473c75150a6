"""device_places bounds how many equal pods devices of nodes serve; own_requests has the rest of a request.

Selectors, constraints and counters may leave less, never more. A claim that a pod names may be shared with
other pods, and does not count; claims that are made for the pod do, and so do extended resources that a class
serves where nodes do not have them themselves.

Axis letter: N nodes.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.device_blocks import open_devices
from plimsoll.devices.pod_claims import ClaimProblem
from plimsoll.devices.pod_devices import claims_wanted, needs_devices, resources_of
from plimsoll.devices.pools import Pool
from plimsoll.devices.requests import MissingClassError, wanted_claim
from plimsoll.model.columns.columns import IntArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.pod_info import PodInfo


def device_places(pod: PodInfo, snapshot: Snapshot, rows: RowArray) -> NDArray[np.float64] | None:
    """The most pods like this one that the free devices of each node serve, shape (N,); None for any number.

    A node with half of the devices that a pod needs serves half a pod.

    Args:
        pod: The pod.
        snapshot: All nodes.
        rows: The rows of the nodes, shape (N,).
    """
    book = snapshot.objects.known_ledger(DeviceBook)
    if book is None or not needs_devices(pod, book):
        return None
    wanted: IntArray = np.full(len(rows), _of_claims(pod, book, snapshot.objects.pod_groups), dtype=np.int64)
    places: NDArray[np.float64] = np.full(len(rows), np.inf)
    for name in resources_of(pod.template, book):
        amount, axis = pod.requests[name], snapshot.axis_of(name)
        if axis is None:
            wanted += amount
            continue
        has = snapshot.allocatable[rows, axis]
        wanted[has == 0] += amount
        free = (has - snapshot.requested[rows, axis]) / amount
        places = np.where(has > 0, np.minimum(places, free), places)
    # Devices that are held for this pod, or for less important ones, are free to it.
    held = (given for hold in book.open_to(pod.pod) for given in hold.given.values()) if book.holds else ()
    taken = book.taken.without(held) if book.holds else book.taken
    for at, row in enumerate(rows.tolist()):
        pools = book.slices.pools_of(snapshot.node(row)) if wanted[at] else ()
        if wanted[at] and not _are_shared(pools):
            places[at] = min(places[at], open_devices(pools, taken) / wanted[at])
    return places


def own_requests(pods: Iterable[PodInfo], snapshot: Snapshot) -> list[IntArray]:
    """What each pod requests of its node, shape (R,): without what ResourceClaims provide."""
    book = snapshot.objects.known_ledger(DeviceBook)
    own = [
        {name: each for name, each in pod.requests.items() if book.class_of_resource(name) is None}
        if book is not None
        else pod.requests
        for pod in pods
    ]
    rows = [snapshot.requests_row(each) for each in own]
    # The axis may grow with a later one.
    return rows if len({*map(len, rows)}) < 2 else [snapshot.requests_row(each) for each in own]


def _of_claims(pod: PodInfo, book: DeviceBook, groups: Mapping[str, PodGroup]) -> int:
    """The fewest devices that the claims made for the pod need; administrative access needs none."""
    try:
        claims = [
            wanted_claim(claim, book.classes.get)
            for claim in claims_wanted(pod, book, groups)
            if not claim.is_allocated
            and claim.metadata.controller is not None
            and claim.metadata.controller.uid == pod.uid
        ]
    except (ClaimProblem, MissingClassError):
        return 0
    return sum(
        min(
            (0 if each.is_admin else 1 if each.takes_all else each.count for each in request.alternatives),
            default=0,
        )
        for claim in claims
        for request in claim.requests
    )


def _are_shared(pools: tuple[Pool, ...]) -> bool:
    """Whether a device may be given to several claims."""
    return any(each.device.allow_multiple_allocations for pool in pools for each in pool.devices)
