"""Pauses requests to extenders that keep failing, and describes these for the status of their policy.

::

    closed ──FAILURES in a row──▶ open ──PAUSE_S later, one ask──▶ closed again, or open for another pause

While it is open every ask fails immediately with the last failure's sentence: pods that need the extender
back off without waiting for it, and those that may do without it are not held up.
"""

from dataclasses import dataclass

from plimsoll.timing.signal import Signal

#: Failures in a row after which an extender is asked no more, and the seconds until it is asked again.
FAILURES, PAUSE_S = 3, 5.0

#: Characters of a failure's sentence.
SENTENCE = 500


@dataclass(slots=True)
class _Record:
    failures: int = 0
    sentence: str = ""
    closed_until: float = 0.0


class ExtenderHealth:
    """Failures by scheduler name and URL; notifies ``conditions`` when one begins or ceases to fail."""

    def __init__(self, conditions: Signal) -> None:
        self._records: dict[tuple[str, str], _Record] = {}
        self._conditions = conditions

    def obstacle(self, scheduler: str, extender: str, now: float) -> str:
        """Why the extender is not to be asked now; empty when it is; then the caller reports the answer."""
        record = self._records.get((scheduler, extender))
        if record is None or record.failures < FAILURES:
            return ""
        if now < record.closed_until:
            return record.sentence
        record.closed_until = now + PAUSE_S  # this one ask finds out; the others do not wait for it
        return ""

    def failed(self, scheduler: str, extender: str, sentence: str, now: float) -> None:
        """An ask failed."""
        record = self._records.setdefault((scheduler, extender), _Record())
        record.failures += 1
        record.sentence = sentence if len(sentence) <= SENTENCE else sentence[: SENTENCE - 1] + "…"
        record.closed_until = now + PAUSE_S
        if record.failures == FAILURES:
            self._conditions.notify()

    def succeeded(self, scheduler: str, extender: str) -> None:
        """An ask was answered."""
        record = self._records.pop((scheduler, extender), None)
        if record is not None and record.failures >= FAILURES:
            self._conditions.notify()

    def forgive(self, scheduler: str) -> None:
        """The policy has changed: its extenders have another chance."""
        for key in [key for key in self._records if key[0] == scheduler]:
            del self._records[key]

    def of(self, scheduler: str) -> list[str]:
        """What is to be said of the extenders of a profile."""
        return [
            f'extender "{extender}" has failed {record.failures} times in a row: {record.sentence}'
            for (name, extender), record in sorted(self._records.items())
            if name == scheduler and record.failures >= FAILURES
        ]
