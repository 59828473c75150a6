"""Ports for SchedulingPolicies: lists, and status writes."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from plimsoll.ports.writes import WriteResult


class PolicySource(Protocol):
    """The policies, as plain documents."""

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All policies; GONE when the server does not know the resource."""


class PolicyStatusWriter(Protocol):
    """Writes the status of policies."""

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into a policy's status."""
