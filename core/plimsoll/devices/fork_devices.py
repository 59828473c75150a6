"""Moves devices with the pods of a plan's fork.

A pod that leaves the fork frees its devices, as the controller of claims does: a claim that was created for
the pod is deleted with it, another one is deallocated when the last pod that uses it has left. A pod or
stand-in that enters the fork gets devices on its node. A pod that returns gets its earlier devices.

Forks without devices have no such index. The cluster itself never has one: its claims show which devices are
taken.
"""

from collections.abc import Iterable
from typing import NamedTuple
from weakref import ReferenceType, ref

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.holds import DeviceHold, are_free
from plimsoll.devices.pod_claims import shared_keys, used_claims
from plimsoll.devices.pod_devices import held_for, needs_devices
from plimsoll.devices.search_limits import STEPS_A_SECOND
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import FollowsFork
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.resource_claim import AllocationResult, Consumer, ResourceClaim
from plimsoll.model.selectors import NAME_FIELD

#: A priority that no pod exceeds: devices that a plan has assigned stay assigned.
FIRM = 2**31 - 1

#: Maximum search steps on one node, and seconds that drivers have: the plugin's own defaults.
MOST_STEPS, TIMEOUT_S = 10 * STEPS_A_SECOND, 600.0


class ForkDevices(FollowsFork):
    """The devices of pods that leave and enter a fork."""

    def __init__(self, cluster: ReferenceType[Cluster]) -> None:
        self._cluster = cluster
        self._left: dict[str, _Had] = {}  #: devices of pods that have left, by uid
        self._given: dict[str, DeviceHold] = {}  #: devices of pods that have entered, by uid
        self._former: dict[str, DeviceHold] = {}  #: devices of pods that entered and have left again, by uid

    def add(self, pod: PodInfo, row: int) -> None:
        """Assign devices to a pod that enters: its earlier ones, or new ones."""
        cluster, book = self._both()
        if cluster is None or book is None or pod.uid in book.holds or not needs_devices(pod, book):
            return
        node = cluster.nodes[row].name
        had = self._left.pop(pod.uid, None)
        if had is not None and had.node == node:
            for key, allocation in had.allocations:
                _use(book, key, pod, allocation)
            return
        found = self._former.pop(pod.uid, None)
        if found is None or found.node != node or not are_free(book.taken, found):
            found = held_for(pod, Snapshot(cluster), row, MOST_STEPS, TIMEOUT_S)
        if found is not None:
            self._given[pod.uid] = found
            _give(book, pod, found)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Free the devices of a pod that leaves, as soon as no other pod uses them."""
        cluster, book = self._both()
        if cluster is None or book is None or not needs_devices(pod, book):
            return
        hold, given = book.drop(pod.uid), self._given.pop(pod.uid, None)
        if former := given or hold:
            self._former[pod.uid] = former
        had = []
        for claim in used_claims(pod.pod, book.claims, book.left_over(pod.pod)):
            allocation = claim.status.allocation
            if allocation is None or all(each.uid != pod.uid for each in claim.status.reserved_for):
                continue
            had.append((claim.key, allocation))
            users = tuple(each for each in claim.status.reserved_for if each.uid != pod.uid)
            book.set_claim(claim.allocated(allocation if users else None, users))
        if former is None and pod.stands_in_for is None:
            self._left[pod.uid] = _Had(cluster.nodes[row].name, tuple(had))

    def ties(self, pod: PodInfo) -> tuple[ResourceClaim, ...]:
        """Allocated claims that outlive the pod and tie it to its node: those it names, and its group's."""
        _, book = self._both()
        if book is None:
            return ()
        found = map(book.claims.get, shared_keys(pod.pod, book.claims))
        return tuple(claim for claim in found if claim is not None and _is_on_one_node(claim))

    def release(self, keys: Iterable[str]) -> tuple[ResourceClaim, ...]:
        """Deallocate claims whose users are all about to leave; returns their allocations.

        Devices that another holder is to receive in exchange are assigned to it already.
        """
        _, book = self._both()
        released = []
        for key in keys:
            claim = None if book is None else book.claims.get(key)
            if book is None or claim is None:
                continue
            released.append(claim)
            held = next(
                (each for each in book.holds.values() if key in each.former and key in each.given), None
            )
            if held is None:
                book.set_claim(claim.allocated(None))
            else:
                user = Consumer(resource="pods", uid=held.uid)
                book.set_claim(claim.allocated(held.given[key], (user,)))
        return tuple(released)

    def restore(self, released: Iterable[ResourceClaim]) -> None:
        """Restore released claims after all of their users have returned."""
        _, book = self._both()
        for claim in released if book is not None else ():
            if book is not None:
                book.set_claim(claim)

    def _both(self) -> tuple[Cluster | None, DeviceBook | None]:
        cluster = self._cluster()
        return cluster, None if cluster is None else cluster.objects.known_ledger(DeviceBook)

    def fork(self) -> "ForkDevices":
        """An independent copy, which follows the same cluster until ``follow`` names its own."""
        twin = ForkDevices(self._cluster)
        twin._left = dict(self._left)
        twin._given, twin._former = dict(self._given), dict(self._former)
        return twin

    def follow(self, cluster: object) -> None:
        """Follow this fork from now on."""
        assert isinstance(cluster, Cluster)
        self._cluster = ref(cluster)


class _Had(NamedTuple):
    """The allocations of a pod's claims, by key, and the pod's node."""

    node: str
    allocations: tuple[tuple[str, AllocationResult], ...]


def _give(book: DeviceBook, pod: PodInfo, hold: DeviceHold) -> None:
    """Book a pod's devices: in its own claims, or as holds if these do not exist yet."""
    own = {claim.key for claim in used_claims(pod.pod, book.claims, None)}
    if pod.stands_in_for is not None:
        own.intersection_update(shared_keys(pod.pod, book.claims))
    for key in sorted(own):
        allocation = book.claims[key].status.allocation or hold.given.get(key)
        if allocation is not None:
            _use(book, key, pod, allocation)
    rest = {key: each for key, each in hold.given.items() if key not in own}
    if rest:
        book.hold(hold._replace(priority=FIRM, given=rest))


def _is_on_one_node(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return False
    terms = allocation.node_selector.node_selector_terms
    return any(each.key == NAME_FIELD for term in terms for each in term.match_fields)


def _use(book: DeviceBook, key: str, pod: PodInfo, allocation: AllocationResult) -> None:
    """Let a pod use a claim, and allocate the claim if it is not."""
    claim = book.claims.get(key)
    if claim is not None:
        users = (*claim.status.reserved_for, Consumer(resource="pods", name=pod.name, uid=pod.uid))
        book.set_claim(claim.allocated(claim.status.allocation or allocation, users))


def follow_devices(fork: Cluster) -> Cluster:
    """Let devices follow the pods of a fork from now on; returns the fork."""
    book = fork.objects.known_ledger(DeviceBook)
    if book is not None and book.is_served and not book.is_empty and not fork.has_index(ForkDevices):
        fork.adopt(ForkDevices(ref(fork)))
    return fork
