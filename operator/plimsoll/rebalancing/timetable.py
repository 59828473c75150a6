"""Runs each policy when it is due, and sooner after an event that its schedule names."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec import Struct

from plimsoll.api.v1alpha1.schedules import Schedule, Trigger
from plimsoll.cluster.watch_events import NodeAdded, NodeUpdated, WatchEvent
from plimsoll.policies.schedule import FIRST_RUN, next_time
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.timer import Timer

#: Tolerance for jobs before their time, as two clocks are read one after the other.
EARLY = timedelta(milliseconds=1)

Job = Callable[[], Awaitable[None]]


class _Entry(Struct):
    schedule: Schedule
    job: Job
    skipped: Callable[[str], None]  #: called with the name when the job is due while it is still running
    due: datetime | None  #: None if the schedule never fires again
    asked: datetime | None = None  #: when an event wants a run at the latest, by the wall clock of its time
    asked_s: float = math.inf  #: the same in monotonic seconds, which count if the wall clock was set


class Timetable:
    """Runs jobs by cron or at an interval; a job never overlaps itself, missed runs are made up once.

    APScheduler computes when cron fires; its own scheduler reads the machine's clock (docs/adr/0033).

    Args:
        timer: Calls due jobs; must be running.
        clock: Provides the wall time that schedules refer to.
        observer: Notified of a job that raises.
    """

    def __init__(self, timer: Timer, clock: Clock, observer: Observer) -> None:
        self._timer = timer
        self._clock = clock
        self._observer = observer
        self._entries: dict[str, _Entry] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._is_started = False

    def start(self) -> None:
        """Begin; needs a running event loop."""
        self._is_started = True
        for name in self._entries:
            self._wait(name)

    def stop(self) -> None:
        """End; running jobs are cancelled."""
        self._is_started = False
        for name in self._entries:
            self._timer.cancel((self, name))
        for task in self._running.values():
            task.cancel()

    def set(self, name: str, schedule: Schedule, job: Job, skipped: Callable[[str], None]) -> None:
        """Run a job by this schedule from now on; one at an interval runs for the first time in a second.

        The user's changes before the policy have been mirrored by then. ``skipped`` is called with the name
        when the job is due while it is still running.
        """
        now = self._now()
        due = now + FIRST_RUN if schedule.interval_seconds is not None else next_time(schedule, now)
        self._entries[name] = _Entry(schedule, job, skipped, due)
        self._wait(name)

    def remove(self, name: str) -> None:
        """Remove a job."""
        if self._entries.pop(name, None) is not None:
            self._timer.cancel((self, name))

    def hasten(self, name: str, within: timedelta) -> None:
        """Run a job within that time, unless it is due sooner; later times by cron stay the same."""
        entry = self._entries.get(name)
        soon_s = self._clock.monotonic() + within.total_seconds()
        if entry is not None and soon_s < entry.asked_s:
            entry.asked, entry.asked_s = self._now() + within, soon_s
            self._wait(name)

    def is_running(self, name: str) -> bool:
        """Whether the job runs now."""
        running = self._running.get(name)
        return running is not None and not running.done()

    def next_run(self, name: str) -> datetime | None:
        """The next run of a job, in UTC; None if it does not run."""
        entry = self._entries.get(name)
        times = () if entry is None else (each for each in (entry.due, entry.asked) if each is not None)
        return min((each.astimezone(UTC) for each in times), default=None)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _wait(self, name: str) -> None:
        entry = self._entries[name]
        if not self._is_started:
            return
        until_s = entry.asked_s
        if entry.due is not None:
            left_s = max(0.0, (entry.due - self._now()).total_seconds())
            until_s = min(until_s, self._clock.monotonic() + left_s)
        if until_s == math.inf:
            self._timer.cancel((self, name))
            return
        self._timer.set((self, name), until_s, partial(self._fall_due, name))

    def _fall_due(self, name: str) -> None:
        """Run a job; if cron set its time and the wall clock was set back, wait for that time."""
        entry, now = self._entries[name], self._now()
        due = entry.due
        is_asked = entry.asked_s - self._clock.monotonic() <= EARLY.total_seconds()
        if due is None or due - now > EARLY:
            has_passed = entry.schedule.interval_seconds is not None or is_asked
            due = now if has_passed else due  # so many seconds have passed, whatever the wall clock shows now
        if due is not None and due - now <= EARLY:
            entry.asked, entry.asked_s = None, math.inf
            running = self._running.get(name)
            if running is None or running.done():
                self._running[name] = asyncio.create_task(self._run(name, entry.job), name=f"run of {name}")
            else:
                entry.skipped(name)
            entry.due = _turn_after(entry.schedule, due, max(now, due))
        self._wait(name)

    async def _run(self, name: str, job: Job) -> None:
        try:
            await job()
        except Exception as exc:  # noqa: BLE001 - its next turn comes all the same
            self._observer.failed(f"run of {name}", repr(exc))


def _turn_after(schedule: Schedule, due: datetime, now: datetime) -> datetime | None:
    """The first due time after now, for a schedule that was last due at that time."""
    if schedule.interval_seconds is None:
        return next_time(schedule, now)
    interval = timedelta(seconds=schedule.interval_seconds)
    return due + interval * ((now - due) // interval + 1)


def triggers_of(event: WatchEvent) -> frozenset[Trigger]:
    """The triggers that an event fires; none for most, several if one update changes several things."""
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
