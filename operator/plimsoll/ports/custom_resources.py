"""Ports for our custom resources: SchedulingPolicies and Eviction records."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.ports.writes import WriteResult


class WatchedRecordStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far a record has come."""

    phase: str = ""


class WatchedRecord(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """What is watched of an Eviction record: the rest is our own writing, and is not read back."""

    status: WatchedRecordStatus = WatchedRecordStatus()


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

    async def write_status(
        self, namespace: str, name: str, status: Mapping[str, Any], manager: str = ""
    ) -> WriteResult:
        """Replace a record's status; managedFields name ``manager`` as the writer, "" for the client."""

    async def delete(self, namespace: str, name: str) -> WriteResult:
        """Drop a record."""

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All records; GONE when the server does not know the resource."""
