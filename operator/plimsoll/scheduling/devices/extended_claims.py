"""Creates and deletes the claims of pods whose extended resources are served by device classes.

Source: kube-scheduler v1.36, ``dynamicresources/extendeddynamicresources.go``.
"""

from plimsoll.devices.extended_resources import ExtendedRequests
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.resource_claims import FINALIZER, ClaimWriter
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.scheduling.devices.claim_writes import READING_LOST, ClaimNotWritten
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry

#: Retries of creating a claim, and of writing a pod's status.
WRITING = RetryPolicy((0.2, 0.5, 1.0, 2.0))

#: Retries of deleting a claim.
DELETING = RetryPolicy((0.2, 1.0, 5.0), repeats=OPEN_OR_CONFLICT)


class ExtendedClaims:
    """Writes claims for extended resources."""

    def __init__(self, writer: ClaimWriter, clock: Clock, observer: Observer) -> None:
        self._writer = writer
        self._clock = clock
        self._observer = observer

    async def created(self, pod: Pod, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim; if the response was lost, find the created claim by its owner.

        Raises:
            ClaimNotWritten: The server refused.
        """
        found: ResourceClaim | None = None

        async def create() -> WriteResult:
            nonlocal found
            answer = await self._writer.create(claim, f"{pod.name}-extended-resources-")
            found = answer.claim
            if answer.result.verdict is WriteOutcome.UNKNOWN:
                looked = await retry(find, READING_LOST, self._clock)
                return looked if found is not None else answer.result
            return answer.result

        async def find() -> WriteResult:
            nonlocal found
            answer = await self._writer.find(pod)
            found = answer.claim
            return answer.result

        answer = await retry(create, WRITING, self._clock)
        self._observer.claim_created("failure" if found is None else "success")
        if found is None:
            raise ClaimNotWritten(f"create claim for extended resources of pod {pod.key}: {answer.message}")
        return found

    async def mapped(self, pod: Pod, claim: ResourceClaim, extended: ExtendedRequests) -> None:
        """Write to the pod's status which extended resources the claim serves.

        Raises:
            ClaimNotWritten: The claim serves none, or the server refused.
        """
        if not extended.mappings:
            raise ClaimNotWritten(
                f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
            )

        async def write() -> WriteResult:
            return await self._writer.write_mappings(pod, claim.name, extended.mappings)

        answer = await retry(write, WRITING, self._clock)
        if not answer.is_done:
            raise ClaimNotWritten(f"update pod {pod.key} ExtendedResourceClaimStatus: {answer.message}")

    async def deleted(self, claim: ResourceClaim) -> WriteResult:
        """Delete a claim after removing its finalizer."""
        found = claim

        async def delete() -> WriteResult:
            nonlocal found
            if FINALIZER in found.metadata.finalizers:
                kept = [each for each in found.metadata.finalizers if each != FINALIZER]
                answer = await self._writer.set_finalizers(found, kept)
                if answer.claim is None:
                    read = await self._writer.read(found)
                    found = read.claim or found
                    return read.result if read.result.verdict is WriteOutcome.GONE else answer.result
                found = answer.claim
            answered = await self._writer.delete(found)
            return DONE if answered.verdict is WriteOutcome.GONE else answered

        return await retry(delete, DELETING, self._clock)
