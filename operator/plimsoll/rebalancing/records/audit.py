"""Exports records that have ended as lines of JSON, before retention deletes them.

A line is written, then the record gets ``status.exportedTime``. A process that dies in between writes the
line again: lines come at least once, and have the record's uid. Predictions of dry runs are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from plimsoll.api.v1alpha1.audit import AuditedEviction
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.record import Record
from plimsoll.timing.task_sets import first_of

#: Seconds in which ended records are collected into one write.
LINGER_S = 1.0

#: Seconds until a failed write is tried again, and lines of one write, at most.
RETRY_S, TOGETHER = 5.0, 500

#: Records that were deleted before they were exported, and that are remembered; the oldest are lost.
REMEMBERED = 10_000


class LineSink(Protocol):
    """Where lines go."""

    async def write(self, lines: Sequence[str]) -> None:
        """Write lines durably; raises OSError when that is not certain."""


@dataclass(eq=False)
class AuditLog:
    """The export of records.

    Args:
        sink: Where the lines go; None exports nothing, and nothing waits for it.
        cluster: Name of the cluster, "" for none.
    """

    keeper: EvictionRecordStore
    sink: LineSink | None
    cluster: str
    clock: Clock
    observer: Observer
    _deleted: dict[RecordKey, Record] = field(default_factory=dict, init=False)

    def is_kept(self, record: Record) -> bool:
        """Whether retention has to keep a finished record, because it is not exported yet."""
        return self.sink is not None and is_due(record)

    def deleted(self, record: Record) -> None:
        """Remember a record that was deleted before it was exported."""
        if self.sink is None or not is_audited(record):
            return
        if len(self._deleted) >= REMEMBERED:
            self._deleted.pop(next(iter(self._deleted)))
            self.observer.records_exported(1, "lost")
        self._deleted[RecordKey(f"{record.key}/{record.uid}")] = record

    async def run(self) -> None:
        """Export until cancelled."""
        seen = 0
        while True:
            is_done = await self.export()
            changes = self.keeper.changed.wait(seen)
            if is_done:
                await changes
            else:
                await first_of(changes, self.clock.sleep(RETRY_S))
            seen = self.keeper.changed.count
            await self.clock.sleep(LINGER_S)

    async def export(self) -> bool:
        """Export what is due; returns whether nothing is left."""
        sink = self.sink
        if sink is None:
            return True
        gone = list(self._deleted.items())[:TOGETHER]
        due = [each for each in self.keeper.known.values() if is_due(each)][:TOGETHER]
        if not gone and not due:
            return True
        records = [*(record for _, record in gone), *due]
        lines = [self._line(each, deleted=position < len(gone)) for position, each in enumerate(records)]
        try:
            await sink.write(lines)
        except OSError as exc:
            self.observer.records_exported(len(lines), "failed", str(exc))
            return False
        self.observer.records_exported(len(lines), "exported")
        for key, _ in gone:
            del self._deleted[key]
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        for each in due:
            await self.keeper.write_exported(each.key, now)
        return len(gone) < TOGETHER and len(due) < TOGETHER

    def _line(self, record: Record, *, deleted: bool) -> str:
        is_cut = deleted and not record.is_finished
        line = AuditedEviction(
            cluster=self.cluster or None,
            uid=record.uid,
            namespace=record.namespace,
            name=record.name,
            created=datetime.fromtimestamp(record.created, UTC),
            deleted=is_cut,
            spec=record.spec,
            status=record.status,
        )
        return line.model_dump_json(by_alias=True, exclude_none=True)


def is_audited(record: Record) -> bool:
    """Whether a record belongs into the log and is not there yet."""
    return record.spec.mode is not Mode.DRY_RUN and record.status.exported_time is None


def is_due(record: Record) -> bool:
    """Whether a record is to be exported now."""
    return record.is_finished and is_audited(record)
