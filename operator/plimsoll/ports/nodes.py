"""Port for taints that close nodes."""

from typing import Protocol

from plimsoll.ports.writes import WriteResult


class NodeCloser(Protocol):
    """Keeps new pods away from nodes that are being emptied."""

    async def close(self, node: str) -> WriteResult:
        """Set our taint; DONE when it is there already."""

    async def reopen(self, node: str) -> WriteResult:
        """Remove our taint; DONE when the node does not have it."""
