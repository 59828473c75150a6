"""Compares the timetable with a page of plain code: turns by cron, requests, and clocks that are set back."""

import asyncio
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.rebalancing.timetable import Timetable
from plimsoll.testing.fakes import FakeClock, RememberingObserver, settled
from plimsoll.timing.timer import Timer

#: Steps of a story: minutes that pass, and what happens then.
Step = tuple[str, int]
steps = st.one_of(
    st.tuples(st.just("passes"), st.sampled_from((1, 5, 20, 59, 60, 61))),
    st.tuples(st.just("set back"), st.sampled_from((1, 30, 90))),
    st.tuples(st.just("hasten"), st.sampled_from((0, 2, 30, 70))),
    st.tuples(st.just("set again"), st.just(0)),
)


class Clock(FakeClock):
    """Its wall time may be behind."""

    behind_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time - self.behind_s


class Hourly:
    """What is promised: a run at each full hour by the wall clock, and sooner only after a request."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.ran = clock, list[float]()
        self.begin()

    def begin(self) -> None:
        """The policy is set."""
        self.due, self.asked = self._after(self.clock.now()), float("inf")

    def hasten(self, seconds: float) -> None:
        """Within so many seconds that pass, whatever the wall clock shows."""
        self.asked = min(self.asked, self.clock.time + seconds)

    def look(self) -> None:
        """Run if it is time."""
        now = self.clock.now()
        if self.clock.time >= self.asked or now >= self.due:
            self.ran.append(self.clock.time)
            self.due, self.asked = self._after(now), float("inf")

    def _after(self, now: float) -> float:
        return (now // 3600 + 1) * 3600


@settings(max_examples=80)
@given(story=st.lists(steps, max_size=14))
def test_a_policy_runs_when_cron_says_and_when_asked_to(story: list[Step]) -> None:
    """And at no other time, whatever happened before its turn."""
    asyncio.run(_play(story))


async def _play(story: list[Step]) -> None:
    clock = Clock()
    clock.time = datetime(2026, 6, 1, 12, 30, tzinfo=UTC).timestamp()
    timer, ran = Timer(clock, RememberingObserver()), list[float]()
    timetable = Timetable(timer, clock, RememberingObserver())

    async def job() -> None:
        ran.append(clock.time)

    timetable.start()
    timetable.set("hourly", Schedule(cron="0 * * * *"), job, list[str]().append)
    plain = Hourly(clock)
    for what, minutes in story:
        match what:
            case "passes":
                clock.time += 60.0 * minutes
            case "set back":
                clock.behind_s += 60.0 * minutes
            case "hasten":
                timetable.hasten("hourly", timedelta(minutes=minutes))
                plain.hasten(60.0 * minutes)
            case _:
                timetable.remove("hourly")
                timetable.set("hourly", Schedule(cron="0 * * * *"), job, list[str]().append)
                plain.begin()
        timer.call_due()
        plain.look()
        await settled()
        assert ran == plain.ran
    timetable.stop()
    timetable.set("hourly", Schedule(cron="0 * * * *"), job, list[str]().append)
    timetable.hasten("hourly", timedelta(minutes=1))
    clock.time += 7200.0
    timer.call_due()
    await settled()
    assert ran == plain.ran  # a timetable that has ended starts nothing
