"""Schedules the runs of policies, and says which events hasten one; the only importer of APScheduler."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.events import EVENT_JOB_MAX_INSTANCES
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from plimsoll.api.v1alpha1.schedules import Schedule, Trigger
from plimsoll.model.kinds.watch_event import NodeAdded, NodeUpdated, WatchEvent

#: In cron's order.
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

#: The calendar repeats, and the library searches up to the year 9999: from here the search is short.
LATE = datetime(9950, 1, 1, tzinfo=UTC)

#: From a policy's being set to its first run at an interval.
FIRST_RUN = timedelta(seconds=1)

Job = Callable[[], Awaitable[None]]


class Timetable:
    """Runs jobs by cron or at an interval; a job never overlaps itself, missed runs are made up once.

    Args:
        skipped: Called with the name of a job that was due while it was still running.
    """

    def __init__(self, skipped: Callable[[str], None]) -> None:
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._scheduler.add_listener(lambda event: skipped(event.job_id), EVENT_JOB_MAX_INSTANCES)

    def start(self) -> None:
        """Begin; needs a running event loop."""
        self._scheduler.start()

    def stop(self) -> None:
        """End; a running job is not waited for."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def set(self, name: str, schedule: Schedule, job: Job) -> None:
        """Run a job by this schedule from now on; one at an interval runs for the first time in a second.

        What the user changed before the policy has been seen by then.
        """

        async def run() -> None:  # APScheduler awaits coroutine functions only
            with suppress(asyncio.CancelledError):  # it logs a traceback for a job that ends with us
                await job()

        first = {"next_run_time": datetime.now(UTC) + FIRST_RUN}
        self._scheduler.add_job(
            run,
            _trigger(schedule),
            id=name,
            replace_existing=True,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            **(first if schedule.interval_seconds is not None else {}),
        )

    def remove(self, name: str) -> None:
        """Run a job no more."""
        try:
            self._scheduler.remove_job(name)
        except JobLookupError:
            return

    def hasten(self, name: str, within: timedelta) -> None:
        """Run a job within that time, unless its turn comes sooner; its later turns stay as they are."""
        job = self._scheduler.get_job(name)
        soon = datetime.now(UTC) + within
        due = getattr(job, "next_run_time", None)
        if job is not None and (due is None or due > soon):
            job.modify(next_run_time=soon)

    def next_run(self, name: str) -> datetime | None:
        """When a job runs next, in UTC; None when it does not."""
        job = self._scheduler.get_job(name)
        moment: datetime | None = getattr(job, "next_run_time", None)
        return moment.astimezone(UTC) if moment else None


def triggers_of(event: WatchEvent) -> frozenset[Trigger]:
    """The triggers that an event fires; none for most, several where one update changes several things."""
    match event:
        case NodeAdded():
            return frozenset({Trigger.NODE_ADDED})
        case NodeUpdated(old, new):
            changed = {
                Trigger.NODE_LABELS_CHANGED: old.metadata.labels != new.metadata.labels,
                Trigger.NODE_TAINTS_CHANGED: old.spec.taints != new.spec.taints,
            }
            return frozenset(trigger for trigger, is_changed in changed.items() if is_changed)
        case _:
            return frozenset()


def check(schedule: Schedule) -> None:
    """Make sure that the schedule can be followed.

    Raises:
        ValueError: The cron expression never fires or the time zone is unknown.
    """
    if _trigger(schedule).get_next_fire_time(None, LATE) is None:
        raise ValueError(f'"{schedule.cron}" never fires: no month that it names has such a day')


def next_time(schedule: Schedule, now: datetime) -> datetime | None:
    """When the schedule is due next after a moment with a time zone; None for never."""
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
        ValueError: The expression or the time zone means nothing.
    """
    if schedule.cron is None:
        return None
    moment: datetime | None = _trigger(schedule).get_next_fire_time(None, now)
    return moment.astimezone(UTC) if moment else None


def _trigger(schedule: Schedule) -> BaseTrigger:
    if schedule.cron is None:
        return IntervalTrigger(seconds=schedule.interval_seconds, timezone=UTC)
    try:
        zone = ZoneInfo(schedule.time_zone or "UTC")
    except (KeyError, OSError) as exc:
        raise ValueError(f'there is no time zone "{schedule.time_zone}"; use an IANA name') from exc
    minute, hour, day, month, weekday = schedule.cron.lower().split()
    weekdays = weekday_names(weekday)
    common = {"minute": minute, "hour": hour, "month": month, "timezone": zone}
    if day != "*" and weekday != "*":
        # Where both days are restricted, cron fires on either.
        return OrTrigger([CronTrigger(day=day, **common), CronTrigger(day_of_week=weekdays, **common)])
    return CronTrigger(day=day, day_of_week=weekdays, **common)


def weekday_names(field: str) -> str:
    """Cron's day of week (0 and 7 are Sunday) as the names that APScheduler takes (whose 0 is Monday).

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
