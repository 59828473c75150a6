"""SentTimes says how long ago the evictions and surges of records were sent, by this process's clock."""

from collections import Counter
from collections.abc import Iterable

from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.records.history import counts_as_sent, latest_sent, was_sent
from plimsoll.records.record import Record

#: Maximum difference of other machines' clocks, in seconds.
SKEW_S = 7200.0


class SentTimes:
    """When each record was first seen as sent, by this process or by another one.

    Clocks of machines differ, so times count from when this process saw it: it sent the eviction itself, or
    the watch showed it while another process led. Records that a young process finds may have been sent just
    before it began, unless even a clock that is far ahead rules that out.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[RecordKey, float] = {}  #: monotonic seconds by key

    def seen(self, key: RecordKey) -> None:
        """Note that a record was sent, unless that is known."""
        self._seen.setdefault(key, self._clock.monotonic())

    def forget(self, key: RecordKey) -> None:
        """Forget a record."""
        self._seen.pop(key, None)

    def within(self, records: Iterable[Record], policy: str, seconds: float) -> int:
        """The number of a policy's records that were sent within the last seconds, without refused ones."""
        return sum(self._is_recent(each, seconds) for each in records if counts_as_sent(each, policy))

    def by_namespace(self, records: Iterable[Record], seconds: float) -> Counter[str]:
        """The same of all policies, by namespace."""
        recent = (each for each in records if was_sent(each) and self._is_recent(each, seconds))
        return Counter(each.namespace for each in recent)

    def _is_recent(self, record: Record, seconds: float) -> bool:
        now = self._clock.monotonic()
        is_old = self._clock.now() - latest_sent(record) >= seconds + SKEW_S
        return not is_old and now - self._seen.get(record.key, now) < seconds

    def for_s(self, record: Record) -> float:
        """Seconds since a record was sent; 0 if it was not."""
        if not (sent := latest_sent(record)):
            return 0.0
        now = self._clock.monotonic()
        return max(now - self._seen.get(record.key, now), self._clock.now() - sent - SKEW_S)
