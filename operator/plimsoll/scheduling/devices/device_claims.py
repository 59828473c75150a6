"""Books devices for claims, writes the claims, and waits until the watch confirms them.

Devices that Reserve decided on count as taken (in flight) until the watch shows the written claim, or until
it is certain that nothing was written. A pod is bound only after the watch has shown all of its claims. The
watch shows writes in order, so by then every earlier allocation of another scheduler is known. If that one
has a device of this pod, this pod gives way. Two processes that do so never allocate a device twice.

Source: kube-scheduler v1.36, ``dynamicresources/dynamicresources.go`` (``Unreserve``, ``PreBind``),
``dra_manager.go``. Differs: upstream binds without waiting for the watch.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct, field

from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, Synced, WatchEvent
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking
from plimsoll.devices.pod_claims import given_up, unprepared, user_of
from plimsoll.framework import SUCCESS, ActionType, ClusterEvent, EventResource, PodInfo, Status, error
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.gang_members import GangMembers
from plimsoll.model.kinds.pod_group import core_key
from plimsoll.model.kinds.resource_claim import (
    AllocationResult,
    Consumer,
    ResourceClaim,
    ResourceClaimStatus,
)
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.resource_claims import ClaimWriter
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.devices.claim_writes import ClaimNotWritten, ClaimWrite, is_reserved_for
from plimsoll.scheduling.devices.contested import contested
from plimsoll.scheduling.devices.device_waits import DeviceWaits, WaitOutcome
from plimsoll.scheduling.devices.extended_claims import ExtendedClaims
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Retries of writes that undo something.
UNDOING = RetryPolicy((0.2, 1.0, 5.0), repeats=OPEN_OR_CONFLICT)

T = TypeVar("T")

#: The claims' resource name in watches.
CLAIMS = "resourceclaims"


class _Attempt(Struct, eq=False):
    """The claim writes of one pod.

    Attributes:
        users: The pod, or its group, by the index of the booking: whom the claim is reserved for.
        written: The claims as they were written, by the index of their booking.
        is_contested: Whether another scheduler has allocated one of the devices.
    """

    pod: PodInfo
    users: dict[int, Consumer] = field(default_factory=dict)
    written: dict[int, ResourceClaim] = field(default_factory=dict)
    is_called_off: bool = False
    is_contested: bool = False
    work: asyncio.Task[Status] | None = None


class DeviceClaims:
    """Books and binds devices; one per process.

    Args:
        cluster: Its objects hold the book of devices.
        freed: Receives devices that become free without a write, for waiting pods.

    Attributes:
        is_listing: Whether the watch of claims is in the middle of a list, which has no order.
    """

    def __init__(
        self,
        cluster: Cluster,
        writer: ClaimWriter,
        clock: Clock,
        observer: Observer,
        recorder: EventRecorder,
        freed: Callable[[ClusterEvent], None],
    ) -> None:
        self.is_listing = False
        self._cluster = cluster
        self._writer = writer
        self._clock = clock
        self._observer = observer
        self._freed = freed
        self._extended = ExtendedClaims(writer, clock, observer)
        self._waits = DeviceWaits(recorder, clock, observer)
        self._changed = Signal()
        self._written: dict[str, int] = {}  #: resource versions of written claims in flight, by uid
        self._attempts: dict[str, _Attempt] = {}  #: by the pod's uid
        self._freeing: list[str] = []  #: uids of claims that are being deallocated
        #: Tasks that undo bookings, by the pod's uid, while they run.
        self._undoing: WeakValueDictionary[str, asyncio.Task[None]] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def book(self) -> DeviceBook | None:
        """The book of devices, if it has anything in it."""
        book = self._cluster.objects.known_ledger(DeviceBook)
        return None if book is None or not book.is_served else book

    def set_time(self) -> None:
        """Pass the present time to the book, so that drivers' deadlines are current."""
        self._cluster.objects.ledger(DeviceBook).now = self._clock.now()

    # -- watch events --------------------------------------------------------------------------------

    def observe(self, event: WatchEvent) -> None:
        """Update the attempts after the watch has shown a claim; the mirror has it already."""
        match event:
            case ObjectAdded(ResourceClaim() as claim) | ObjectUpdated(_, ResourceClaim() as claim):
                self.set_time()
                written = self._written.get(claim.uid)
                if written is not None and version_of(claim) >= written:
                    self._release(claim)
                self._changed.notify()
            case ObjectDeleted(ResourceClaim() as claim):
                if claim.uid in self._written:
                    self._release(claim)
                self._changed.notify()
            case Synced(kind) if kind == CLAIMS:
                self._changed.notify()
            case _:
                return

    def _release(self, claim: ResourceClaim) -> None:
        self._written.pop(claim.uid, None)
        self._cluster.objects.ledger(DeviceBook).release(claim)

    # -- Reserve -------------------------------------------------------------------------------------

    def share_id(self) -> str:
        """A new UUID."""
        return str(uuid.uuid4())

    def assume(self, bookings: Sequence[Booking]) -> str:
        """Count the devices as taken: all of them or, if one was taken since the decision, none."""
        book = self._cluster.objects.ledger(DeviceBook)
        done: list[ResourceClaim] = []
        for each in bookings:
            if each.allocation is None:
                continue
            claim = _held(each)
            problem = f"resource claim {claim.key} is in the process of being allocated"
            if claim.uid not in book.in_flight:
                book.allocate(claim, each.allocation)
                done.append(claim)
                problem = contested(book, _with(claim, each.allocation))
            if problem:
                for taken in done:
                    book.release(taken)
                return problem
        return ""

    def forget(self, pod: PodInfo, bookings: Sequence[Booking]) -> None:
        """Undo the bookings and the writes for the pod.

        Waits for writes under way; their devices stay taken until the outcome is known.
        """
        attempt = self._attempts.pop(pod.uid, None)
        if attempt is None:
            self._drop(bookings)
            attempt = _Attempt(pod)
            if not self._reserved(attempt, bookings):
                return
        attempt.is_called_off = True
        self._changed.notify()
        self._undoing[pod.uid] = self._start(self._take_back(attempt, bookings))

    def settled(self, pod: PodInfo) -> None:
        """Record that the pod is bound; nothing is undone any more."""
        self._attempts.pop(pod.uid, None)

    # -- PreBind -------------------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node: str, bookings: Sequence[Booking], timeout_s: float) -> Status:
        """Write the bookings, and wait until the watch has shown them and the devices are prepared."""
        attempt = self._attempts[pod.uid] = _Attempt(pod)
        attempt.work = asyncio.get_running_loop().create_task(self._write(attempt, bookings))
        status = await asyncio.shield(attempt.work)  # a write completes even if the pod is cancelled
        if not status.is_success:
            return status
        wait = self._waits.begin(pod, node, attempt.written.values())
        outcome, problem = await self._until_ready(attempt, bookings, timeout_s)
        self._waits.end(wait, outcome)
        if attempt.is_contested:
            self._observer.devices_contested(pod.pod.spec.scheduler_name)
        return error(problem) if problem else SUCCESS

    async def _until_ready(
        self, attempt: _Attempt, bookings: Sequence[Booking], timeout_s: float
    ) -> tuple[WaitOutcome, str]:
        """Wait until the watch has shown the claims and the devices are prepared; returns why not."""
        deadline = self._clock.monotonic() + timeout_s
        while True:
            seen = self._changed.count
            problem, waiting = self._problem(attempt, bookings)
            if problem or not waiting:
                return WaitOutcome.FAILURE if problem else WaitOutcome.SUCCESS, problem
            remaining_s = deadline - self._clock.monotonic()
            if remaining_s <= 0:
                return WaitOutcome.TIMEOUT, waiting
            await first_of(self._changed.wait(seen), self._clock.sleep(remaining_s))

    async def _write(self, attempt: _Attempt, bookings: Sequence[Booking]) -> Status:
        if (undoing := self._undoing.get(attempt.pod.uid)) is not None:
            await asyncio.wait((undoing,))  # otherwise it would undo what is written now
        try:
            for place, booking in enumerate(bookings):
                user = attempt.users[place] = self._user(booking.claim, attempt.pod)
                known = await self._known(attempt, booking)
                if booking.extended is not None:
                    known = await self._extended.created(attempt.pod.pod, booking.claim)
                    self._rename(booking, known)
                    attempt.written[place] = known
                elif known is None or known.uid != booking.claim.uid:
                    return error(f"claim {booking.claim.key} got deleted in the meantime")
                elif gone := self._gone(user, attempt.pod):
                    return error(gone)
                write = ClaimWrite(self._writer, self._clock, user, lambda: attempt.is_called_off)
                written = attempt.written[place] = await write.bound(booking, known)
                if booking.allocation is not None:
                    self._await(written)
                if booking.extended is not None:
                    await self._extended.mapped(attempt.pod.pod, written, booking.extended)
        except ClaimNotWritten as problem:
            return error(str(problem))
        return SUCCESS

    async def _known(self, attempt: _Attempt, booking: Booking) -> ResourceClaim | None:
        """The claim as the watch has shown it; waits for a gang sibling that allocates it or frees it."""
        book = self._cluster.objects.ledger(DeviceBook)
        while True:
            seen, known = self._changed.count, book.claims.get(booking.claim.key)
            is_shared = booking.allocation is None and known is not None and not known.is_allocated
            awaits_sibling = is_shared and known is not None and known.uid in book.in_flight
            if attempt.is_called_off or not (awaits_sibling or booking.claim.uid in self._freeing):
                return known
            await self._changed.wait(seen)

    def _rename(self, booking: Booking, created: ResourceClaim) -> None:
        """Put a claim for extended resources in flight under the name that the server gave it."""
        if booking.allocation is not None:
            book = self._cluster.objects.ledger(DeviceBook)
            book.release(_held(booking))
            book.allocate(created, booking.allocation)

    def _await(self, written: ResourceClaim) -> None:
        """Record a written claim in flight; the watch may have shown it before the response arrived."""
        self._written[written.uid] = version_of(written)
        known = self._cluster.objects.ledger(DeviceBook).claims.get(written.key)
        if known is not None and known.uid == written.uid and version_of(known) >= version_of(written):
            self._release(known)

    def _problem(self, attempt: _Attempt, bookings: Sequence[Booking]) -> tuple[str, str]:
        """Why the pod can never be bound, and why it cannot be bound yet; "" for no reason."""
        book, waiting = self._cluster.objects.ledger(DeviceBook), ""
        for place in range(len(bookings)):
            written = attempt.written[place]
            known = book.claims.get(written.key)
            if known is None and bookings[place].extended is not None and written.uid in self._written:
                waiting = f"claim {written.key}: the watch has not shown what was written"
                continue
            if known is None or known.uid != written.uid:
                return f"claim {written.key} got deleted in the meantime", ""
            if version_of(known) < version_of(written) or self.is_listing:
                waiting = f"claim {written.key}: the watch has not shown what was written"
                continue
            if gone := self._gone(attempt.users[place], attempt.pod):
                return gone, ""
            if not is_reserved_for(known, attempt.users[place]):
                return f"claim {written.key} got deallocated elsewhere in the meantime", ""
            if rival := contested(book, known):
                attempt.is_contested = True
                return rival, ""
            failed, missing = unprepared(known)
            if failed:
                return failed, ""
            waiting = waiting or missing
        return "", waiting

    # -- undoing -------------------------------------------------------------------------------------

    def _drop(self, bookings: Sequence[Booking]) -> None:
        """Free devices whose write did not happen or will not be shown, as far as is known."""
        book = self._cluster.objects.ledger(DeviceBook)
        for each in bookings:
            held = _held(each)
            if each.allocation is None or held.uid not in book.in_flight or held.uid in self._written:
                continue
            book.release(held)
            self._changed.notify()
            allocated, objects = _with(held, each.allocation), self._cluster.objects.read_only
            self._freed(
                ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.UPDATE, allocated, held, objects)
            )

    def _reserved(self, attempt: _Attempt, bookings: Sequence[Booking]) -> bool:
        """Record the pod's reservations as the watch shows them; returns whether there are any."""
        book = self._cluster.objects.ledger(DeviceBook)
        for place, each in enumerate(bookings):
            known = book.claims.get(each.claim.key)
            if known is None or known.uid != each.claim.uid:
                continue
            user = attempt.users[place] = self._user(known, attempt.pod)
            if is_reserved_for(known, user):
                attempt.written[place] = known
        return bool(attempt.written)

    async def _take_back(self, attempt: _Attempt, bookings: Sequence[Booking]) -> None:
        if attempt.work is not None:
            await asyncio.wait((attempt.work,))
        created = [place for place in attempt.written if bookings[place].extended is not None]
        for place in created:
            self._rename_back(attempt.written[place])
        self._drop(bookings)
        for place, claim in attempt.written.items():
            if place in created:
                self._say(f"deleting resource claim {claim.key}", await self._extended.deleted(claim))
            elif attempt.is_contested:
                await self._deallocate(claim, attempt.pod)
            elif not attempt.users[place].is_group:  # other members may use it
                await self._unreserve(claim, attempt.pod)

    def _rename_back(self, created: ResourceClaim) -> None:
        """Remove a deleted claim from those in flight, unless the watch has yet to show its allocation."""
        if created.uid not in self._written:
            self._cluster.objects.ledger(DeviceBook).release(created)

    async def _unreserve(self, claim: ResourceClaim, pod: PodInfo) -> None:
        async def send() -> WriteResult:
            return (await self._writer.unreserve(claim, pod.pod)).result

        self._say(f"releasing resource claim {claim.key}", await retry(send, UNDOING, self._clock))

    def _user(self, claim: ResourceClaim, pod: PodInfo) -> Consumer:
        """For whom a claim of the pod is reserved."""
        return user_of(claim, pod.pod, self._cluster.objects.pod_groups)

    def _gone(self, user: Consumer, pod: PodInfo) -> str:
        """That the pod's group, the user of a claim, has gone or was made again; "" if not."""
        group = self._cluster.objects.pod_groups.get(core_key(pod.pod)) if user.is_group else None
        is_gone = user.is_group and (group is None or group.uid != user.uid)
        return f"PodGroup {pod.namespace}/{user.name} got deleted in the meantime" if is_gone else ""

    async def _deallocate(self, claim: ResourceClaim, pod: PodInfo) -> str:
        """Deallocate a claim that no other pod has reserved; returns why that failed, or "".

        A group's claim is deallocated while no other member has a node; members that get one meanwhile wait
        for the outcome (:meth:`_known`).
        """
        found = claim

        async def send() -> WriteResult:
            nonlocal found
            groups, members = self._cluster.objects.pod_groups, self._cluster.index(GangMembers)
            mine = given_up(pod.pod, groups, members)
            others = [each for each in found.status.reserved_for if each.uid not in mine]
            if others or not found.is_allocated:
                return WriteResult(WriteOutcome.DONE)
            answer = (await self._writer.write_status(found, ResourceClaimStatus())).result
            if answer.verdict in OPEN_OR_CONFLICT:
                read = await self._writer.read(found)
                found = read.claim or found
                answer = answer if read.result.verdict is not WriteOutcome.GONE else read.result
            return answer

        self._freeing.append(claim.uid)
        try:
            answer = await retry(send, UNDOING, self._clock)
        finally:
            self._freeing.remove(claim.uid)
            self._changed.notify()
        return self._say(f"deallocating resource claim {claim.key}", answer)

    def deallocate(self, claim: ResourceClaim, pod: PodInfo) -> Awaitable[str]:
        """Deallocate an unused claim that keeps the pod from every node; returns why that failed, or ""."""
        return self._start(self._deallocate(claim, pod))

    def delete(self, claim: ResourceClaim) -> Awaitable[str]:
        """Delete the claim for extended resources of an earlier attempt; returns why that failed, or ""."""

        async def delete() -> str:
            return self._say(f"deleting resource claim {claim.key}", await self._extended.deleted(claim))

        return self._start(delete())

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._observer.failed("taking back devices", repr(task.exception()))

    def _say(self, what: str, answer: WriteResult) -> str:
        """Report a failed write; returns the sentence about it, "" after a success."""
        if not answer.is_failure or answer.verdict is WriteOutcome.GONE:
            return ""
        self._observer.failed(what, answer.message)
        return f"{what}: {answer.message}"


def version_of(claim: ResourceClaim) -> int:
    """The resource version as a number, which grows with each write of any claim; 0 without a claim."""
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _with(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    """The claim with this allocation."""
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)


def _held(booking: Booking) -> ResourceClaim:
    """The claim that devices are in flight for; one that is still to be created has the uid of its pod."""
    claim = booking.claim
    if booking.extended is None or claim.metadata.controller is None:
        return claim
    uid = f"{claim.metadata.controller.uid}/{claim.name}"
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, uid=uid))
