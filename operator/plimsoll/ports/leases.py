"""Port for the Lease of the leader election."""

from collections.abc import Mapping
from typing import Protocol

from plimsoll.leadership.election import Lease
from plimsoll.ports.writes import WriteResult


class LeasePort(Protocol):
    """The lease by which the leader is elected."""

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to it, for events."""

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease; None with DONE when there is none."""

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Create it, or replace the version that it names; as it was stored, when it was."""
