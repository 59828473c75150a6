"""Port for ResourceClaims: allocations, reservations, and claims for extended resources."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from plimsoll.devices.extended_resources import Mapped
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import ResourceClaim, ResourceClaimStatus
from plimsoll.ports.writes import WriteResult

#: Prevents the deletion of a claim that has devices.
FINALIZER = "resource.kubernetes.io/delete-protection"


class ClaimAnswer(NamedTuple):
    """The outcome of a request, and the claim as the API server has it afterwards, if known."""

    result: WriteResult
    claim: ResourceClaim | None = None


class ClaimWriter(Protocol):
    """Reads and writes claims; every write applies to the claim with that very uid."""

    async def read(self, claim: ResourceClaim) -> ClaimAnswer:
        """The current claim; GONE when another claim has its name."""

    async def set_finalizers(self, claim: ResourceClaim, finalizers: Sequence[str]) -> ClaimAnswer:
        """Replace the finalizers; CONFLICT when the claim has changed since it was read."""

    async def write_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ClaimAnswer:
        """Write allocation and reservations; CONFLICT when the claim has changed since it was read.

        The drivers' device status stays, unless the claim has no devices any more.
        """

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> ClaimAnswer:
        """Remove the pod's reservation; the reservations of other pods stay."""

    async def create(self, claim: ResourceClaim, prefix: str) -> ClaimAnswer:
        """Create a claim whose name begins with ``prefix``."""

    async def find(self, pod: Pod) -> ClaimAnswer:
        """The claim for the pod's extended resources; DONE without a claim if it does not exist."""

    async def delete(self, claim: ResourceClaim) -> WriteResult:
        """Delete the claim."""

    async def write_mappings(self, pod: Pod, claim: str, mappings: Sequence[Mapped]) -> WriteResult:
        """Write to the pod's status which request of a claim serves which extended resource."""
