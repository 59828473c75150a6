"""Ports for our custom resources: SchedulingPolicies and Eviction records."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.ports.writes import WriteResult


class WatchedRecordStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The watched status of an Eviction record."""

    phase: str = ""


class WatchedRecord(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """The watched fields of an Eviction record; the other fields are our own writes and are not read back."""

    status: WatchedRecordStatus = WatchedRecordStatus()


class WatchedMaintenance(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A NodeMaintenance as it is watched; its spec and status are validated by its reader."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def document(self) -> Mapping[str, Any]:
        """The object as a plain document."""
        metadata = {
            "name": self.metadata.name,
            "uid": self.metadata.uid,
            "generation": self.metadata.generation,
        }
        return {"metadata": metadata, "spec": self.spec, **({"status": self.status} if self.status else {})}


class PolicySource(Protocol):
    """Lists policies as plain documents."""

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All policies; GONE when the server does not serve the resource."""


class PolicyStatusWriter(Protocol):
    """Writes the status of policies."""

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into a policy's status."""


class NamespacedStatusWriter(Protocol):
    """Writes the status of namespaced objects."""

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace an object's status."""


class Records(Protocol):
    """Reads and writes Eviction records (custom resources) as plain documents."""

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Create a record; the result has its uid and version, and is CONFLICT when the name is taken."""

    async def write_status(
        self, namespace: str, name: str, status: Mapping[str, Any], *, version: str, manager: str = ""
    ) -> WriteResult:
        """Replace the status of a record that is still of that version; the result has the new one.

        An empty version allows any. managedFields name ``manager`` as the writer, "" for the client.
        """

    async def look_up(self, namespace: str, name: str) -> WriteResult:
        """A record's uid and version, as the server has them now; GONE if it does not exist."""

    async def delete(self, namespace: str, name: str, *, uid: str = "") -> WriteResult:
        """Delete a record of that uid, or whichever it is; CONFLICT when it has another uid."""

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All records; GONE when the server does not serve the resource."""
