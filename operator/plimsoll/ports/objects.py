"""Ports for nodes that are closed, volumes of claims, and rollouts of Deployments."""

from collections.abc import Sequence
from typing import Protocol

from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.writes import WriteResult


class NodeCloser(Protocol):
    """Keeps new pods away from nodes that are being emptied."""

    async def close(self, node: str) -> WriteResult:
        """Set our taint; DONE when it is there already."""

    async def reopen(self, node: str) -> WriteResult:
        """Remove our taint; DONE when the node does not have it."""


class VolumeWriter(Protocol):
    """Writes which volume a claim gets."""

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Have the claim provisioned where the node reaches it."""

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Keep the volume for the claim, unless it has changed meanwhile."""


class Rollouts(Protocol):
    """Deployments, and the mark in their pod template."""

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """All of them; those that want other than one replica may come without their template."""

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """The current Deployment; None with GONE when it does not exist."""

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write the mark, or take it away; CONFLICT when the Deployment has changed since it was read."""
