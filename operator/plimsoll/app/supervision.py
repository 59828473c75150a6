"""Supervises the long-running tasks of the process and its event loop.

The probes and the election read it from another thread, so it holds only numbers and finished tasks.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from plimsoll.app.machine.machine import Machine
from plimsoll.ports.observer import Observer
from plimsoll.timing.task_sets import first_of

#: Seconds between two beats of a loop.
BEAT_S = 0.5

#: Seconds without a beat of the main loop after which the process is not ready, and after which it does not
#: renew its lease and should be restarted. The first list of a large cluster never blocks the loop that long.
STALLED_S, STUCK_S = 10.0, 60.0

#: Seconds over which CPU use is averaged.
USED_S = 10.0

#: Maximum seconds from the beginning of shutdown to the end of the process.
END_S = 25.0

#: The exit status of a process that did not end by itself.
FAILED = 1


class Supervision:
    """Supervises the long-running tasks of one process.

    Args:
        machine: The machine on which the process runs.
        observer: Notified of the delays of each loop.
    """

    def __init__(self, machine: Machine, observer: Observer) -> None:
        self._machine = machine
        self._clock = clock = machine.clock
        self._observer = observer
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._own: list[asyncio.Task[Any]] = []
        self.failure = ""
        self._over = asyncio.Event()
        self._ending_since: float | None = None
        self._beaten = clock.monotonic()
        self._worst: list[tuple[float, float]] = []  #: delays of the main loop above a beat, with their times
        self._used = self._machine.used_s()
        self._used_at = clock.monotonic()

    # -- tasks ---------------------------------------------------------------------------------------

    def begin(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that must run as long as the process does."""
        task = self.watch(name, asyncio.create_task(work, name=name))
        self._own.append(task)
        return task

    def watch(self, name: str, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Watch a task that was started elsewhere."""
        task.add_done_callback(lambda _: self._over.set())
        self._tasks[name] = task
        return task

    @property
    def ended(self) -> list[tuple[str, asyncio.Task[Any]]]:
        """The tasks that have ended."""
        return [(name, task) for name, task in list(self._tasks.items()) if task.done()]

    def fail(self, problem: str) -> None:
        """Report that something other than our tasks has ended on which the process depends."""
        self.failure = self.failure or problem
        self._over.set()

    async def until_one_ends(self, stop: asyncio.Event) -> None:
        """Wait until a task has ended, or a signal stops the process."""
        while not (stop.is_set() or self.ended or self.failure):
            self._over.clear()
            await first_of(stop.wait(), self._over.wait())

    async def cancel(self) -> None:
        """Cancel the tasks that were started here; wait until they have ended."""
        for task in self._own:
            task.cancel()
        await asyncio.gather(*self._own, return_exceptions=True)

    def end(self) -> None:
        """Note the beginning of shutdown; if it does not end in time, the process is killed."""
        if self._ending_since is None:
            self._ending_since = self._clock.monotonic()
            self._machine.call_later(END_S, self._end_by_force)

    def _end_by_force(self) -> None:
        structlog.get_logger("plimsoll").error("ended by force: tasks did not end in time", seconds=END_S)
        self._machine.terminate(FAILED)

    # -- probes, from another thread -------------------------------------------------------------------

    def problem(self) -> str:
        """Why the process cannot work and should be restarted, "" when it can work."""
        if self._ending_since is None:
            if self.failure:
                return self.failure
            for name, task in self.ended:
                return f"{name} has ended: {_why(task)}"
        return self._stall(STUCK_S)

    def unready(self) -> str:
        """Why the process is currently not usable, "" when it is."""
        if self._ending_since is not None:
            return "ending"
        return self.problem() or self._stall(STALLED_S)

    def hindrance(self) -> str:
        """Why the process must not lead, "" when it may lead."""
        return self._stall(STUCK_S)

    def pressure(self) -> str:
        """What may have prevented threads of this process from running, in words."""
        now, used = self._clock.monotonic(), self._machine.used_s()
        since_s = max(0.001, now - self._used_at)
        lag_s = max([now - self._beaten - BEAT_S, *(late for at, late in list(self._worst) if at > now - 30)])
        parts = [f"the process used {(used - self._used) / since_s:.1f} CPUs"]
        if lag_s > BEAT_S:
            parts.append(f"its main loop was up to {lag_s:.1f} s late")
        parts.append(self._machine.load())
        return ", ".join(parts)

    def _stall(self, limit_s: float) -> str:
        silent_s = self._clock.monotonic() - self._beaten
        return f"the event loop has not run for {silent_s:.0f} s" if silent_s > limit_s else ""

    # -- beats -----------------------------------------------------------------------------------------

    async def beat(self) -> None:
        """Beat in the main loop until cancelled."""
        while True:
            due = self._clock.monotonic() + BEAT_S
            await self._clock.sleep(BEAT_S)
            now = self._clock.monotonic()
            late_s = max(0.0, now - due)
            self._beaten = now
            if late_s > BEAT_S:
                recent = (each for each in self._worst if each[0] > now - 30)
                self._worst = [*recent, (now, late_s)]
            self._observer.loop_lagged("main", late_s)

    async def measure(self) -> None:
        """Measure the delay of the other thread's loop until cancelled."""
        while True:
            due = self._clock.monotonic() + BEAT_S
            await self._clock.sleep(BEAT_S)
            now = self._clock.monotonic()
            self._observer.loop_lagged("election", max(0.0, now - due))
            if now - self._used_at > USED_S:
                self._used, self._used_at = self._machine.used_s(), now


def _why(task: asyncio.Task[Any]) -> str:
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return "without an error" if error is None else str(error) or type(error).__name__
