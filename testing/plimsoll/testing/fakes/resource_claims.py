"""Fakes an API server of ResourceClaims in memory: versions, preconditions, lost responses, and a watch."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.devices.extended_resources import Mapped, is_left_over
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import ResourceClaim, ResourceClaimStatus
from plimsoll.ports.resource_claims import ClaimAnswer
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

LOST = WriteResult(WriteOutcome.UNKNOWN, "no answer")


class FakeClaims:
    """Keeps claims as an API server does.

    Attributes:
        claims: By namespace and name.
        writes: Successful writes: the verb with the key of the claim.
        lost: Number of next writes that succeed but whose responses are lost.
        answers: Results of the next writes, which are then not carried out; None lets a write succeed.
        before: Called once, before the next write, to make a concurrent change.
        watch: Receives watch events.
        holds_back: Whether the watch lags behind; :meth:`catch_up` ends the lag.
    """

    def __init__(self, *claims: ResourceClaim) -> None:
        self.claims = {each.key: self._versioned(each, str(place + 1)) for place, each in enumerate(claims)}
        self.version = len(claims)
        self.writes: list[str] = []
        self.mappings: list[tuple[str, str, tuple[Mapped, ...]]] = []
        self.lost = 0
        self.answers: list[WriteResult | None] = []
        self.before: Callable[[], object] | None = None
        self.watch: Callable[[WatchEvent], None] = lambda _: None
        self.holds_back = False
        self._held_back: list[WatchEvent] = []

    def catch_up(self) -> None:
        """Deliver all delayed watch events."""
        self.holds_back = False
        held, self._held_back = self._held_back, []
        for event in held:
            self.watch(event)

    def put(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim, as any client may."""
        self.version += 1
        old = self.claims.get(claim.key)
        new = self.claims[claim.key] = self._versioned(claim, str(self.version))
        self._show(ObjectAdded(new) if old is None else ObjectUpdated(old, new))
        return new

    def remove(self, key: str) -> None:
        """Delete a claim, as any client may."""
        self._show(ObjectDeleted(self.claims.pop(key)))

    def _show(self, event: WatchEvent) -> None:
        if self.holds_back:
            self._held_back.append(event)
        else:
            self.watch(event)

    @staticmethod
    def _versioned(claim: ResourceClaim, version: str) -> ResourceClaim:
        meta = msgspec.structs.replace(claim.metadata, resource_version=version)
        return msgspec.structs.replace(claim, metadata=meta)

    # -- the port ------------------------------------------------------------------------------------

    async def read(self, claim: ResourceClaim) -> ClaimAnswer:
        """Read the current claim."""
        found = self.claims.get(claim.key)
        if found is None or found.uid != claim.uid:
            return ClaimAnswer(WriteResult(WriteOutcome.GONE, "not found"))
        return ClaimAnswer(DONE, found)

    async def set_finalizers(self, claim: ResourceClaim, finalizers: Sequence[str]) -> ClaimAnswer:
        """Replace the finalizers."""

        def change(found: ResourceClaim) -> ResourceClaim:
            meta = msgspec.structs.replace(found.metadata, finalizers=tuple(finalizers))
            return msgspec.structs.replace(found, metadata=meta)

        return self._written("finalizers", claim, change)

    async def write_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ClaimAnswer:
        """Replace the status."""
        return self._written("status", claim, lambda found: msgspec.structs.replace(found, status=status))

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> ClaimAnswer:
        """Remove the pod from ``reservedFor``."""

        def change(found: ResourceClaim) -> ResourceClaim:
            left = tuple(each for each in found.status.reserved_for if each.uid != pod.uid)
            status = msgspec.structs.replace(found.status, reserved_for=left)
            return msgspec.structs.replace(found, status=status)

        return self._written("unreserve", self.claims.get(claim.key, claim), change)

    async def create(self, claim: ResourceClaim, prefix: str) -> ClaimAnswer:
        """Create a claim; its name ends in ``x``."""
        meta = msgspec.structs.replace(claim.metadata, name=f"{prefix}x", uid=f"uid-{prefix}x")
        made = msgspec.structs.replace(claim, metadata=meta)
        return self._written("create", made, lambda found: found)

    async def find(self, pod: Pod) -> ClaimAnswer:
        """Find a claim by its owner."""
        return ClaimAnswer(DONE, next((c for c in self.claims.values() if is_left_over(c, pod)), None))

    async def delete(self, claim: ResourceClaim) -> WriteResult:
        """Delete a claim that has no finalizers."""
        if claim.key not in self.claims:
            return WriteResult(WriteOutcome.GONE, "not found")
        self.writes.append(f"delete {claim.key}")
        self.remove(claim.key)
        return DONE

    async def write_mappings(self, pod: Pod, claim: str, mappings: Sequence[Mapped]) -> WriteResult:
        """Record the mappings."""
        self.mappings.append((pod.key, claim, tuple(mappings)))
        return DONE

    def _written(
        self, verb: str, claim: ResourceClaim, change: Callable[[Any], ResourceClaim]
    ) -> ClaimAnswer:
        if self.before is not None:
            before, self.before = self.before, None
            before()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            return ClaimAnswer(answer)
        found = claim if verb == "create" else self.claims.get(claim.key)
        if found is None or found.uid != claim.uid:
            return ClaimAnswer(WriteResult(WriteOutcome.GONE, "not found"))
        if found.metadata.resource_version != claim.metadata.resource_version:
            return ClaimAnswer(WriteResult(WriteOutcome.CONFLICT, "the object has been modified"))
        self.writes.append(f"{verb} {claim.key}")
        new = self.put(change(found))
        if self.lost:
            self.lost -= 1
            return ClaimAnswer(LOST)
        return ClaimAnswer(DONE, new)
