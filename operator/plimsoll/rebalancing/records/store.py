"""Stores Eviction records: writes their contents and transitions, each exactly once.

The records are the memory of rebalancing: each is written before its eviction is attempted, and completed
exactly once, also by the next process. Only this module writes them, so its copy equals the cluster's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from pydantic import ValidationError

from plimsoll.api.v1alpha1.eviction import (
    Eviction,
    EvictionSpec,
    EvictionStatus,
    Replacement,
)
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.real_load import UsedLoad
from plimsoll.framework.field_errors import field_errors, summary
from plimsoll.model.names import PolicyName, RecordKey, record_key
from plimsoll.ports.clock import Clock
from plimsoll.ports.custom_resources import Records
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.rebalancing.records.announcements import ANNOUNCER, announced_at
from plimsoll.rebalancing.records.kept_records import KeptRecords
from plimsoll.rebalancing.records.sent_times import SKEW_S, SentTimes
from plimsoll.rebalancing.records.unwritten import CATCH_UP_S, UnwrittenRecords
from plimsoll.rebalancing.records.versions import VersionedRecords
from plimsoll.records.history import is_reversal
from plimsoll.records.record import Record, recorded_workload
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry
from plimsoll.timing.signal import Signal

#: Maximum length of a namespace and a name that are shown, in characters.
LONGEST_NAME = 320

#: Maximum length of a message in a record, in characters.
MESSAGE_LENGTH = 4096

#: Seconds until records are listed again after a failure.
RETRY_S = 2.0

#: Retries of deleting a record that may have been created: no process would ever finish it.
DROP_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0), repeats=OPEN_OR_CONFLICT)

#: Phases of records for which nothing was sent yet.
UNSENT = frozenset(("", Phase.PREDICTED, Phase.PLANNED))

#: Retries of a write, but after responses that a retry would not change; and none.
_REPEATS = frozenset(WriteOutcome) - {WriteOutcome.DONE, WriteOutcome.GONE, WriteOutcome.REFUSED}
WRITE_RETRIES = RetryPolicy((0.2, 0.4, 0.8, 1.6), repeats=_REPEATS)
ONCE = RetryPolicy(())


@dataclass(eq=False)
class EvictionRecordStore:
    """Writes records and keeps a copy of them.

    Attributes:
        changed: Notified when a record is added, changes its phase, or is deleted.
        removed: Called with each record that was deleted, also by another client.
        touched: The policies of such records, in order; the reader removes them.
    """

    records: Records
    clock: Clock
    observer: Observer
    known: KeptRecords = field(default_factory=KeptRecords, init=False)
    removed: Callable[[Record], object] = field(default_factory=lambda: _unheard, init=False)
    _sent: SentTimes = field(init=False)
    changed: Signal = field(default_factory=Signal, init=False)
    touched: dict[PolicyName, None] = field(default_factory=dict, init=False)
    #: uids of records that the watch has shown as deleted, by key of a record that is being created
    _creating: dict[RecordKey, set[str]] = field(default_factory=dict, init=False)
    #: records to look for and delete, by key, and from when on, in monotonic seconds
    _left: dict[RecordKey, float] = field(default_factory=dict, init=False)
    _versioned: VersionedRecords = field(init=False)
    _unwritten: UnwrittenRecords = field(init=False)
    #: whether the records of earlier processes have been taken over
    is_recovered: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Create the parts, on the store's port and clock."""
        self._sent = SentTimes(self.clock)
        self._versioned = VersionedRecords(self.records)
        self._unwritten = UnwrittenRecords(self.clock)

    async def load(self) -> None:
        """Read the records of earlier processes; waits until the server responds."""
        for document in await self._listed():
            self.notice(document)

    async def load_late(self) -> list[Record]:
        """Take over records that others have created since; waits until the server responds.

        Omits records that this process knew at the request: they may have been deleted meanwhile.
        """
        own = {*self.known, *self._creating}
        documents = await self._listed()
        own |= {*self.known, *self._creating}
        for document in documents:
            meta = document["metadata"]
            if f"{meta.get('namespace')}/{meta['name']}" not in own:
                self.notice(document)
        late = [record for key, record in self.known.items() if key not in own]
        for record in late:
            self._touch(record)
        return late

    async def _listed(self) -> Sequence[Mapping[str, Any]]:
        while True:
            answer, documents = await self.records.list()
            if answer.is_done:
                break
            problem = f"the records cannot be listed yet: {answer.message}"
            if answer.verdict is WriteOutcome.GONE:
                problem = "the custom resources are not installed yet; apply crds/"
            self.observer.watch_failed("evictions", problem, answer.status)
            await self.clock.sleep(RETRY_S)
        self.observer.watch_recovered("evictions")
        return documents

    def notice(self, document: Mapping[str, Any]) -> None:
        """Take over a record from the server; one that cannot be read is left alone."""
        given = document.get("metadata")
        meta: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        plain = {key: value for key, value in document.items() if key != "metadata"}
        plain["metadata"] = {"name": meta.get("name"), "namespace": meta.get("namespace")}
        try:
            eviction = Eviction.model_validate(plain)
            namespace, name = str(meta["namespace"]), str(meta["name"])
            created = datetime.fromisoformat(meta["creationTimestamp"]).timestamp()
        except (ValidationError, LookupError, OverflowError, TypeError, ValueError) as exc:
            errors = field_errors(exc, model=Eviction) if isinstance(exc, ValidationError) else ()
            problem = summary(errors) or "metadata: namespace, name and creationTimestamp are needed"
            found = f"{meta.get('namespace')}/{meta.get('name')}"[:LONGEST_NAME]
            self.observer.object_skipped("evictions", found, problem)
            return
        status = _no_later(eviction.status or EvictionStatus(), max(self.clock.now(), created) + SKEW_S)
        uid, announced = str(meta.get("uid") or ""), announced_at(meta)
        self._versioned.found(record_key(namespace, name), str(meta.get("resourceVersion") or ""))
        self._remember(Record(namespace, name, eviction.spec, status, created, announced, uid))

    def see(self, namespace: str, name: str, phase: str) -> None:
        """Update a record's phase from the watch; another process may have changed it."""
        if phase not in UNSENT:
            self._sent.seen(record_key(namespace, name))

    def forget(self, namespace: str, name: str, uid: str = "") -> bool:
        """Forget a record that was deleted.

        A record may be deleted and created again under its name before the watch shows the deletion.

        Args:
            namespace: Its namespace.
            name: Its name.
            uid: Its uid; empty if the record of this name, whichever it is, does not exist any more.

        Returns:
            Whether no record of this name is left; of one that is being created, ``create`` will tell.
        """
        key = record_key(namespace, name)
        if key in self._creating:
            self._creating[key].add(uid)
            return False
        record = self.known.get(key)
        if record is not None and uid and record.uid and uid != record.uid:
            return False
        self._sent.forget(key)
        self._versioned.forget(key)
        if record is not None:
            self.known.remove(key)
            self.removed(record)
            self._touch(record)
        return True

    def _touch(self, record: Record) -> None:
        self.touched[PolicyName(record.spec.policy)] = None
        self.changed.notify()

    def of_policy(self, policy: str) -> list[Record]:
        """A policy's records, the oldest first."""
        mine = self.known.of_policy(policy).values()
        return sorted(mine, key=lambda record: (record.created, record.key))

    def policies(self) -> set[str]:
        """The policies that have records, including deleted ones."""
        return self.known.policies()

    def unfinished(self) -> list[Record]:
        """Records that are not finished."""
        return [*self.known.unfinished().values()]

    def is_written(self, key: RecordKey) -> bool:
        """Whether the server's record is up to date."""
        return key not in self._unwritten

    def sent_within(self, policy: str, seconds: float) -> int:
        """The number of a policy's evictions and surges within the last seconds, without refused ones."""
        return self._sent.within(self.known.of_policy(policy).values(), policy, seconds)

    def sent_by_namespace(self, seconds: float) -> Mapping[str, int]:
        """The number of all policies' evictions and surges within the last seconds, by namespace."""
        return self._sent.by_namespace(self.known.values(), seconds)

    def sent_for_s(self, record: Record) -> float:
        """Seconds since this process saw that a record was sent; 0 if it was not."""
        return self._sent.for_s(record)

    def _remember(self, record: Record) -> None:
        self.known.put(record)
        self.see(record.namespace, record.name, record.phase or "")

    # -- writing -------------------------------------------------------------------------------------

    async def create(
        self, key: RecordKey, spec: EvictionSpec, phase: Phase, reason: str, message: str, *, now: float
    ) -> WriteResult:
        """Write a new record; one that may exist without a status is deleted again, with retries.

        A creation without a response may take effect after the deletion, so the record is looked for later.

        Returns:
            The server's response; GONE for a record that was deleted before the response arrived.
        """
        namespace, _, name = key.partition("/")
        status = EvictionStatus().entering(
            phase, datetime.fromtimestamp(now, UTC), reason=reason, message=message or None
        )
        record = Record(namespace, name, spec, status, now)
        gone = self._creating[key] = set()
        try:
            answer = await self.records.create(record.document)
        finally:
            del self._creating[key]
        if answer.is_done and answer.uid in gone:
            return WriteResult(WriteOutcome.GONE, "the record was deleted")
        if answer.is_done:
            record = replace(record, uid=answer.uid)
            self._left.pop(key, None)
            self._versioned.found(key, answer.version)
            self._remember(record)
            self._told(record)
        elif answer.uid or answer.verdict is not WriteOutcome.CONFLICT:
            self.observer.record_dropped(spec.policy, answer.verdict.value)
            deleted = await retry(lambda: self._versioned.delete(key, answer.uid), DROP_RETRIES, self.clock)
            is_late = answer.verdict is WriteOutcome.UNKNOWN and not answer.uid
            if not (deleted.is_done or (deleted.verdict is WriteOutcome.GONE and not is_late)):
                self._left[key] = self.clock.monotonic() + LATE_EFFECT_S
                self._unwritten.failed(key, deleted)
        return answer

    async def write(
        self,
        key: RecordKey,
        phase: Phase,
        *,
        reason: str,
        message: str = "",
        blocked_by: str | None = None,
        replacement: Replacement | None = None,
    ) -> WriteResult:
        """Write a record's phase, or its reason; a failed write is repeated later.

        Returns:
            The server's last response; GONE for a record that was deleted by others, which stays deleted.
        """
        known = self.known.get(key)
        if known is None:
            return WriteResult(WriteOutcome.GONE, "the record was deleted")
        if known.is_finished:
            return WriteResult(WriteOutcome.DONE)
        is_new = (phase, reason) != (known.phase, known.status.reason)
        status = known.status.entering(
            phase,
            datetime.fromtimestamp(self.clock.now(), UTC),
            reason=reason,
            message=message[:MESSAGE_LENGTH] or None,
            blocked_by=blocked_by,
            replacement=replacement,
        )
        changed = replace(known, status=status)
        self._remember(changed)
        manager = ANNOUNCER if phase is Phase.EVICTING and known.phase is not phase else ""
        answer = await self._write(changed, WRITE_RETRIES if is_new else ONCE, manager=manager)
        if answer.verdict is WriteOutcome.GONE:
            self.forget(changed.namespace, changed.name, changed.uid)
        elif not (answer.is_done or self._is_outdated(changed)):
            self._unwritten.failed(key, answer)
        if is_new:
            self._told(changed)
        return answer

    async def write_load(self, key: RecordKey, load: UsedLoad) -> WriteResult:
        """Write the use of a move's replacement; the phase stays."""
        return await self._write_field(key, load=load)

    async def write_exported(self, key: RecordKey, moment: datetime) -> WriteResult:
        """Write when the record was exported; the phase stays."""
        return await self._write_field(key, exported_time=moment)

    async def _write_field(self, key: RecordKey, **value: object) -> WriteResult:
        known = self.known.get(key)
        if known is None:
            return WriteResult(WriteOutcome.GONE, "the record was deleted")
        changed = replace(known, status=known.status.model_copy(update=value))
        self._remember(changed)
        answer = await self._write(changed, ONCE)
        if answer.verdict is WriteOutcome.GONE:
            self.forget(changed.namespace, changed.name, changed.uid)
        elif not (answer.is_done or self._is_outdated(changed)):
            self._unwritten.failed(key, answer)
        return answer

    async def run(self) -> None:
        """Repeat failed writes, until cancelled."""
        while True:
            await self._unwritten.until_some()
            await self.clock.sleep(CATCH_UP_S)
            try:
                await self.catch_up()
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the next attempt comes
                self.observer.failed("writing records again", repr(exc))

    async def catch_up(self) -> None:
        """Repeat failed writes."""
        for key in self._unwritten.due():
            answer = await self._write_again(key)
            if answer.verdict is WriteOutcome.GONE:
                self._unwritten.discard(key)
                self._left.pop(key, None)
            elif not answer.is_done:
                self._unwritten.failed(key, answer)

    async def _write_again(self, key: RecordKey) -> WriteResult:
        if (record := self.known.get(key)) is not None:
            return await self._write(record, ONCE)
        since = self._left.get(key)
        if since is None:
            return WriteResult(WriteOutcome.GONE)
        if key in self._creating or self.clock.monotonic() < since:
            return WriteResult(WriteOutcome.BUSY, "it is too early to look for it")
        answer = await self._versioned.delete(key)
        if self._left.get(key, since) != since:
            return WriteResult(WriteOutcome.BUSY, "it was given up once more")
        return replace(answer, verdict=WriteOutcome.GONE) if answer.is_done else answer

    async def _write(self, record: Record, policy: RetryPolicy, manager: str = "") -> WriteResult:
        """Write a record's status until a newer one is written; returns the server's last response."""
        is_again = record.key in self._unwritten

        async def send() -> WriteResult:
            nonlocal is_again
            answer = await self._versioned.write_status(
                record, manager, lambda: not self._is_outdated(record)
            )
            # A response may be lost with its connection; the write is repeated, and a second loss counts.
            is_lost = answer.verdict is WriteOutcome.UNKNOWN and not is_again
            is_again = True
            if answer.is_done:
                if not self._is_outdated(record):
                    self._unwritten.discard(record.key)
            elif not (
                answer.verdict in (WriteOutcome.GONE, WriteOutcome.FENCED)
                or is_lost
                or self._is_outdated(record)
                or self._unwritten.is_refused_again(record.key, answer)
            ):
                self.observer.failed(f"record {record.key}", answer.message)
            return answer

        return await retry(send, policy, self.clock, lambda: not self._is_outdated(record))

    def _is_outdated(self, record: Record) -> bool:
        """Whether the record has a newer state, which is written as well."""
        return self.known.get(record.key, record) is not record

    def _told(self, record: Record) -> None:
        """Report a record's progress."""
        self._touch(record)
        spec, latest = record.spec, record.status.transitions[-1]
        phase = str(latest.phase)
        self.observer.record_changed(spec.policy, spec.strategy, phase)
        if record.landing and record.phase in (Phase.SETTLED, Phase.RETURNED, Phase.FAILED):
            self.observer.forecast_placed(spec.policy, record.landing)
        if is_reversal(record, self.known.of_workload(recorded_workload(record.spec)).values()):
            self.observer.move_reversed(spec.policy)
        facts: dict[str, object] = {
            "pod": f"{spec.pod.namespace}/{spec.pod.name}",
            "uid": spec.pod.uid,
            "node": spec.from_node,
            "target": spec.target_node or "",
            "policy": spec.policy,
            "strategy": spec.strategy,
            "reason": record.status.reason or "",
            "message": record.status.message or "",
        }
        self.observer.move_told(record.key, phase, facts)

    # -- retention -----------------------------------------------------------------------------------

    async def drop(self, record: Record, why: str) -> bool:
        """Delete a finished record; returns whether no record of its name is left."""
        answer = await self.records.delete(record.namespace, record.name, uid=record.uid)
        if answer.verdict not in (WriteOutcome.DONE, WriteOutcome.GONE):
            return False
        self.observer.record_dropped(record.spec.policy, why)
        return self.forget(record.namespace, record.name, record.uid)

    def has_room(self, policy: str, retention: RecordRetention, more: int = 1) -> bool:
        """Whether so many more dry-run records may be written; records of real moves always may."""
        return len(self.known.of_policy(policy)) + more <= retention.max_count


def _unheard(record: Record) -> None:
    """Ignores deleted records."""


def _no_later(status: EvictionStatus, latest: float) -> EvictionStatus:
    """The status with no phase reached later than that: a clock that was far ahead has written it.

    To refuse such a record would leave its pod's move without an end.
    """
    if all(each.time.timestamp() <= latest for each in status.transitions):
        return status
    limit = datetime.fromtimestamp(latest, UTC)
    transitions = tuple(
        each.model_copy(update={"time": min(each.time, limit)}) for each in status.transitions
    )
    return status.model_copy(update={"transitions": transitions})
