"""Writes one claim: first the finalizer, then allocation and reservation in one status update.

Each write carries the resourceVersion that was read before. After a conflict or a lost response the claim is
read again, so a write that succeeded although its response was lost is recognized.

Source: kube-scheduler v1.36, ``dynamicresources.go`` (``bindClaim``).
"""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from plimsoll.devices.bookings import Booking
from plimsoll.model.kinds.resource_claim import (
    AllocationResult,
    Consumer,
    ResourceClaim,
    ResourceClaimStatus,
)
from plimsoll.ports.clock import Clock
from plimsoll.ports.resource_claims import FINALIZER, ClaimAnswer, ClaimWriter
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.retry import RetryPolicy, retry

#: Retries of reading a claim after a lost response, until the server returns it. A denied read proves nothing
#: about the claim, so it is retried too.
READING_LOST = RetryPolicy.doubling(
    0.2, 5.0, repeats=frozenset({WriteOutcome.UNKNOWN, WriteOutcome.BUSY, WriteOutcome.REFUSED})
)

#: Retries of reading a claim that was not written.
READING = RetryPolicy((0.2, 0.5, 1.0, 2.0))

#: Seconds before the next try after a conflict.
CONFLICT_S = 0.01

#: Seconds before the next try when the server is busy and sends no Retry-After.
BUSY_S = 0.5

#: Number of tries; upstream has five.
TRIES = 5

#: The API server's message about a changed spec. The finalizer changes none. But if a claim was created with
#: blanks in the JSON of its parameters, the server compares these with the same JSON without blanks.
IMMUTABLE = "field is immutable"
BLANKS = (
    "; the parameters in spec.devices.config may have been stored with blanks in their JSON, then no client"
    " that speaks JSON can change the claim: write it (or its template) again without blanks"
)

#: The message when the binding of the claim's pod was cancelled.
CALLED_OFF = "the pod was called off"


class ClaimNotWritten(Exception):
    """A claim cannot be bound; the message has the reason in upstream's words."""


class ClaimWrite(Struct, frozen=True):
    """Writes one claim for one user.

    Attributes:
        user: The pod, or its PodGroup if the claim is the group's.
        is_called_off: Whether the pod's binding was cancelled; then nothing more is sent.
    """

    writer: ClaimWriter
    clock: Clock
    user: Consumer
    is_called_off: Callable[[], bool]

    async def bound(self, booking: Booking, known: ResourceClaim) -> ResourceClaim:
        """Allocate and reserve a claim; returns the claim as written.

        Args:
            booking: The decided allocation.
            known: The claim as last read or watched.

        Raises:
            ClaimNotWritten: The claim is no longer available, or the server refused.
        """
        claim, action = known, ""
        ours = None if booking.allocation is None else self._stamped(booking.allocation)
        if self._is_ours(claim, ours):
            # Left by an earlier attempt; the watch may not yet show that the reservation was removed.
            claim = await self._read(claim, READING, "read")
        for _ in range(TRIES):
            self._check(claim, ours)
            if self._is_ours(claim, ours):
                return claim
            if self.is_called_off():
                raise ClaimNotWritten(CALLED_OFF)
            if ours is not None and FINALIZER not in claim.metadata.finalizers:
                answer = await self.writer.set_finalizers(claim, (*claim.metadata.finalizers, FINALIZER))
                action = "add finalizer to"
                if answer.claim is not None:
                    claim = answer.claim
                    if self.is_called_off():
                        raise ClaimNotWritten(CALLED_OFF)
                    answer, action = await self._write(claim, ours)
            else:
                answer, action = await self._write(claim, ours)
            if answer.claim is not None:
                return answer.claim
            claim = await self._again(claim, answer.result, action)
        if self._is_ours(claim, ours):
            return claim
        raise ClaimNotWritten(f"{action} claim {claim.key}: it was changed by others {TRIES} times in a row")

    async def _write(self, claim: ResourceClaim, ours: AllocationResult | None) -> tuple[ClaimAnswer, str]:
        before = claim.status
        status = ResourceClaimStatus(
            allocation=before.allocation if ours is None else ours,
            reserved_for=(*before.reserved_for, self.user),
            devices=before.devices,
        )
        action = "add reservation to" if ours is None else "add allocation and reservation to"
        return await self.writer.write_status(claim, status), action

    async def _again(self, claim: ResourceClaim, answer: WriteResult, action: str) -> ResourceClaim:
        """The claim's present state after a failed write, if another try makes sense."""
        match answer.verdict:
            case WriteOutcome.CONFLICT:
                await self.clock.sleep(CONFLICT_S)
            case WriteOutcome.BUSY:
                await self.clock.sleep(max(BUSY_S, answer.retry_after_s))
            case WriteOutcome.UNKNOWN:
                pass
            case WriteOutcome.GONE:
                raise ClaimNotWritten(f"claim {claim.key} got deleted in the meantime")
            case _:
                hint = BLANKS if action == "add finalizer to" and IMMUTABLE in answer.message else ""
                raise ClaimNotWritten(f"{action} claim {claim.key}: {answer.message}{hint}")
        was_lost = answer.verdict is WriteOutcome.UNKNOWN
        return await self._read(claim, READING_LOST if was_lost else READING, action)

    async def _read(self, claim: ResourceClaim, policy: RetryPolicy, action: str) -> ResourceClaim:
        """Read the claim from the API server."""
        found = claim

        async def read() -> WriteResult:
            nonlocal found
            answer = await self.writer.read(claim)
            found = answer.claim or found
            return answer.result

        answer = await retry(read, policy, self.clock)
        if answer.verdict is WriteOutcome.GONE:
            raise ClaimNotWritten(f"claim {claim.key} got deleted in the meantime")
        if not answer.is_done:
            raise ClaimNotWritten(f"{action} claim {claim.key}: {answer.message}")
        return found

    def _check(self, claim: ResourceClaim, ours: AllocationResult | None) -> None:
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimNotWritten(f"claim {claim.key} got deleted in the meantime")
        if ours is None and not claim.is_allocated:
            raise ClaimNotWritten(f"claim {claim.key} got deallocated elsewhere in the meantime")
        if ours is not None and claim.is_allocated and not self._is_ours(claim, ours):
            raise ClaimNotWritten(f"claim {claim.key} got allocated elsewhere in the meantime")

    def _is_ours(self, claim: ResourceClaim, ours: AllocationResult | None) -> bool:
        """Whether the claim already has the intended state: written earlier, or the response was lost."""
        if claim.status.allocation is None or not is_reserved_for(claim, self.user):
            return False
        return ours is None or _is_same(claim.status.allocation, ours)

    def _stamped(self, allocation: AllocationResult) -> AllocationResult:
        """The allocation with the present time, in whole seconds as in the API."""
        if allocation.allocation_timestamp is not None:
            return allocation
        now = datetime.fromtimestamp(int(self.clock.now()), UTC)
        return msgspec.structs.replace(allocation, allocation_timestamp=now)


def is_reserved_for(claim: ResourceClaim, user: Consumer) -> bool:
    """Whether the user may use the claim."""
    return any(each.uid == user.uid for each in claim.status.reserved_for)


def _is_same(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations have the same devices; quantities may be spelled differently."""
    return _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str, str | None]]:
    return [
        (each.request, each.driver, each.pool, each.device, each.share_id)
        for each in allocation.devices.results
    ]
