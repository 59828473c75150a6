"""Keeps the known records by key, policy, pod, workload and phase.

A change of one costs the same however many there are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import RecordKey
from plimsoll.records.history import is_victim
from plimsoll.records.record import Record, recorded_workload


class KeptRecords(Mapping[RecordKey, Record]):
    """Records by key. A change costs the same however many are kept."""

    def __init__(self) -> None:
        self._records: dict[RecordKey, Record] = {}
        self._by_policy: dict[str, dict[RecordKey, Record]] = {}
        self._by_pod: dict[str, dict[RecordKey, Record]] = {}
        self._by_workload: dict[str, dict[RecordKey, Record]] = {}
        self._indexes = self._by_policy, self._by_pod, self._by_workload
        self._unfinished: dict[RecordKey, Record] = {}
        self._phases: dict[str, Counter[Phase | None]] = {}
        self._forecasts: dict[str, Counter[bool]] = {}

    def __getitem__(self, key: RecordKey) -> Record:
        """The record of this key."""
        return self._records[key]

    def __iter__(self) -> Iterator[RecordKey]:
        """The keys, in the order in which they were first put."""
        return iter(self._records)

    def __len__(self) -> int:
        """Number of records."""
        return len(self._records)

    def put(self, record: Record) -> None:
        """Add a record, or replace the one of its key."""
        known = self._records.get(record.key)
        if known is not None:
            self._count(known, -1)
            if _indexed(known) != _indexed(record):
                self._leave(known)
        self._records[record.key] = record
        for kept, value in zip(self._indexes, _indexed(record), strict=True):
            kept.setdefault(value, {})[record.key] = record
        self._count(record, 1)
        if record.is_finished:
            self._unfinished.pop(record.key, None)
        else:
            self._unfinished[record.key] = record

    def remove(self, key: RecordKey) -> None:
        """Drop a record.

        Raises:
            KeyError: The key is not a known record's.
        """
        record = self._records.pop(key)
        self._unfinished.pop(key, None)
        self._count(record, -1)
        self._leave(record)

    def of_policy(self, policy: str) -> Mapping[RecordKey, Record]:
        """A policy's records by key, in the order in which they were first put."""
        return self._by_policy.get(policy, {})

    def of_pod(self, uid: str) -> Mapping[RecordKey, Record]:
        """The records of a pod's moves, by key."""
        return self._by_pod.get(uid, {})

    def of_workload(self, workload: str) -> Mapping[RecordKey, Record]:
        """The records of moves of a workload's pods, by key."""
        return self._by_workload.get(workload, {})

    def policies(self) -> set[str]:
        """The policies that have records."""
        return set(self._by_policy)

    def unfinished(self) -> Mapping[RecordKey, Record]:
        """The records that will still change, by key."""
        return self._unfinished

    def phases(self, policy: str) -> Counter[Phase | None]:
        """How many records of a policy are in each phase, without victims of preemption."""
        return Counter(self._phases.get(policy))

    def forecasts(self, policy: str) -> tuple[int, int]:
        """How many replacements of a policy other schedulers have placed, and how many as expected."""
        found = self._forecasts.get(policy, Counter())
        return found.total(), found[True]

    def _count(self, record: Record, by: int) -> None:
        if is_victim(record):
            return
        policy, came_true = record.spec.policy, record.came_true
        self._phases.setdefault(policy, Counter())[record.phase] += by
        if came_true is not None:
            self._forecasts.setdefault(policy, Counter())[came_true] += by

    def _leave(self, record: Record) -> None:
        for kept, value in zip(self._indexes, _indexed(record), strict=True):
            del kept[value][record.key]
            if not kept[value]:
                del kept[value]
        if record.spec.policy not in self._by_policy:
            self._phases.pop(record.spec.policy, None)
            self._forecasts.pop(record.spec.policy, None)


def _indexed(record: Record) -> tuple[str, str, str]:
    """Policy, uid of the pod, and workload."""
    return record.spec.policy, record.spec.pod.uid, recorded_workload(record.spec)
