"""The rate limiter grants what a list of all grants allows, and an uncertain write is waited for."""

import asyncio
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.ports.writes import LATE_EFFECT_S, WriteOutcome, WriteResult
from plimsoll.testing.fakes import FakeClock, settled
from plimsoll.timing.rate_limit import RateLimiter
from plimsoll.timing.retry import until_certain

#: Tokens a second that a float has without an error, and so has each sum of them.
RATES = (Fraction(1, 4), Fraction(1), Fraction(2), Fraction(8))


def has_token(grants: list[Fraction], now: Fraction, rate: Fraction, burst: int) -> bool:
    """Whether one more fits: in no stretch of time up to now are there more than burst and rate allow."""
    return all(
        len([each for each in grants if each >= since]) + 1 <= burst + rate * (now - since)
        for since in [Fraction(0), *grants, now]
    )


@given(
    rate=st.sampled_from(RATES),
    burst=st.integers(1, 4),
    steps=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), min_size=1, max_size=8),
)
def test_it_grants_whatever_burst_and_rate_allow(
    rate: Fraction, burst: int, steps: list[tuple[int, int]]
) -> None:
    """Asked at odd times, several times in a row, full, empty, and full again."""
    clock = FakeClock()
    limiter = RateLimiter(clock, float(rate), burst)
    began = clock.monotonic()
    grants: list[Fraction] = []
    for eighths, times in steps:
        asyncio.run(clock.advance(eighths / 8))
        now = Fraction(clock.monotonic()) - Fraction(began)
        for _ in range(times):
            expected = has_token(grants, now, rate, burst)
            assert limiter.try_accept() is expected
            grants += [now] * expected


@pytest.mark.parametrize("rate", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("burst", [1, 3])
async def test_turns_come_at_the_rate_once_the_bucket_is_empty(rate: float, burst: int) -> None:
    """And in full again after a rest."""
    clock = FakeClock()
    limiter = RateLimiter(clock, rate, burst)
    for _ in range(2):
        began = clock.monotonic()
        times: list[float] = []

        async def take(times: list[float] = times) -> None:
            for _ in range(burst + 3):
                await limiter.turn()
                times.append(clock.monotonic())

        task = asyncio.ensure_future(take())
        await settled()
        await clock.advance(4 / rate)
        await task

        assert times == pytest.approx([began] * burst + [began + n / rate for n in (1, 2, 3)])
        await clock.advance(burst / rate)


async def test_a_turn_is_not_waited_for_in_tiny_steps() -> None:
    """A tenth of a token's time is the shortest wait."""
    clock = FakeClock()
    limiter = RateLimiter(clock, 1.0, 1)
    assert limiter.try_accept()
    await clock.advance(0.99)
    task = asyncio.ensure_future(limiter.turn())
    await settled()
    await clock.advance(0.09)
    assert not task.done()
    await clock.advance(0.02)
    await task


@pytest.mark.parametrize("outcome", WriteOutcome)
async def test_only_an_uncertain_write_is_waited_for(outcome: WriteOutcome) -> None:
    clock = FakeClock()

    async def call() -> WriteResult:
        return WriteResult(outcome, "said")

    task = asyncio.ensure_future(until_certain(call, clock))
    await settled()
    assert task.done() is (outcome is not WriteOutcome.UNKNOWN)
    await clock.advance(LATE_EFFECT_S - 0.1)
    assert task.done() is (outcome is not WriteOutcome.UNKNOWN)
    await clock.advance(0.2)

    assert await task == WriteResult(outcome, "said")
