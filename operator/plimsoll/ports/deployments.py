"""Port for Deployments: reads them, and starts or takes back the rollout of a surge."""

from collections.abc import Sequence
from typing import Protocol

from plimsoll.model.kinds.deployment import Deployment
from plimsoll.ports.writes import WriteResult


class Rollouts(Protocol):
    """Deployments, and the mark in their pod template."""

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """All of them; those that want other than one replica may come without their template."""

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """The current Deployment; None with GONE when it does not exist."""

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write the mark, or take it away; CONFLICT when the Deployment has changed since it was read."""
