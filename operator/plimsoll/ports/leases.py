"""Port for the Lease of the leader election."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from plimsoll.ports.writes import WriteResult


@dataclass(frozen=True, slots=True)
class Lease:
    """A coordination.k8s.io/v1 Lease.

    Attributes:
        holder: Identity of the leader, "" when it was released.
        duration_s: How long others must wait.
        acquired: When the holder became leader, seconds since the epoch; for people.
        renewed: Likewise, of the last renewal.
        transitions: How often the holder has changed.
        version: ``resourceVersion``, "" before it exists.
        metadata: As the API server has it; what others wrote there is kept.
        wanted_by: Identity of a candidate that asks the holder for it, "" when none does.
    """

    holder: str
    duration_s: int
    acquired: float
    renewed: float
    transitions: int = 0
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    wanted_by: str = ""


class LeasePort(Protocol):
    """The lease by which the leader is elected."""

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to it, for events."""

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease; None with DONE when it does not exist."""

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Create it, or replace the version that it names; as it was stored, when it was."""
