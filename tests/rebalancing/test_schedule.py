"""Schedules of policies, with cron's own meaning of its five fields."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.policies import schedule
from plimsoll.rebalancing.timetable import Timetable
from plimsoll.testing.fakes import FakeClock, RememberingObserver, settled
from plimsoll.timing.timer import Timer


def firing(cron: str, start: datetime, count: int = 3, zone: str | None = None) -> list[datetime]:
    """The first times of a schedule, in UTC."""
    trigger = schedule._trigger(Schedule(cron=cron, time_zone=zone))
    last = None
    moments: list[Any] = []
    while len(moments) < count:
        last = trigger.get_next_fire_time(last, start if last is None else last + timedelta(seconds=1))
        moments.append(last.astimezone(UTC))
    return moments


@pytest.mark.parametrize(
    ("field", "days"),
    [
        pytest.param("0", "sun", id="zero-is-sunday"),
        pytest.param("7", "sun", id="seven-is-sunday"),
        pytest.param("1-5", "mon,tue,wed,thu,fri", id="working-days"),
        pytest.param("fri-sun", "sun,fri,sat", id="up-to-sunday-by-name"),
        pytest.param("5-7", "sun,fri,sat", id="up-to-seven"),
        pytest.param("*/2", "sun,tue,thu,sat", id="every-other-day"),
        pytest.param("sat,1", "mon,sat", id="names-and-numbers"),
        pytest.param("1-5/2", "mon,wed,fri", id="steps"),
    ],
)
def test_days_of_the_week_are_crons(field: str, days: str) -> None:
    """0 and 7 are Sunday, as crontab(5) and our schema say; APScheduler alone takes 0 for Monday."""
    assert schedule.weekday_names(field) == days


def test_sunday_runs_on_sunday() -> None:
    """The whole way: a schedule of day 0 fires on Sundays, in its own time zone."""
    start = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday

    moments = firing("30 2 * * 0", start, zone="Europe/Berlin")

    assert moments == [datetime(2026, 1, day, 1, 30, tzinfo=UTC) for day in (4, 11, 18)]


def test_either_day_will_do_where_both_are_restricted() -> None:
    """The 13th or any Friday, as cron has it; not only Fridays the 13th."""
    moments = firing("0 0 13 * fri", datetime(2026, 1, 8, tzinfo=UTC))

    assert [moment.day for moment in moments] == [9, 13, 16]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        pytest.param(Schedule(cron="0 0 31 2 *"), "never", id="never-fires"),
        pytest.param(Schedule(cron="0 0 * * fri-mon"), "backwards", id="backwards"),
        pytest.param(Schedule(cron="0 0 * * *", time_zone="Mars/Olympus"), "time zone", id="no-such-zone"),
    ],
)
def test_schedules_that_cannot_be_followed_are_refused(asked: Schedule, sentence: str) -> None:
    """What the schema lets through and cannot be followed is said in a sentence, without much searching."""
    began = time.process_time()

    with pytest.raises(ValueError, match=sentence):
        schedule.check(asked)

    assert time.process_time() - began < 1.5


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(Schedule(interval_seconds=5), id="interval"),
        pytest.param(Schedule(cron="0 0 29 2 *"), id="leap-days"),
        pytest.param(Schedule(cron="*/15 1-4 * * *", time_zone="Europe/Berlin"), id="nightly"),
    ],
)
def test_schedules_that_fire_now_and_then_are_accepted(asked: Schedule) -> None:
    """However seldom."""
    schedule.check(asked)


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [
        ("2026-06-01T05:59:59", False),  # a Monday; 08:00 in Berlin is 06:00 UTC in summer
        ("2026-06-01T06:00:00", True),
        ("2026-06-01T15:59:59", True),
        ("2026-06-01T16:00:00", False),
        ("2026-06-06T08:00:00", False),  # a Saturday
        ("2026-12-01T06:30:00", False),  # winter: opens at 07:00 UTC
        ("2026-12-01T07:00:00", True),
    ],
)
def test_a_window_is_open_from_its_schedule_for_its_duration(moment: str, is_open: bool) -> None:
    """The first second is inside, the last is not, in the time zone of the schedule."""
    asked = Schedule(cron="0 8 * * mon-fri", time_zone="Europe/Berlin")
    now = datetime.fromisoformat(moment).replace(tzinfo=UTC)

    assert schedule.is_open(asked, 10 * 3600.0, now) is is_open


def test_a_window_that_opens_again_before_it_closes_stays_open() -> None:
    """Every hour for two hours is always."""
    now = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)

    assert schedule.is_open(Schedule(cron="0 * * * *"), 7200.0, now)


class Office:
    """A timetable and its running timer, on a clock that a test moves."""

    def __init__(self) -> None:
        self.clock, self.observer = FakeClock(), RememberingObserver()
        self.timer = Timer(self.clock, self.observer)
        self.skipped: list[str] = []
        self.timetable = Timetable(self.timer, self.clock, self.observer)
        self.ran: list[float] = []

    async def job(self) -> None:
        """Note when it ran."""
        self.ran.append(self.clock.time)


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    """One that has begun."""
    one = Office()
    running = asyncio.create_task(one.timer.run())
    one.timetable.start()
    yield one
    one.timetable.stop()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_run_is_hastened_but_never_delayed(office: Office) -> None:
    """Out of turn where the turn is far; a turn that comes sooner stays."""
    office.timetable.set("far", Schedule(cron="0 0 29 2 *"), office.job, office.skipped.append)
    turn = office.timetable.next_run("far")
    office.timetable.hasten("far", timedelta(hours=1))
    hastened = office.timetable.next_run("far")
    office.timetable.hasten("far", timedelta(hours=2))
    unchanged = office.timetable.next_run("far")
    office.timetable.hasten("nobody", timedelta())
    office.timetable.hasten("far", timedelta())
    await office.clock.advance(1.0)

    assert hastened < turn  # type: ignore[operator] # known to exist in this test
    assert unchanged == hastened
    assert len(office.ran) == 1
    assert office.timetable.next_run("far") == turn


async def test_turns_at_an_interval_begin_after_a_second_and_missed_ones_are_made_up_once(
    office: Office,
) -> None:
    """A process that was paused for four turns runs once, then keeps time."""
    began = office.clock.time
    office.timetable.set("often", Schedule(interval_seconds=60), office.job, office.skipped.append)
    await office.clock.advance(62.0)
    office.clock.time += 240.0
    await office.clock.advance(60.0)

    assert office.ran == [began + 1.0, began + 61.0, began + 302.0, began + 361.0]


async def test_a_turn_is_skipped_while_the_job_is_still_running(office: Office) -> None:
    """It never overlaps itself."""
    ends = asyncio.Event()

    async def job() -> None:
        await office.job()
        await ends.wait()

    office.timetable.set("slow", Schedule(interval_seconds=60), job, office.skipped.append)
    await office.clock.advance(130.0)
    ends.set()
    await office.clock.advance(60.0)

    assert office.skipped == ["slow", "slow"]
    assert len(office.ran) == 2


async def test_a_wall_clock_that_is_set_back_does_not_bring_a_turn_early() -> None:
    """Cron means the time of day; the turn is waited for again."""
    clock = ClockSetBack()
    timer = Timer(clock, RememberingObserver())
    timetable = Timetable(timer, clock, RememberingObserver())
    ran = asyncio.Event()

    async def job() -> None:
        ran.set()

    timetable.start()
    timetable.set("hourly", Schedule(cron="0 * * * *"), job, list[str]().append)
    turn = timetable.next_run("hourly")
    clock.behind_s, clock.time = 600.0, turn.timestamp()
    timer.call_due()
    early = timetable.next_run("hourly")
    clock.time += 600.0
    timer.call_due()
    await settled()

    assert early == turn
    assert ran.is_set()
    timetable.stop()


@pytest.mark.parametrize("hastened", [False, True])
async def test_a_wall_clock_that_is_set_back_delays_no_interval_and_no_hastened_turn(hastened: bool) -> None:
    """Seconds are waited for, not a time of day."""
    clock = ClockSetBack()
    timer = Timer(clock, RememberingObserver())
    timetable = Timetable(timer, clock, RememberingObserver())
    ran: list[float] = []

    async def job() -> None:
        ran.append(clock.time)

    timetable.start()
    timetable.set(
        "often",
        Schedule(cron="0 0 29 2 *") if hastened else Schedule(interval_seconds=60),
        job,
        list[str]().append,
    )
    timetable.hasten("often", timedelta(seconds=1))
    clock.behind_s, clock.time = 3600.0, clock.time + 1.0
    timer.call_due()
    await settled()
    clock.time += 60.0
    timer.call_due()
    await settled()

    assert len(ran) == (1 if hastened else 2)
    timetable.stop()


@pytest.mark.parametrize("asked", [[70], [20, 70], [70, 20]])
async def test_a_request_is_kept_when_the_wall_clock_is_set_back_before_the_turn(asked: list[int]) -> None:
    """The turn in half an hour is two hours away then; neither it nor a later request delays the run."""
    clock = ClockSetBack()
    clock.time = datetime(2026, 6, 1, 12, 30, tzinfo=UTC).timestamp()
    timer = Timer(clock, RememberingObserver())
    timetable = Timetable(timer, clock, RememberingObserver())
    ran = asyncio.Event()

    async def job() -> None:
        ran.set()

    timetable.start()
    timetable.set("hourly", Schedule(cron="0 * * * *"), job, list[str]().append)
    timetable.hasten("hourly", timedelta(minutes=asked[0]))
    clock.behind_s = 5_400.0
    for minutes in asked[1:]:
        timetable.hasten("hourly", timedelta(minutes=minutes))
    clock.time += 60.0 * min(asked)
    timer.call_due()
    timer.call_due()
    await settled()

    assert ran.is_set()
    timetable.stop()


class ClockSetBack(FakeClock):
    """Its wall time is behind."""

    behind_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time - self.behind_s


async def test_a_job_that_is_under_way_is_cancelled_without_a_word(office: Office) -> None:
    """A process that lost its lease stops in the middle of runs; that is no error of a job."""
    ended: list[str] = []

    async def job() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    office.timetable.set("policy", Schedule(interval_seconds=300), job, office.skipped.append)
    await office.clock.advance(2.0)
    office.timetable.stop()
    await settled()

    assert ended == ["cancelled"]
    assert office.observer.failures == []


async def test_a_job_that_raises_has_its_next_turn(office: Office) -> None:
    """The failure is reported."""

    async def job() -> None:
        raise ValueError("no")

    office.timetable.set("policy", Schedule(interval_seconds=300), job, office.skipped.append)
    await office.clock.advance(2.0)

    assert office.observer.failures == [("run of policy", "ValueError('no')")]
    assert office.timetable.next_run("policy") is not None
