"""An event loop in virtual time: ready calls are drawn by a seed, and nothing leaves the process.

There is no selector. Each step takes a microsecond; when no call is ready, time moves to the next timer.
What is drawn and when depends on nothing but the random numbers handed in: tasks and futures hash by a
counter, so that a set of them has the same order in each run.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import sys
from collections.abc import Callable
from random import Random
from typing import Any, Protocol, Self, cast

#: Seconds that a step takes.
STEP_S = 1e-6

#: Steps without a timer in between after which tasks only wake each other.
STEPS_AT_MOST = 3_000_000


#: Steps of one run, dozens of times those of an ordinary one; a run that takes more would hold up all others.
STEPS_OF_A_RUN = 1_000_000


class OutsideWorldError(RuntimeError):
    """Code under simulation wants a socket, a thread or a process."""


class StandstillError(RuntimeError):
    """No call is ready and no timer is set, or calls do nothing but wake each other."""


class EndlessRunError(StandstillError):
    """A run has taken more steps than any that converges: something is done again and again."""

    def __init__(self, steps: float) -> None:
        super().__init__(f"the run was given up after {steps:,.0f} steps: something is done again and again")


class Incarnation(Protocol):
    """A process that is simulated: one life of a replica.

    Attributes:
        is_held: Whether its calls wait.
        is_dead: Whether it has ended.
        held: Those that do.
        name: Of the process.
    """

    name: str
    is_held: bool
    is_dead: bool
    held: list[asyncio.Handle]


#: The process that a call belongs to; None for the world around.
PROCESS: contextvars.ContextVar[Incarnation | None] = contextvars.ContextVar("PROCESS", default=None)


class _Counted:
    """Hashes by a number of its own."""

    _numbers = itertools.count()
    _number: int

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class CountedFuture(_Counted, asyncio.Future[Any]):
    """A future."""

    def __new__(cls, *_args: Any, **_more: Any) -> Self:
        made = super().__new__(cls)
        made._number = next(cls._numbers)
        return made


class CountedTask(_Counted, asyncio.Task[Any]):
    """A task.

    Attributes:
        process: The process that it belongs to.
    """

    process: Incarnation | None

    def __new__(cls, *_args: Any, context: contextvars.Context | None = None, **_more: Any) -> Self:
        made = super().__new__(cls)
        made._number = next(cls._numbers)
        made.process = PROCESS.get() if context is None else context.get(PROCESS)
        return made


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs calls in an order that the random numbers choose.

    Attributes:
        steps: How many calls it has run.
        most_steps: How many it may run.
        unseen: Tasks that have failed without anything taking their exception.
    """

    _ready: list[Any]  # handles; drawn from anywhere, not from the left
    _scheduled: list[Any]
    _asyncgens: Any
    _asyncgen_firstiter_hook: Any
    _stopping: bool
    _thread_id: int | None

    def __init__(self, random: Random) -> None:
        super().__init__()
        _Counted._numbers = itertools.count()
        self._ready = []
        self._draw = random.random
        self._now = 0.0
        self._since_timer = 0
        self._timers = 0
        self.steps = 0
        self.most_steps: float = STEPS_OF_A_RUN
        self.unseen: list[str] = []
        self.set_task_factory(_counted)

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def call_at(  # type: ignore[override] # likewise
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """As any loop's; timers of one moment become ready in the order in which they were set."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        cast("Any", timer)._scheduled = True
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        return timer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what failed unseen; tasks of a process that has ended went with its memory."""
        task = context.get("task") or context.get("future")
        if not isinstance(task, CountedTask):
            super().call_exception_handler(context)
        elif task.process is None and _ended_with_its_connection(context.get("exception")):
            return
        elif task.process is None or not task.process.is_dead:
            whose = "the world" if task.process is None else task.process.name
            problem = repr(context.get("exception") or context["message"])
            self.unseen.append(f"a task of {whose}, {_named(task)}, has failed unseen: {problem}")

    def create_future(self) -> CountedFuture:
        """A future of this loop."""
        return CountedFuture(loop=self)

    def call_soon_threadsafe(  # type: ignore[override] # typeshed ties the arguments to the callback
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """As ``call_soon``: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def release(self, process: Incarnation) -> None:
        """The calls of a process that was held wait no longer."""
        process.is_held = False
        self._ready += process.held
        process.held.clear()

    # -- refused -----------------------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override] # likewise
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """No threads."""
        raise OutsideWorldError(f"a thread for {func!r}: hand in a Computer or a SideLoop instead")

    async def create_connection(self, *args: Any, **_: Any) -> Any:
        """No sockets."""
        raise OutsideWorldError(f"a connection to {args[1:]}: hand in a Transport instead")

    async def create_server(self, *args: Any, **_: Any) -> Any:
        """No sockets."""
        raise OutsideWorldError(f"a server on {args[1:]}: leave it out of the simulation")

    async def getaddrinfo(self, host: Any, *_: Any, **__: Any) -> Any:
        """No names."""
        raise OutsideWorldError(f"the address of {host}: hand in a Transport instead")

    async def subprocess_exec(self, *args: Any, **_: Any) -> Any:
        """No processes."""
        raise OutsideWorldError(f"the process {args[1:]}")

    subprocess_shell = subprocess_exec

    def add_signal_handler(  # type: ignore[override] # likewise
        self, sig: int, *_: Any
    ) -> None:
        """No signals."""
        raise OutsideWorldError(f"signal {sig}: stop the process by its event")

    # -- running -----------------------------------------------------------------------------------------

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0][2]._cancelled:
            heapq.heappop(scheduled)[2]._scheduled = False
        if not ready:
            if not scheduled:
                raise StandstillError("all tasks wait, and no timer is set")
            self._now = max(self._now, scheduled[0][0])
            self._since_timer = 0
        while scheduled and scheduled[0][0] <= self._now:
            timer = heapq.heappop(scheduled)[2]
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        if not ready:
            return
        drawn = int(self._draw() * len(ready))
        handle = ready[drawn]
        ready[drawn] = ready[-1]
        ready.pop()
        if handle._cancelled:
            return
        process = handle._context.get(PROCESS)
        if process is not None and process.is_held:
            process.held.append(handle)
            return
        self.steps += 1
        self._since_timer += 1
        self._now += STEP_S
        if self._since_timer > STEPS_AT_MOST:
            raise StandstillError("tasks wake each other without end")
        if self.steps > self.most_steps:
            raise EndlessRunError(self.most_steps)
        handle._run()

    def run_forever(self) -> None:
        """Run until stopped."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("a loop is running in this thread")
        hooks = sys.get_asyncgen_hooks()
        self._thread_id = 0
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._finalizer)
        asyncio._set_running_loop(self)
        try:
            while not self._stopping:
                self._run_once()
        finally:
            self._stopping = False
            self._thread_id = None
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _finalizer(self, generator: Any) -> None:
        if not self.is_closed():
            self._asyncgens.discard(generator)
            self.call_soon(self.create_task, generator.aclose())


def _counted(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> CountedTask:
    return CountedTask(coro, loop=loop, **options)


def _named(task: asyncio.Task[Any]) -> str:
    """The name that a task was given, else that of its coroutine: numbers differ from run to run."""
    name = task.get_name()
    return getattr(task.get_coro(), "__qualname__", name) if name.startswith("Task-") else name


def _ended_with_its_connection(problem: BaseException | None) -> bool:
    """Whether aiohttp's server has begun to answer on a connection that was lost just before.

    Its handler has let go of its server, or of what makes requests, by then, and uses it nevertheless
    (aiohttp 3, ``web_protocol.RequestHandler.start``); the answer is awaited by none.
    """
    trace = problem.__traceback__ if isinstance(problem, (TypeError, AssertionError)) else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "aiohttp.web_protocol"
