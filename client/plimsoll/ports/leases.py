"""Port for the Lease of the leader election."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from plimsoll.ports.writes import WriteResult


class Lease(Struct, frozen=True):
    """A coordination.k8s.io/v1 Lease.

    Attributes:
        holder: Identity of the leader, "" after a release.
        duration_s: Seconds that other candidates must wait.
        acquired: When the holder became leader, in seconds since the epoch; informational.
        renewed: When the holder last renewed it, in seconds since the epoch; informational.
        transitions: Number of changes of the holder.
        version: ``resourceVersion``, "" before the lease exists.
        metadata: The metadata from the API server; other clients' entries are preserved.
    """

    holder: str
    duration_s: int
    acquired: float
    renewed: float
    transitions: int = 0
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class LeaseNote(Protocol):
    """What the holder notes in the lease in addition to its name."""

    def noted(self) -> str:
        """What the lease says while it is ours."""

    def found(self, text: str) -> None:
        """Take over what the lease of an earlier holder says."""


class LeasePort(Protocol):
    """Reads and writes the lease by which the leader is elected."""

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to the lease, for events."""

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease; None with DONE when it does not exist."""

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Create the lease, or replace the version that it names; returns the stored lease after success."""
