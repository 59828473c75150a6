"""Statuses of policies are written again when none or a busy answer came; the next one may be a day off."""

from collections.abc import Mapping
from typing import Any

from plimsoll.ports.ports import Answer, Clock, PolicyStatusWriter, Verdict

#: Seconds between attempts.
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class RetriedStatuses:
    """Writes through another writer; a newer status of the same fields calls an older one off."""

    def __init__(self, statuses: PolicyStatusWriter, clock: Clock) -> None:
        self._statuses = statuses
        self._clock = clock
        self._latest: dict[tuple[str, frozenset[str]], Mapping[str, Any]] = {}

    async def write_status(self, name: str, status: Mapping[str, Any]) -> Answer:
        """Merge into a policy's status; the last answer."""
        key = (name, frozenset(status))
        self._latest[key] = status
        answer = await self._statuses.write_status(name, status)
        for pause_s in PAUSES_S:
            if answer.verdict not in (Verdict.UNKNOWN, Verdict.BUSY, Verdict.CONFLICT):
                break
            await self._clock.sleep(pause_s)
            if self._latest.get(key) is not status:
                return answer
            answer = await self._statuses.write_status(name, status)
        if self._latest.get(key) is status:
            del self._latest[key]
        return answer
