"""Decides when a write without a usable response is sent again.

Each writer states its policy as a constant. The move machine reads only the pause; writers that await their
result call :func:`retry`. Outcomes are values, and the server may set the pause by ``Retry-After``. Retry
libraries do not serve here: they repeat on exceptions and sleep by a clock of their own.
"""

from collections.abc import Awaitable, Callable
from typing import Self

from msgspec import Struct

from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult

#: Outcomes after which an equal write may succeed.
OPEN = frozenset({WriteOutcome.UNKNOWN, WriteOutcome.BUSY})

#: The same for writes that the caller bases on the current object each time.
OPEN_OR_CONFLICT = OPEN | {WriteOutcome.CONFLICT}


class RetryPolicy(Struct, frozen=True):
    """Which outcomes are retried, and after which pauses.

    Attributes:
        pauses_s: Seconds before the second attempt, the third, and so on.
        last_pause_s: Seconds before each further attempt; None ends after those of ``pauses_s``.
        repeats: Outcomes that are retried; every other one is final.
    """

    pauses_s: tuple[float, ...]
    last_pause_s: float | None = None
    repeats: frozenset[WriteOutcome] = OPEN

    @classmethod
    def doubling(cls, first_s: float, longest_s: float, repeats: frozenset[WriteOutcome] = OPEN) -> Self:
        """An endless policy: the pause doubles until it would exceed ``longest_s`` seconds."""
        pauses = []
        pause = first_s
        while pause < longest_s:
            pauses.append(pause)
            pause *= 2
        return cls(tuple(pauses), longest_s, repeats)

    def pause_after(self, attempt: int, answer: WriteResult) -> float | None:
        """Seconds until the next attempt, at least the server's ``Retry-After``; None to give up.

        The first attempt is number 1.
        """
        if answer.verdict not in self.repeats:
            return None
        pause = self.pauses_s[attempt - 1] if attempt <= len(self.pauses_s) else self.last_pause_s
        return None if pause is None else max(pause, answer.retry_after_s)


def always() -> bool:
    """True: the write stays wanted."""
    return True


async def retry(
    call: Callable[[], Awaitable[WriteResult]],
    policy: RetryPolicy,
    clock: Clock,
    is_wanted: Callable[[], bool] = always,
) -> WriteResult:
    """Repeat a call until its result is final, the policy ends, or the call is no longer wanted.

    ``is_wanted`` is checked after each pause: a newer write may have replaced this one.
    """
    attempt = 1
    while True:
        answer = await call()
        pause_s = policy.pause_after(attempt, answer)
        if pause_s is None:
            return answer
        await clock.sleep(pause_s)
        if not is_wanted():
            return answer
        attempt += 1


async def until_certain(call: Callable[[], Awaitable[WriteResult]], clock: Clock) -> WriteResult:
    """Make a call; if it has no usable response, wait until it cannot take effect any more.

    For writes that replace what others wrote: one that takes effect late must not follow a newer one.
    """
    answer = await call()
    if answer.verdict is WriteOutcome.UNKNOWN:
        await clock.sleep(LATE_EFFECT_S)
    return answer
