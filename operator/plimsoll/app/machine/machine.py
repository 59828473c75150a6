"""Machine holds the operator's dependencies on its machine: time, randomness, names, threads, processes.

Simulations pass their own (docs/adr/0033).
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field

from plimsoll.app.forks.forked_computer import ForkedComputer
from plimsoll.app.machine.attempt_watch import watch_attempts
from plimsoll.app.machine.clock import SeededRandomness, SystemClock, ThreadComputer
from plimsoll.engine.plugin_calls import AttemptBudget
from plimsoll.ports.clock import Clock, Computer, Randomness, SnapshotComputer

T = TypeVar("T")


class SideLoop(Protocol):
    """Runs work that the main loop must not delay (:mod:`plimsoll.app.machine.loop_thread`)."""

    def call(self, function: Callable[[], object]) -> None:
        """Call a function there soon."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there; when a cancelled call returns, the coroutine has ended."""


def call_later(seconds: float, function: Callable[[], object]) -> None:
    """Call a function later in its own thread, even if the event loop hangs."""
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()


def load() -> str:
    """The other load of the CPUs, in words."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"


class Machine(Struct, frozen=True):
    """The machine on which one operator runs.

    Attributes:
        randomness: Creates random numbers from a seed; with None they differ each time.
        hostname: Used in the names of candidates and in events.
        unique: A string that differs from every other process's.
        computer: Runs plans outside the event loop.
        forks: Runs long plans on a snapshot; None to run all of them by ``computer``.
        call_later: Calls a function after a number of seconds, even if the event loop hangs.
        terminate: Ends the process immediately, with an exit status.
        used_s: CPU time of this process, in seconds.
        watch_attempts: Bounds the CPU time of the calling thread's scheduling attempts.
        load: The other load of the CPUs, in words.
    """

    clock: Clock = field(default_factory=SystemClock)
    randomness: Callable[[int | None], Randomness] = SeededRandomness
    hostname: str = field(default_factory=socket.gethostname)
    unique: Callable[[], str] = lambda: str(uuid.uuid4())
    computer: Computer = field(default_factory=ThreadComputer)
    forks: SnapshotComputer | None = field(default_factory=ForkedComputer)
    call_later: Callable[[float, Callable[[], object]], None] = call_later
    terminate: Callable[[int], object] = os._exit
    used_s: Callable[[], float] = time.process_time
    watch_attempts: Callable[[AttemptBudget], object] = watch_attempts
    load: Callable[[], str] = load
