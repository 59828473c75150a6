"""DeviceBook: slices, classes, claims, taken devices and a log of changes, as the scheduler knows them.

An allocation that is decided and not written yet counts immediately (in flight). A claim that was written
counts as written until the watch brings that version or a later one.

Source: Kubernetes v1.36, ``plugins/dynamicresources/dra_manager.go``.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping
from typing import Any, Protocol, Self, TypeVar

from plimsoll.devices.extended_resources import ANNOTATION, classes_by_resource, is_left_over
from plimsoll.devices.holds import DeviceHold
from plimsoll.devices.pools import PoolKey, node_key, pool_of
from plimsoll.devices.pools.slices import Slices
from plimsoll.devices.taken import Taken
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.devices.resource_claim import AllocationResult, ResourceClaim
from plimsoll.model.kinds.devices.resource_slice import DeviceClass, ResourceSlice
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.layered_dict import halved

#: Changes of pools that are remembered; a reader of older ones looks at all nodes.
LOG_LENGTH = 4_096

#: Things that readers have derived and that are kept.
MOST_KEPT = 256


class Derived(Protocol):
    """What a reader has derived from a book and keeps there."""

    def copied(self) -> Self:
        """An independent copy, as lazily as may be."""


KeptT = TypeVar("KeptT", bound=Derived)


class DeviceBook:
    """Devices of the cluster; a ledger of its objects.

    Attributes:
        classes: Of each name.
        claims: Of each namespace and name.
        taken: What allocated claims take, and what is in flight.
        in_flight: Allocations that are decided and not written, by the claim's uid.
        holds: Devices that are held for pods which are to come, by the holder's uid.
        is_served: Whether the objects are watched and allocations can be written; else pods with claims wait.
        why_not_served: What is missing for that, in a sentence; "" where the API server has no such objects.
        now: Seconds since the epoch, for what is waited for.
        version: Rises with each change.
        shape_version: Rises when classes change, or slices that concern more than a node.
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
        self._counted: MutableMapping[str, AllocationResult] = {}  #: of each claim, by its uid
        self._log: list[tuple[int, PoolKey]] = []
        self._log_start = 0
        self._kept: dict[Hashable, Any] = {}
        self._kept_below: Mapping[Hashable, Any] = {}  #: of the book that this one is a copy of
        self._extended: dict[str, str] = {}  #: claims that were made for extended resources: owner's uid

    # -- what is there -----------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether nothing here concerns any pod."""
        return not (self._published or self.claims or self.classes)

    @property
    def slices(self) -> Slices:
        """All slices."""
        if self._slices is None:
            self._slices = Slices(self._published.values())
        return self._slices

    @property
    def has_left_over(self) -> bool:
        """Whether some claim was made for the extended resources of a pod."""
        return bool(self._extended)

    def left_over(self, pod: Pod) -> ResourceClaim | None:
        """The claim that was made for the extended resources of a pod in an earlier attempt."""
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
        """The pools of which something was taken or freed after ``version``; None: not known any more."""
        if version < self._log_start:
            return None
        found = set()
        for at, pool in reversed(self._log):
            if at <= version:
                break
            found.add(pool)
        return frozenset(found)

    # -- what happens ------------------------------------------------------------------------------------

    def set_slice(self, each: ResourceSlice) -> None:
        """A slice was published or changed."""
        before = self._published.get(each.name)
        self._published[each.name] = each
        self._exchange(before, each)

    def remove_slice(self, name: str) -> None:
        """A slice is gone."""
        before = self._published.pop(name, None)
        if before is not None:
            self._exchange(before, None)

    def set_class(self, each: DeviceClass) -> None:
        """A class was created or changed."""
        self.classes[each.name] = each
        self._reshape()

    def remove_class(self, name: str) -> None:
        """A class is gone."""
        if self.classes.pop(name, None) is not None:
            self._reshape()

    def set_claim(self, claim: ResourceClaim) -> None:
        """A claim was created or changed."""
        before = self.claims.get(claim.key)
        if before is not None and before.uid != claim.uid:
            self._count(before.uid, None)
        self.claims[claim.key] = claim
        if ANNOTATION in claim.metadata.annotations:
            owner = claim.metadata.controller
            self._extended[claim.key] = "" if owner is None else owner.uid
        self._changed_claim(claim.uid, claim.status.allocation)

    def remove_claim(self, key: str) -> None:
        """A claim is gone; what it had is free."""
        claim = self.claims.pop(key, None)
        self._extended.pop(key, None)
        if claim is not None:
            self._changed_claim(claim.uid, None)

    def allocate(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """It was decided what a claim gets; nothing is written."""
        self.in_flight[claim.uid] = allocation
        self._changed_claim(claim.uid, allocation)

    def release(self, claim: ResourceClaim) -> None:
        """The decision was written, or will not be: what the claim itself says counts."""
        if self.in_flight.pop(claim.uid, None) is None:
            return
        known = self.claims.get(claim.key)
        is_known = known is not None and known.uid == claim.uid
        self._changed_claim(claim.uid, known.status.allocation if known is not None and is_known else None)

    def hold(self, hold: DeviceHold) -> None:
        """Hold devices for a pod that is to come; what was held for it before is free."""
        self.drop(hold.uid)
        self.holds[hold.uid] = hold
        self.version += 1
        for each in hold.given.values():
            self.taken.add(each)
            self._note(each)

    def drop(self, uid: str) -> DeviceHold | None:
        """Hold nothing any more for a holder; what was held, or None."""
        hold = self.holds.pop(uid, None)
        if hold is not None:
            self.version += 1
            for each in hold.given.values():
                self.taken.remove(each)
                self._note(each)
        return hold

    def open_to(self, pod: Pod) -> tuple[DeviceHold, ...]:
        """What is held for the pod itself, for pods of a lower priority, and for claims that it names."""
        named = {f"{pod.namespace}/{each.resource_claim_name}" for each in pod.spec.resource_claims}
        found = []
        for each in self.holds.values():
            if each.uid == pod.uid or each.priority < pod.priority:
                found.append(each)
            elif shared := {key: each.given[key] for key in named & each.given.keys()}:
                found.append(each._replace(given=shared))
        return tuple(found)

    def serve(self, *, is_served: bool, why_not: str = "") -> None:
        """The objects are watched from now on, or not yet, or no longer."""
        self.is_served, self.why_not_served = is_served, why_not
        self._reshape()

    def kept(self, key: Hashable, make: Callable[[], KeptT]) -> KeptT:
        """What readers have derived from the book under that key; copies begin with copies of it."""
        found = self._kept.pop(key, None)
        if found is None:
            below = self._kept_below.get(key)
            found = make() if below is None else below.copied()
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        self._kept[key] = found  # the one that was used last is forgotten last
        kept: KeptT = found
        return kept

    def _changed_claim(self, uid: str, allocation: AllocationResult | None) -> None:
        self.version += 1
        self._count(uid, self.in_flight.get(uid, allocation))

    def _count(self, uid: str, allocation: AllocationResult | None) -> None:
        """An allocation takes the place of the one that was counted for a claim."""
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
        """A slice is another one; the nodes that it does not concern keep their answers."""
        if self._slices is None:
            self._reshape()
            return
        if self._shares_slices:
            self._slices, self._shares_slices = self._slices.copied(), False
        nodes = self._slices.exchange(old, new)
        self.version += 1
        if nodes is None:
            self.shape_version += 1
            return
        pools = {pool_of(each) for each in (old, new) if each is not None}
        self._log_changes(pools | {node_key(name) for name in nodes})

    def _reshape(self) -> None:
        self._by_resource = None
        self.version += 1
        self.shape_version += 1

    def copied(self) -> "DeviceBook":
        """An independent copy, at the cost of what has changed since others were made."""
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
