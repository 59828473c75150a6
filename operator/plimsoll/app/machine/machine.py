"""Machine holds what the operator takes from the machine it runs on: time, chance, names, threads, processes.

A simulation hands in its own (docs/adr/0033).
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from plimsoll.app.forks.forked_computer import ForkedComputer
from plimsoll.app.machine.clock import SeededRandomness, SystemClock, ThreadComputer
from plimsoll.ports.clock import Clock, Computer, Randomness, SnapshotComputer

T = TypeVar("T")


class SideLoop(Protocol):
    """Where work runs that the main loop must not delay (:mod:`plimsoll.app.machine.loop_thread`)."""

    def call(self, function: Callable[[], object]) -> None:
        """Call a function there, soon."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there; one that is cancelled has ended when this returns."""


def call_later(seconds: float, function: Callable[[], object]) -> None:
    """Call a function in a thread of its own, even if the event loop hangs."""
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()


def load() -> str:
    """What else the processors had to do, in words."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine below one operator.

    Attributes:
        randomness: Makes random numbers by seed; None differs each time.
        hostname: In the names of candidates and in events.
        unique: A text that no other process has.
        computer: Makes plans outside the event loop.
        forks: Makes long plans on a snapshot; None makes all by ``computer``.
        call_later: Calls a function after so many seconds, even if the event loop hangs.
        terminate: Ends the process on the spot, with an exit status.
        used_s: Processor time of this process, in seconds.
        load: What else the processors have to do, in words.
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
    load: Callable[[], str] = load
