"""Device terms: columns of requests and of room that the program has for devices, like further resources.

Each kind of device that movable pods request (the selectors of a class and of a request) has a column, and so
have all devices of any of these kinds together. A pod requests as many of a kind as its claims request of
that kind, or of a kind that is a subset of it; a node has the devices that it reaches. The devices of pods
that stay count as used. No column may rule out a possible placement: requests for all devices, lists of
alternatives and admin access count nothing, and sharable devices are unlimited.

Where devices draw on counters or are shared, or a claim has constraints, the device search counts: each shape
of such claims has a column, of which a node has as many as get devices there one after the other.

Axis letters: T templates, N nodes, K kinds, R resources.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from plimsoll.devices.allocator import first_found
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.extended_resources import claim_for, requests_for
from plimsoll.devices.fork_devices import ForkDevices
from plimsoll.devices.node_answers import shape_of
from plimsoll.devices.pod_claims import ClaimProblem
from plimsoll.devices.pod_devices import claims_wanted, needs_devices, resources_of
from plimsoll.devices.pools import DeviceID, Pool, PooledDevice, PoolState
from plimsoll.devices.requests import (
    Expression,
    MissingClassError,
    WantedClaim,
    WantedDevices,
    wanted_claim,
)
from plimsoll.devices.results import allocations
from plimsoll.devices.search_limits import STEPS_A_SECOND, AllocationError, StepLimit
from plimsoll.devices.selectors import is_selected
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import ABSENT_RESOURCES, Cluster
from plimsoll.planning.moves import replacement_of
from plimsoll_optimal.problem import Floats, PodGroupCount

Kind = tuple[Expression, ...]


class DeviceTerms(NamedTuple):
    """Further columns of a program, for devices.

    Attributes:
        requests: Shape (T, K).
        used: Shape (N, K).
        allocatable: Shape (N, K).
        served: Resources that devices provide on nodes that have none themselves.
    """

    requests: Floats
    used: Floats
    allocatable: Floats
    served: frozenset[str]


def device_terms(
    listed: Sequence[tuple[PodGroupCount, tuple[PodInfo, ...]]],
    nodes: Sequence[str],
    templates: int,
    cluster: Cluster,
    empty: Cluster,
) -> DeviceTerms | None:
    """The device columns of a program; None if no movable pod needs devices.

    Args:
        listed: The movable pods.
        nodes: Names of the nodes.
        templates: T.
        cluster: The fork of a plan, with all pods.
        empty: The same without the movable pods.
    """
    book = empty.objects.known_ledger(DeviceBook)
    if book is None or not empty.has_index(ForkDevices):
        return None
    samples = {stock.template: pods[0] for stock, pods in reversed(listed)}
    wanted = {at: _wanted(pod, cluster, book) for at, pod in samples.items() if needs_devices(pod, book)}
    if not any(wanted.values()):
        return None
    count: dict[int, int] = {}
    for stock, pods in listed:
        count[stock.template] = count.get(stock.template, 0) + len(pods)
    pools = [book.slices.pools_of(empty.nodes[empty.rows[name]]) for name in nodes]
    kinds = _Kinds(pools, [each for claims in wanted.values() for each in _exact(claims)])
    requests = np.zeros((templates, len(kinds.sets)))
    for at, claims in wanted.items():
        requests[at] = kinds.requested(_exact(claims))
    in_all = sum(float(requests[at].sum()) * many for at, many in count.items())
    allocatable, used = kinds.room(pools, book, in_all)
    searched = _searched(wanted, pools, count, templates, book, nodes)
    if searched is not None:
        requests = np.hstack((requests, searched[0]))
        allocatable = np.hstack((allocatable, searched[1]))
        used = np.hstack((used, np.zeros_like(searched[1])))
    for stock, pods in listed:
        if not stock.waits:
            used[stock.node] += requests[stock.template] * len(pods)
    allocatable = np.maximum(allocatable, used)  # they do fit, in another order
    served = frozenset(name for pod in samples.values() for name in resources_of(pod.template, book))
    return DeviceTerms(requests, used, allocatable, served)


def shares_claim(pod: PodInfo, cluster: Cluster) -> bool:
    """Whether a claim that other pods share ties the pod to its node: they move together."""
    if not cluster.has_index(ForkDevices):
        return False
    ties = cluster.index(ForkDevices).ties(pod)
    return any(user.uid != pod.uid for claim in ties for user in claim.status.reserved_for)


def without_served(
    terms: DeviceTerms,
    columns: Mapping[str, int],
    pods: int,
    requests: Floats,
    used: Floats,
    allocatable: Floats,
) -> None:
    """Give nodes that lack a resource which devices provide as much of it as all pods request.

    Args:
        terms: The device columns.
        columns: The column of each resource.
        pods: Number of pods that may move.
        requests: Shape (T, R).
        used: Shape (N, R).
        allocatable: Shape (N, R); it is changed.
    """
    for name in terms.served:
        if (at := columns.get(name, columns.get(ABSENT_RESOURCES))) is not None:
            lacking = allocatable[:, at] == 0
            allocatable[lacking, at] = used[lacking, at] + pods * requests[:, at].max(initial=0.0)


def _wanted(pod: PodInfo, cluster: Cluster, book: DeviceBook) -> tuple[WantedClaim, ...]:
    """The devices to allocate for the pod in another place; none if they are not known."""
    try:
        claims = [
            wanted_claim(claim, book.classes.get)
            for claim in claims_wanted(replacement_of(pod, cluster), book, cluster.objects.pod_groups)
            if not claim.is_allocated
        ]
        if resources := resources_of(pod.template, book):
            extended = requests_for(pod.pod, resources, book.class_of_resource)
            claims.append(wanted_claim(claim_for(pod.pod, extended), book.classes.get))
    except (ClaimProblem, MissingClassError):
        return ()
    return tuple(claims)


def _exact(claims: Sequence[WantedClaim]) -> list[WantedDevices]:
    """Requests for a number of devices that are not in use."""
    return [
        request.alternatives[0]
        for claim in claims
        for request in claim.requests
        if not request.is_list and not request.alternatives[0].takes_all
        if not request.alternatives[0].is_admin
    ]


def _kind(wanted: WantedDevices) -> Kind:
    """What devices must match; the claim's own name is no part of it."""
    return tuple(Expression(each.text, "") for each in wanted.expressions)


def _devices(pools: Sequence[Pool]) -> list[PooledDevice]:
    return [each for pool in pools if pool.state is PoolState.COMPLETE for each in pool.devices]


class _Kinds:
    """Which devices are of which kind; the last kind is all kinds together."""

    def __init__(self, pools: Sequence[Sequence[Pool]], wanted: Sequence[WantedDevices]) -> None:
        self._kinds = tuple(dict.fromkeys(_kind(each) for each in wanted))
        found: list[set[DeviceID]] = [set() for _ in self._kinds]
        seen: set[DeviceID] = set()
        self._shared: set[DeviceID] = set()
        for device in (each for reached in pools for each in _devices(reached)):
            if device.id in seen:
                continue
            seen.add(device.id)
            if device.device.allow_multiple_allocations:
                self._shared.add(device.id)
            for kind, ids in zip(self._kinds, found, strict=True):
                if _is_of(kind, device):
                    ids.add(device.id)
        self.sets = [*found, set[DeviceID]().union(*found)]

    def requested(self, wanted: Sequence[WantedDevices]) -> Floats:
        """Shape (K,): the certain number of devices of each kind that these take."""
        amounts = np.zeros(len(self.sets))
        for each in wanted:
            own = self.sets[self._kinds.index(_kind(each))]
            for at, ids in enumerate(self.sets):
                if own <= ids:
                    amounts[at] += each.count
        return amounts

    def room(self, pools: Sequence[Sequence[Pool]], book: DeviceBook, no_end: float) -> tuple[Floats, Floats]:
        """Shapes (N, K): the devices of nodes, and the used ones."""
        has, used = (np.zeros((len(pools), len(self.sets))) for _ in range(2))
        for place, reached in enumerate(pools):
            for device in _devices(reached):
                for at, ids in enumerate(self.sets):
                    if device.id in ids:
                        is_shared = device.id in self._shared
                        has[place, at] += no_end if is_shared else 1.0
                        used[place, at] += not is_shared and book.taken.is_consumed(device.id)
        return has, used


def _is_of(kind: Kind, device: PooledDevice) -> bool:
    steps = StepLimit(STEPS_A_SECOND)
    try:
        return all(is_selected(each, device, steps) for each in kind)
    except AllocationError:
        return False


def _needs_search(claims: Sequence[WantedClaim], pools: Sequence[Pool]) -> bool:
    return any(claim.constraints for claim in claims) or any(
        each.device.consumes_counters or each.device.allow_multiple_allocations for each in _devices(pools)
    )


def _searched(
    wanted: Mapping[int, Sequence[WantedClaim]],
    pools: Sequence[Sequence[Pool]],
    count: Mapping[int, int],
    templates: int,
    book: DeviceBook,
    nodes: Sequence[str],
) -> tuple[Floats, Floats] | None:
    """Shapes (T, K) and (N, K): pods by the shape of their claims, and how many of each fit on a node."""
    shapes: dict[bytes, list[int]] = {}
    for at, claims in wanted.items():
        if any(_needs_search(claims, reached) for reached in pools if claims):
            shapes.setdefault(shape_of(claims), []).append(at)
    if not shapes:
        return None
    requests = np.zeros((templates, len(shapes)))
    room = np.zeros((len(nodes), len(shapes)))
    for column, members in enumerate(shapes.values()):
        requests[members, column] = 1.0
        most, claims = sum(count[at] for at in members), wanted[members[0]]
        for place, reached in enumerate(pools):
            if _needs_search(claims, reached):
                room[place, column] = _in_a_row(claims, reached, book, most, nodes[place])
            else:
                room[place, column] = most
    return requests, room


def _in_a_row(
    claims: Sequence[WantedClaim], pools: Sequence[Pool], book: DeviceBook, most: int, node: str
) -> int:
    """The number of pods with such claims that get devices one after the other, at most ``most``."""
    taken = book.taken.copied()
    for count in range(most):
        found = first_found(claims, pools, taken, is_selected)
        if found is None:
            return count
        for each in allocations(claims, found, node, str):
            taken.add(each)
    return most
