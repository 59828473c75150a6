"""Ports for the tainting of nodes, the volumes of claims, and rollouts of Deployments."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.writes import WriteResult


class NodeCloser(Protocol):
    """Keeps new pods off nodes that are being emptied."""

    async def close(self, node: str) -> WriteResult:
        """Set our taint; DONE when it is already set."""

    async def avoid(self, node: str) -> WriteResult:
        """Set our taint with the effect PreferNoSchedule; DONE when it is set with either."""

    async def reopen(self, node: str) -> WriteResult:
        """Remove our taint; DONE when the node does not have it."""


class CostWriter(Protocol):
    """Says of pods that they are deleted first when their owner shrinks."""

    async def want_gone(self, namespace: str, name: str, uid: str, policy: str) -> WriteResult:
        """Write the least cost of deletion of this very pod, and the policy that asks; "" takes both away.

        CONFLICT when somebody else has said what it costs to delete, GONE when the pod is gone.
        """


class VolumeWriter(Protocol):
    """Writes the choice of a claim's volume."""

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Have the claim provisioned where the node can reach the volume."""

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Reserve the volume for the claim, unless the volume has changed meanwhile."""


class Rollouts(Protocol):
    """Reads Deployments, and writes the mark in their pod template that starts a rollout."""

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """All Deployments; those with other than one desired replica may lack their template."""

    async def others(self) -> tuple[Sequence[Deployment], Mapping[str, str]]:
        """What else can be scaled, read as Deployments, and by kind why it could not be read, as a clause."""

    async def read(
        self, namespace: str, name: str, kind: str = "Deployment"
    ) -> tuple[WriteResult, Deployment | None]:
        """The current Deployment, or object of another kind; None with GONE when it does not exist."""

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write or remove the mark; CONFLICT when the Deployment has changed since it was read."""

    async def autoscaled(self, namespace: str = "") -> tuple[WriteResult, Mapping[str, str]]:
        """The name of the HorizontalPodAutoscaler of each that has one, by ``Kind namespace/name``."""

    async def scale(self, deployment: Deployment, replicas: int, manager: str) -> WriteResult:
        """Write the number of replicas; CONFLICT when the Deployment has changed since it was read."""

    async def prefer(self, namespace: str, name: str, uid: str, *, leaves: bool) -> WriteResult:
        """Say that this very pod is deleted first when replicas become fewer, or no longer.

        CONFLICT when somebody else has said what it costs to delete, GONE when the pod is gone.
        """
