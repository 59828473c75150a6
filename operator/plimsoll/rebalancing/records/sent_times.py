"""SentTimes says how long ago the evictions and surges of records were sent, by this process's clock."""

from collections.abc import Iterable

from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.records.history import counts_as_sent, latest_sent
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
        now, wall = self._clock.monotonic(), self._clock.now()
        return sum(
            now - self._seen.get(record.key, now) < seconds and wall - latest_sent(record) < seconds + SKEW_S
            for record in records
            if counts_as_sent(record, policy)
        )

    def for_s(self, record: Record) -> float:
        """Seconds since a record was sent; 0 if it was not."""
        if not (sent := latest_sent(record)):
            return 0.0
        now = self._clock.monotonic()
        return max(now - self._seen.get(record.key, now), self._clock.now() - sent - SKEW_S)
