"""Ports for our custom resources: SchedulingPolicies and Eviction records."""

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


class Records(Protocol):
    """The Eviction records (custom resources), as plain documents."""

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Write a new record; CONFLICT when it is there already."""

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace a record's status."""

    async def delete(self, namespace: str, name: str) -> WriteResult:
        """Drop a record."""

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All records; GONE when the server does not know the resource."""
