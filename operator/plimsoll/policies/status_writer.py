"""Retries status writes of policies, since the next regular write may be a day away."""

from collections.abc import Mapping
from typing import Any

from plimsoll.ports.clock import Clock
from plimsoll.ports.policies import PolicyStatusWriter
from plimsoll.ports.writes import WriteResult
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry

STATUS_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0, 5.0, 10.0), repeats=OPEN_OR_CONFLICT)


class RetriedStatuses:
    """Writes through another writer; a newer status of the same fields ends the retries of an older one."""

    def __init__(self, statuses: PolicyStatusWriter, clock: Clock) -> None:
        self._statuses = statuses
        self._clock = clock
        self._latest: dict[tuple[str, frozenset[str]], Mapping[str, Any]] = {}

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into a policy's status; returns the last answer."""
        key = (name, frozenset(status))
        self._latest[key] = status

        def is_latest() -> bool:
            return self._latest.get(key) is status

        answer = await retry(
            lambda: self._statuses.write_status(name, status), STATUS_RETRIES, self._clock, is_latest
        )
        if is_latest():
            del self._latest[key]
        return answer
