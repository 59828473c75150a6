"""Computes due times of schedules, and open windows: cron in a time zone, an interval; by APScheduler."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from plimsoll.api.v1alpha1.schedules import Schedule

#: In cron's order.
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

#: The calendar repeats, and the library searches up to the year 9999: from here on the search is short.
LATE = datetime(9950, 1, 1, tzinfo=UTC)

#: Delay from setting a policy to its first run at an interval.
FIRST_RUN = timedelta(seconds=1)


def check(schedule: Schedule) -> None:
    """Validate that the schedule can be followed.

    Raises:
        ValueError: The cron expression never fires or the time zone is unknown.
    """
    if _trigger(schedule).get_next_fire_time(None, LATE) is None:
        raise ValueError(f'"{schedule.cron}" never fires: no month that it names has such a day')


def next_time(schedule: Schedule, now: datetime) -> datetime | None:
    """When the schedule is next due after a moment with a time zone; None for never."""
    if schedule.interval_seconds is not None:
        return now + timedelta(seconds=schedule.interval_seconds)
    moment: datetime | None = _trigger(schedule).get_next_fire_time(None, now + timedelta(microseconds=1))
    return moment


def is_open(schedule: Schedule, duration_s: float, now: datetime) -> bool:
    """Whether a window that opens by this schedule is open; ``now`` has a time zone."""
    just_closed = now - timedelta(seconds=duration_s)
    opened = _trigger(schedule).get_next_fire_time(None, just_closed + timedelta(microseconds=1))
    return opened is not None and opened <= now


def next_fire(schedule: Schedule, now: datetime) -> datetime | None:
    """When a cron expression fires next, in UTC; None for an interval, which counts from the policy's start.

    Raises:
        ValueError: The expression or the time zone is invalid.
    """
    if schedule.cron is None:
        return None
    moment: datetime | None = _trigger(schedule).get_next_fire_time(None, now)
    return moment.astimezone(UTC) if moment else None


def _trigger(schedule: Schedule) -> BaseTrigger:
    if schedule.cron is None:
        return IntervalTrigger(seconds=schedule.interval_seconds, timezone=UTC)
    return _cron_trigger(schedule.cron.lower(), schedule.time_zone or "UTC")


@lru_cache(256)  # windows are asked again and again whether they are open; a trigger has no state
def _cron_trigger(cron: str, time_zone: str) -> BaseTrigger:
    try:
        zone = ZoneInfo(time_zone)
    except (KeyError, OSError) as exc:
        raise ValueError(f'there is no time zone "{time_zone}"; use an IANA name') from exc
    minute, hour, day, month, weekday = cron.split()
    weekdays = weekday_names(weekday)
    common = {"minute": minute, "hour": hour, "month": month, "timezone": zone}
    if day != "*" and weekday != "*":
        # If both days are restricted, cron fires on either.
        return OrTrigger([CronTrigger(day=day, **common), CronTrigger(day_of_week=weekdays, **common)])
    return CronTrigger(day=day, day_of_week=weekdays, **common)


def weekday_names(field: str) -> str:
    """Cron's day of week (0 and 7 are Sunday) in the names that APScheduler takes (whose 0 is Monday).

    Raises:
        ValueError: A range runs backwards.
    """
    if field == "*":
        return field
    chosen: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        low = 0 if span == "*" else _weekday(first)
        high = 6 if span == "*" else _weekday(last) if dash else (6 if step else low)
        if dash and high < low:
            high += 7 if high == 0 else 0
        if high < low:
            raise ValueError(f'the days "{span}" run backwards; write them as a list')
        chosen |= {day % 7 for day in range(low, high + 1, int(step or 1))}
    return ",".join(DAYS[day] for day in sorted(chosen))


def _weekday(text: str) -> int:
    return DAYS.index(text) if text in DAYS else int(text)
