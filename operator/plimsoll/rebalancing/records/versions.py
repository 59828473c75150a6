"""VersionedRecords changes a record only if it still is the one, and in the version, that is meant.

A write without a response may take effect later; by its version it cannot replace what was written since
(docs/adr/0040-writes-that-take-effect-late.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.model.names import RecordKey
from plimsoll.ports.custom_resources import Records
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.records.record import Record


@dataclass(eq=False)
class VersionedRecords:
    """The versions of records that this process has read or written last, by key."""

    _records: Records
    _versions: dict[RecordKey, str] = field(default_factory=dict, init=False)

    def found(self, key: RecordKey, version: str) -> None:
        """Note the version of a record that was read or created."""
        self._versions[key] = version

    def forget(self, key: RecordKey) -> None:
        """Forget a record."""
        self._versions.pop(key, None)

    async def write_status(self, record: Record, manager: str, is_newest: Callable[[], bool]) -> WriteResult:
        """Write a record's status; if another client has changed the record, read its version and repeat.

        Args:
            record: The record, with the status to write.
            manager: The writer that managedFields name, "" for the client.
            is_newest: Whether the record has no newer state by now, which will be written as well.

        Returns:
            The server's last response; GONE if another record has the name.
        """
        document = record.status.model_dump(mode="json", by_alias=True, exclude_none=True)
        answer = await self._write(record, document, manager, self._versions.get(record.key, ""))
        if answer.verdict is WriteOutcome.CONFLICT and is_newest():
            found = await self._records.look_up(record.namespace, record.name)
            if record.uid and found.is_done and found.uid != record.uid:
                return WriteResult(WriteOutcome.GONE, f"record {record.key} was replaced")
            if not found.is_done:
                return found
            if is_newest():
                answer = await self._write(record, document, manager, found.version)
        if answer.is_done and record.key in self._versions:
            self._versions[record.key] = answer.version
        return answer

    async def delete(self, key: RecordKey, uid: str = "") -> WriteResult:
        """Delete a record by its uid, or the one that now has the name; GONE if it does not exist.

        Without the uid a request that takes effect late would delete a record that is made again.
        """
        namespace, _, name = key.partition("/")
        if not uid:
            found = await self._records.look_up(namespace, name)
            if not found.is_done:
                return found
            uid = found.uid
        return await self._records.delete(namespace, name, uid=uid)

    async def _write(
        self, record: Record, document: Mapping[str, Any], manager: str, version: str
    ) -> WriteResult:
        return await self._records.write_status(
            record.namespace, record.name, document, version=version, manager=manager
        )
