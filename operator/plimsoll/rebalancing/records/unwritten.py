"""UnwrittenRecords says which records the server does not hold as they are known, and when they are due.

Used by :mod:`plimsoll.rebalancing.records.store`, which writes them again.
"""

from typing import NamedTuple

from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.retry import RetryPolicy
from plimsoll.timing.signal import Signal

#: Seconds until a record is written again that could not be.
CATCH_UP_S = 5.0

#: When one is written again that was refused: the right to do so may be given back.
REFUSED_RETRIES = RetryPolicy.doubling(CATCH_UP_S, 60.0, frozenset({WriteOutcome.REFUSED}))


class _Unwritten(NamedTuple):
    """One record.

    Attributes:
        failures: How often it could not be written.
        due_at: When it may be written again, in seconds of the monotonic clock.
        refusal: The server's sentence where it refused the record, else "".
    """

    failures: int = 0
    due_at: float = 0.0
    refusal: str = ""


class UnwrittenRecords:
    """Records to be written, or deleted, again, by ``namespace/name``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[RecordKey, _Unwritten] = {}
        self._added = Signal()

    def __contains__(self, key: RecordKey) -> bool:
        return key in self._records

    def __len__(self) -> int:
        return len(self._records)

    async def until_some(self) -> None:
        """Wait until there is one."""
        await self._added.until(lambda: bool(self._records))

    def due(self) -> list[RecordKey]:
        """Those that may be written again now."""
        now = self._clock.monotonic()
        return [key for key, each in self._records.items() if each.due_at <= now]

    def failed(self, key: RecordKey, answer: WriteResult) -> None:
        """It could not be written; the pauses grow where the server refuses it."""
        failures = self._records.get(key, _Unwritten()).failures + 1
        pause_s = REFUSED_RETRIES.pause_after(failures, answer) or 0.0
        refusal = answer.message if answer.verdict is WriteOutcome.REFUSED else ""
        self._records[key] = _Unwritten(failures, self._clock.monotonic() + pause_s, refusal)
        self._added.notify()

    def discard(self, key: RecordKey) -> None:
        """The server holds what is known of it."""
        self._records.pop(key, None)

    def is_refused_again(self, key: RecordKey, answer: WriteResult) -> bool:
        """Whether the server has refused this record in the same words before, so that it was reported."""
        before = self._records.get(key)
        return (
            answer.verdict is WriteOutcome.REFUSED and before is not None and before.refusal == answer.message
        )
