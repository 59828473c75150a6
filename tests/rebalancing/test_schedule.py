"""Schedules of policies, with cron's own meaning of its five fields."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.rebalancing import schedule


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


async def test_a_run_is_hastened_but_never_delayed() -> None:
    """Out of turn where the turn is far; a turn that comes sooner stays."""
    timetable = schedule.Timetable(lambda _: None)
    ran = asyncio.Event()

    async def job() -> None:
        ran.set()

    timetable.start()
    try:
        timetable.set("far", Schedule(cron="0 0 29 2 *"), job)
        turn = timetable.next_run("far")
        timetable.hasten("far", timedelta(hours=1))
        hastened = timetable.next_run("far")
        timetable.hasten("far", timedelta(hours=2))
        unchanged = timetable.next_run("far")
        timetable.hasten("nobody", timedelta())
        timetable.hasten("far", timedelta())
        await asyncio.wait_for(ran.wait(), 30)
    finally:
        timetable.stop()

    assert hastened < turn  # type: ignore[operator] # known to exist in this test
    assert unchanged == hastened


async def test_a_job_that_is_under_way_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that lost its lease stops in the middle of runs; that is no error of a job."""
    monkeypatch.setattr(schedule, "FIRST_RUN", timedelta())
    begun = asyncio.Event()

    async def job() -> None:
        begun.set()
        await asyncio.Event().wait()

    timetable = schedule.Timetable(lambda _: None)
    timetable.start()
    timetable.set("policy", Schedule(interval_seconds=300), job)
    async with asyncio.timeout(60):
        await begun.wait()
    timetable.stop()
    for _ in range(10):
        await asyncio.sleep(0)

    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
