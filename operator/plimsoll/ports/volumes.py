"""Port for volumes: claims and the nodes selected for them."""

from typing import Protocol

from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.writes import WriteResult


class VolumeWriter(Protocol):
    """Writes which volume a claim gets."""

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Have the claim provisioned where the node reaches it."""

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Keep the volume for the claim, unless it has changed meanwhile."""
