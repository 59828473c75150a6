"""Retry policies: which answers are retried, after which pauses, and until when."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes import DONE, FakeClock
from plimsoll.timing.retry import OPEN, OPEN_OR_CONFLICT, RetryPolicy, retry

TWICE = RetryPolicy((0.5, 2.0))


class Write:
    """Answers as told, done at last; notes when each attempt was made, in seconds from the start."""

    def __init__(self, clock: Any, *answers: Any) -> None:
        self.clock, self.answers = clock, list(answers)
        self.attempts_s: list[Any] = []
        self.began = clock.monotonic()

    async def __call__(self) -> WriteResult:
        self.attempts_s.append(self.clock.monotonic() - self.began)
        return self.answers.pop(0) if self.answers else DONE


async def run(
    policy: RetryPolicy,
    *answers: WriteResult,
    is_wanted: Callable[..., Any] = lambda: True,
    within_s: float = 1000.0,
) -> tuple[WriteResult, list[float]]:
    clock = FakeClock()
    write = Write(clock, *answers)
    task = asyncio.ensure_future(retry(write, policy, clock, is_wanted))
    await clock.advance(within_s)
    return task.result(), write.attempts_s


@pytest.mark.parametrize("verdict", sorted(WriteOutcome))
@pytest.mark.parametrize("repeats", [OPEN, OPEN_OR_CONFLICT])
def test_only_the_outcomes_of_the_policy_are_retried(
    verdict: WriteOutcome, repeats: frozenset[WriteOutcome]
) -> None:
    """Every other one is final at the first attempt."""
    pause = RetryPolicy((0.5,), repeats=repeats).pause_after(1, WriteResult(verdict))

    assert pause == (0.5 if verdict in repeats else None)


@pytest.mark.parametrize(
    ("attempt", "expected"), [(1, 0.5), (2, 2.0), (3, None), (4, None)], ids=["1st", "2nd", "3rd", "4th"]
)
def test_the_pauses_are_those_of_the_policy(attempt: int, expected: float | None) -> None:
    """Two pauses are three attempts."""
    assert TWICE.pause_after(attempt, WriteResult(WriteOutcome.BUSY)) == expected


def test_a_policy_with_a_last_pause_has_no_end() -> None:
    """The last pause follows those listed."""
    endless = RetryPolicy((0.5,), last_pause_s=7.0)

    assert [endless.pause_after(attempt, WriteResult(WriteOutcome.UNKNOWN)) for attempt in (1, 2, 99)] == [
        0.5,
        7.0,
        7.0,
    ]


def test_doubled_pauses_stop_growing_at_the_longest() -> None:
    """0.2 s doubled: 0.2, 0.4, 0.8, 1.6, 3.2, and 6.4 would be longer than 5."""
    policy = RetryPolicy.doubling(0.2, 5.0)
    pauses = [policy.pause_after(attempt, WriteResult(WriteOutcome.BUSY)) for attempt in range(1, 8)]

    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@pytest.mark.parametrize(("says_s", "expected"), [(0.0, 0.5), (0.1, 0.5), (30.0, 30.0)])
def test_the_server_may_ask_for_a_longer_pause(says_s: float, expected: float) -> None:
    """Its ``Retry-After`` lengthens a pause and never shortens one."""
    assert TWICE.pause_after(1, WriteResult(WriteOutcome.BUSY, retry_after_s=says_s)) == expected


async def test_it_is_retried_until_it_is_done() -> None:
    """Attempts at 0, 0.5 and 2.5 seconds."""
    answer, attempts_s = await run(TWICE, WriteResult(WriteOutcome.UNKNOWN), WriteResult(WriteOutcome.BUSY))

    assert answer.is_done
    assert attempts_s == [0.0, 0.5, 2.5]


async def test_the_last_answer_is_returned_when_the_policy_ends() -> None:
    """The caller decides what it means."""
    answers = [WriteResult(WriteOutcome.BUSY, str(number)) for number in range(1, 10)]
    answer, attempts_s = await run(TWICE, *answers)

    assert answer == WriteResult(WriteOutcome.BUSY, "3")
    assert len(attempts_s) == 3


async def test_what_is_no_longer_wanted_is_not_sent_again() -> None:
    """Checked after the pause: a newer write may have come meanwhile."""
    answer, attempts_s = await run(TWICE, WriteResult(WriteOutcome.BUSY, "first"), is_wanted=lambda: False)

    assert answer.message == "first"
    assert attempts_s == [0.0]
