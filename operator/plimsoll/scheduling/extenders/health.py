"""Pauses requests to extenders that keep failing, and describes these in the status of their policy.

::

    closed ──FAILURES in a row──▶ open ──PAUSE_S later, one request──▶ closed again, or open for another pause

While it is open, every request fails immediately with the last failure's sentence. Pods that need the
extender back off without waiting for it, and pods that can ignore it are not delayed.
"""

from msgspec import Struct

from plimsoll.model.shortened import shortened
from plimsoll.timing.signal import Signal

#: Failures in a row that stop requests to an extender, and the seconds until the next request.
FAILURES, PAUSE_S = 3, 5.0

#: Maximum length of a failure's sentence, in characters.
SENTENCE = 500


class _Record(Struct):
    failures: int = 0
    sentence: str = ""
    closed_until: float = 0.0


class ExtenderHealth:
    """Failures by scheduler name and URL; notifies ``conditions`` when one begins or ceases to fail."""

    def __init__(self, conditions: Signal) -> None:
        self._records: dict[tuple[str, str], _Record] = {}
        self._conditions = conditions

    def obstacle(self, scheduler: str, extender: str, now: float) -> str:
        """Why no request may be sent now; empty if one may: then the caller must report its outcome."""
        record = self._records.get((scheduler, extender))
        if record is None or record.failures < FAILURES:
            return ""
        if now < record.closed_until:
            return record.sentence
        record.closed_until = now + PAUSE_S  # this request probes the extender; the others do not wait for it
        return ""

    def failed(self, scheduler: str, extender: str, sentence: str, now: float) -> None:
        """Record a failed request."""
        record = self._records.setdefault((scheduler, extender), _Record())
        record.failures += 1
        record.sentence = shortened(sentence, SENTENCE)
        record.closed_until = now + PAUSE_S
        if record.failures == FAILURES:
            self._conditions.notify()

    def succeeded(self, scheduler: str, extender: str) -> None:
        """Record a successful request."""
        record = self._records.pop((scheduler, extender), None)
        if record is not None and record.failures >= FAILURES:
            self._conditions.notify()

    def forgive(self, scheduler: str) -> None:
        """Reset the extenders of a policy that has changed."""
        for key in [key for key in self._records if key[0] == scheduler]:
            del self._records[key]

    def of(self, scheduler: str) -> list[str]:
        """Sentences about the failing extenders of a profile."""
        return [
            f'extender "{extender}" has failed {record.failures} times in a row: {record.sentence}'
            for (name, extender), record in sorted(self._records.items())
            if name == scheduler and record.failures >= FAILURES
        ]
