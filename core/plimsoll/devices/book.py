"""The scheduler's book of slices, classes, claims and taken devices, with a log of changes.

A decided allocation that is not written yet counts immediately (in flight). A written claim counts as written
until the watch delivers that version or a later one.

Source: Kubernetes v1.36, ``plugins/dynamicresources/dra_manager.go``.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping
from typing import Any, Protocol, Self, TypeVar

from plimsoll.devices import cel
from plimsoll.devices.extended_resources import ANNOTATION, classes_by_resource, is_left_over
from plimsoll.devices.holds import DeviceHold
from plimsoll.devices.pod_claims import shared_keys
from plimsoll.devices.pools import PoolKey, node_key, pool_of
from plimsoll.devices.pools.slices import Slices
from plimsoll.devices.taken import Taken
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.heavy_objects import is_heavy
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.model.layered_dict import halved

#: Number of logged changes of pools; a reader of older ones reviews all nodes.
LOG_LENGTH = 4_096

#: Maximum number of derived objects that are kept, and of their rows together; the fewest, however many rows.
MOST_KEPT, MOST_ROWS, FEWEST_KEPT = 256, 400_000, 16


class Derived(Protocol):
    """An object that a reader has derived from a book and keeps there."""

    def copied(self) -> Self:
        """An independent copy, as lazily as may be."""


KeptT = TypeVar("KeptT", bound=Derived)


class DeviceBook:
    """Devices of the cluster; a ledger of its objects.

    Attributes:
        classes: Classes, keyed by name.
        claims: Claims by namespace and name.
        taken: Devices of allocated claims and of allocations in flight.
        in_flight: Decided allocations that are not written, by the claim's uid.
        holds: Devices that are held for future pods, by the holder's uid.
        is_served: Whether the objects are watched and allocations can be written; otherwise pods with claims
            wait.
        why_not_served: Why not, in a sentence; "" if the API server has no such objects.
        now: Seconds since the epoch, for timeouts.
        version: Increases with each change.
        shape_version: Increases when classes change, or slices that concern more than one node.
    """

    def __init__(self) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self.claims: MutableMapping[str, ResourceClaim] = {}
        self.taken = Taken()
        self.in_flight: dict[str, AllocationResult] = {}
        self.holds: dict[str, DeviceHold] = {}
        self.is_served = False
        self.why_not_served = ""
        self.now = 0.0
        self.version = self.shape_version = 0
        self._published: MutableMapping[str, ResourceSlice] = {}
        self._slices: Slices | None = None
        self._shares_slices = False
        self._by_resource: Mapping[str, DeviceClass] | None = None
        self._counted: MutableMapping[str, AllocationResult] = {}  #: by the claim's uid
        self._log: list[tuple[int, PoolKey]] = []
        self._log_start = 0
        self._kept: dict[Hashable, Any] = {}
        self._kept_below: Mapping[Hashable, Any] = {}  #: of the book that was copied
        #: the pod that searches, its claims, and what it derived
        self._kept_for: tuple[str, frozenset[str], dict[Hashable, Any]] = "", frozenset(), {}
        self._extended: dict[str, str] = {}  #: claims for extended resources: owner's uid

    # -- reads -------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether the book has nothing that concerns a pod."""
        return not (self._published or self.claims or self.classes)

    @property
    def slices(self) -> Slices:
        """All slices."""
        if self._slices is None:
            self._slices = Slices(self._published.values())
        return self._slices

    @property
    def has_left_over(self) -> bool:
        """Whether any claim was created for the extended resources of a pod."""
        return bool(self._extended)

    def left_over(self, pod: Pod) -> ResourceClaim | None:
        """The claim that an earlier attempt created for the extended resources of a pod."""
        for key, owner in self._extended.items():
            if owner == pod.uid and is_left_over(self.claims[key], pod):
                return self.claims[key]
        return None

    def class_of_resource(self, resource: str) -> DeviceClass | None:
        """The class that serves an extended resource."""
        if self._by_resource is None:
            self._by_resource = classes_by_resource(self.classes.values())
        return self._by_resource.get(resource)

    def changed_pools(self, version: int) -> frozenset[PoolKey] | None:
        """The pools whose devices were taken or freed after ``version``; None: the log is too short."""
        if version < self._log_start:
            return None
        found = set()
        for at, pool in reversed(self._log):
            if at <= version:
                break
            found.add(pool)
        return frozenset(found)

    # -- writes ------------------------------------------------------------------------------------------

    def set_slice(self, each: ResourceSlice) -> None:
        """Add or update a slice."""
        before = self._published.get(each.name)
        self._published[each.name] = each
        self._exchange(before, each)
        if before is not None:
            self._let_go(before)

    def remove_slice(self, name: str) -> None:
        """Remove a slice."""
        before = self._published.pop(name, None)
        if before is not None:
            self._exchange(before, None)
            self._let_go(before)

    def set_class(self, each: DeviceClass) -> None:
        """Add or update a class."""
        self.classes[each.name] = each
        self._reshape()

    def remove_class(self, name: str) -> None:
        """Remove a class."""
        if self.classes.pop(name, None) is not None:
            self._reshape()

    def set_claim(self, claim: ResourceClaim) -> None:
        """Add or update a claim."""
        before = self.claims.get(claim.key)
        if before is not None and before.uid != claim.uid:
            self._count(before.uid, None)
        self.claims[claim.key] = claim
        if ANNOTATION in claim.metadata.annotations:
            owner = claim.metadata.controller
            self._extended[claim.key] = "" if owner is None else owner.uid
        self._changed_claim(claim.uid, claim.status.allocation)
        if before is not None:
            self._let_go(before)

    def remove_claim(self, key: str) -> None:
        """Remove a claim; its devices are free."""
        claim = self.claims.pop(key, None)
        self._extended.pop(key, None)
        if claim is not None:
            self._changed_claim(claim.uid, None)
            if key in self._kept_for[1]:
                self._kept_for = "", frozenset(), {}
            self._let_go(claim)

    def allocate(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Record the decided allocation of a claim; nothing is written."""
        self.in_flight[claim.uid] = allocation
        self._changed_claim(claim.uid, allocation)

    def release(self, claim: ResourceClaim) -> None:
        """Drop a decided allocation that was written, or will not be: then the claim itself counts."""
        if self.in_flight.pop(claim.uid, None) is None:
            return
        known = self.claims.get(claim.key)
        is_known = known is not None and known.uid == claim.uid
        self._changed_claim(claim.uid, known.status.allocation if known is not None and is_known else None)

    def hold(self, hold: DeviceHold) -> None:
        """Hold devices for a future pod; an earlier hold for it ends."""
        self.drop(hold.uid)
        self.holds[hold.uid] = hold
        self.version += 1
        for each in hold.given.values():
            self.taken.add(each)
            self._note(each)

    def drop(self, uid: str) -> DeviceHold | None:
        """Release the holder's devices; returns the hold, or None."""
        hold = self.holds.pop(uid, None)
        if hold is not None:
            self.version += 1
            for each in hold.given.values():
                self.taken.remove(each)
                self._note(each)
        return hold

    def open_to(self, pod: Pod) -> tuple[DeviceHold, ...]:
        """Devices held for the pod itself, for pods of a lower priority, and for claims that it shares."""
        named = set(shared_keys(pod, self.claims))
        found = []
        for each in self.holds.values():
            if each.uid == pod.uid or each.priority < pod.priority:
                found.append(each)
            elif shared := {key: each.given[key] for key in named & each.given.keys()}:
                found.append(each._replace(given=shared))
        return tuple(found)

    def serve(self, *, is_served: bool, why_not: str = "") -> None:
        """Record whether the objects are watched, and why not."""
        self.is_served, self.why_not_served = is_served, why_not
        self._reshape()

    def kept(self, key: Hashable, make: Callable[[], KeptT], rows: int = 1) -> KeptT:
        """The object that a reader derived under that key; copies of the book start with copies of it.

        Args:
            key: Names the object.
            make: Derives it.
            rows: The number of rows that it has.
        """
        found = self._kept.pop(key, None)
        if found is None:
            below = self._kept_below.get(key)
            found = make() if below is None else below.copied()
            most = max(FEWEST_KEPT, min(MOST_KEPT, MOST_ROWS // max(1, rows)))
            for oldest in list(self._kept)[: len(self._kept) - most + 1]:
                del self._kept[oldest]
        self._kept[key] = found  # the most recently used one is dropped last
        kept: KeptT = found
        return kept

    def kept_for(self, pod: str, claims: Iterable[str], key: Hashable, make: Callable[[], KeptT]) -> KeptT:
        """The same for an object that is too large to be kept.

        It is kept until another pod, by uid, has one, or one of the claims, by key, is deleted.
        """
        if self._kept_for[0] != pod:
            self._kept_for = pod, frozenset(claims), {}
        objects = self._kept_for[2]
        if key not in objects:
            objects[key] = make()
        kept: KeptT = objects[key]
        return kept

    def _let_go(self, gone: ResourceClaim | ResourceSlice) -> None:
        """Release a large object that has gone or was replaced: layers that copies share would keep it."""
        if isinstance(gone, ResourceClaim):
            cel.let_go(gone)
        if not is_heavy(gone):
            return
        if isinstance(gone, ResourceSlice):
            self._published = dict(self._published.items())
        else:
            self.claims, self._counted = dict(self.claims.items()), dict(self._counted.items())

    def _changed_claim(self, uid: str, allocation: AllocationResult | None) -> None:
        self.version += 1
        self._count(uid, self.in_flight.get(uid, allocation))

    def _count(self, uid: str, allocation: AllocationResult | None) -> None:
        """Replace the counted allocation of a claim."""
        before = self._counted.get(uid)
        if before == allocation:
            return
        if before is not None:
            self.taken.remove(before)
            self._note(before)
        if allocation is None:
            self._counted.pop(uid, None)
            return
        self._counted[uid] = allocation
        self.taken.add(allocation)
        self._note(allocation)

    def _note(self, allocation: AllocationResult) -> None:
        self._log_changes({PoolKey(each.driver, each.pool) for each in allocation.devices.results})

    def _log_changes(self, pools: Iterable[PoolKey]) -> None:
        self._log += [(self.version, pool) for pool in pools]
        if len(self._log) > 2 * LOG_LENGTH:
            self._log = self._log[-LOG_LENGTH:]
            self._log_start = self._log[0][0]

    def _exchange(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Replace a slice; nodes that it does not concern keep their results."""
        if self._slices is None:
            self._reshape()
            return
        if self._shares_slices:
            self._slices, self._shares_slices = self._slices.copied(), False
        nodes = self._slices.exchange(old, new)
        self.version += 1
        if nodes is None:
            self.shape_version += 1
            self._kept, self._kept_below = {}, {}
            return
        pools = {pool_of(each) for each in (old, new) if each is not None}
        self._log_changes(pools | {node_key(name) for name in nodes})

    def _reshape(self) -> None:
        self._by_resource = None
        self._kept, self._kept_below = {}, {}  # what they hold of classes that have gone is void
        self.version += 1
        self.shape_version += 1

    def copied(self) -> "DeviceBook":
        """An independent copy, at the cost of the changes since earlier copies."""
        twin = DeviceBook()
        self.claims, twin.claims = halved(self.claims)
        self._published, twin._published = halved(self._published)
        self._counted, twin._counted = halved(self._counted)
        twin.classes, twin.holds = dict(self.classes), dict(self.holds)
        twin.taken, twin.in_flight = self.taken.copied(), dict(self.in_flight)
        twin.version, twin.shape_version = self.version, self.shape_version
        twin._slices, twin._by_resource = self._slices, self._by_resource
        self._shares_slices = twin._shares_slices = True
        twin._log, twin._log_start = list(self._log), self._log_start
        twin._extended = dict(self._extended)
        twin._kept_below = {**self._kept_below, **{key: each.copied() for key, each in self._kept.items()}}
        twin.is_served, twin.why_not_served, twin.now = self.is_served, self.why_not_served, self.now
        return twin


def is_served_by_devices(resource: str, snapshot: Snapshot) -> bool:
    """Whether a device class serves an extended resource."""
    book = snapshot.objects.known_ledger(DeviceBook)
    return book is not None and book.class_of_resource(resource) is not None
