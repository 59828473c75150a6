"""MoveExecutor carries out the instructions of the move machine, and hands it the answers as events.

It decides nothing. Instructions that need no answer from outside are carried out immediately and in order, so
that between the planner's judgement of a move and the reservation of its target nothing else happens. Those
that wait are carried out one after the other for each record, by a task of their own.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import Event, NodeNotClosed, RecordRefused, TimedOut
from plimsoll.rebalancing.moves.instructions import (
    CancelTimer,
    CloseNode,
    CreateRecord,
    Instruction,
    MoveInstruction,
    NodeDone,
    ReportFailure,
    RetryAt,
    WriteRecord,
)
from plimsoll.rebalancing.moves.machine import InvalidTransition, MoveMachine
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer

#: Carries an instruction out; the events that follow from it.
Immediate = Callable[[Any], Sequence[Event]]

#: Carries an instruction out that waits for an answer; the answer, None when it has none.
Awaited = Callable[[Any], Awaitable[Event | None]]


class MoveExecutor:
    """Connects the machine with what carries its instructions out.

    Args:
        machine: Decides.
        timer: Deadlines.
        clock: Time.
        observer: Notified of instructions that raise, and of events that cannot happen.
        immediate: What carries out the instructions that need no answer from outside, by type.
        awaited: What carries out the others.

    Attributes:
        machine: The same.
        progress: Notified after each event that was handled.
    """

    def __init__(
        self,
        machine: MoveMachine,
        timer: Timer,
        clock: Clock,
        observer: Observer,
        *,
        immediate: Mapping[type, Immediate],
        awaited: Mapping[type, Awaited],
    ) -> None:
        self.machine = machine
        self.progress = Signal()
        self._timer = timer
        self._clock = clock
        self._observer = observer
        self._immediate: dict[type, Immediate] = {
            RetryAt: self._retry_at,
            CancelTimer: self._cancel_timer,
            ReportFailure: self._report,
            **immediate,
        }
        self._awaited = dict(awaited)
        self._events: deque[Event] = deque()
        self._is_handling = False
        self._waiting: dict[str, deque[Instruction]] = {}  #: instructions that wait, by record or node
        self._tasks: set[asyncio.Task[None]] = set()

    # -- events --------------------------------------------------------------------------------------

    def post(self, *events: Event) -> None:
        """Something has happened; returns when all that needs no answer from outside is done."""
        self._events.extend(events)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events:
                self._handle(self._events.popleft())
        finally:
            self._is_handling = False
        self.progress.notify()

    def is_idle(self, *keys: str) -> bool:
        """Whether no instruction waits, of the records given or of all."""
        return not any(key in self._waiting for key in keys) if keys else not self._waiting

    async def quiet(self, bundle: str, keys: Sequence[str]) -> None:
        """Wait until a bundle is over or waits for another move of its workload, and is on record."""
        await self.progress.until(lambda: self.machine.is_quiet(bundle) and self.is_idle(*keys))

    async def close(self) -> None:
        """Cancel what waits."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _handle(self, event: Event) -> None:
        try:
            orders = self.machine.handle(event, self._clock.monotonic())
        except InvalidTransition as exc:
            self._observer.failed("the move machine", str(exc))
            return
        for order in orders:
            immediate = self._immediate.get(type(order))
            if immediate is None:
                self._enqueue(order)
                continue
            try:
                self._events.extend(immediate(order))
            except Exception as exc:  # noqa: BLE001 - one instruction's failure must not stop the others
                self._observer.failed(f"carrying out {type(order).__name__}", repr(exc))

    # -- instructions that wait ----------------------------------------------------------------------

    def _enqueue(self, order: Instruction) -> None:
        key = _subject(order)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(order)
            return
        self._waiting[key] = deque([order])
        task = asyncio.create_task(self._carry_out(key), name=f"move {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, key: str) -> None:
        waiting = self._waiting[key]
        try:
            while waiting:
                order = waiting.popleft()
                try:
                    event = await self._awaited[type(order)](order)
                except Exception as exc:  # noqa: BLE001 - one instruction's failure must not stop the others
                    self._observer.failed(f"carrying out {type(order).__name__} for {key}", repr(exc))
                    event = _unanswered(order, repr(exc))
                if event is not None:
                    self.post(event)
        finally:
            del self._waiting[key]
        self.progress.notify()

    # -- time and failures ---------------------------------------------------------------------------

    def _retry_at(self, order: RetryAt) -> Sequence[Event]:
        event = TimedOut(order.key, order.timer)
        self._timer.set((order.key, order.timer), order.at, lambda: self.post(event))
        return ()

    def _cancel_timer(self, order: CancelTimer) -> Sequence[Event]:
        self._timer.cancel((order.key, order.timer))
        return ()

    def _report(self, order: ReportFailure) -> Sequence[Event]:
        self._observer.failed(order.what, order.problem)
        return ()


def _subject(order: Instruction) -> str:
    """What an instruction is about: those about one subject are carried out in order."""
    match order:
        case MoveInstruction(key):
            return key
        case CloseNode(_, node) | NodeDone(node):
            return f"node {node}"
        case _:
            return type(order).__name__


def _unanswered(order: Instruction, problem: str) -> Event | None:
    """The answer to an instruction that broke, so that no move waits for it without an end."""
    match order:
        case CreateRecord(key, phase=phase) | WriteRecord(key, phase=phase):
            return RecordRefused(key, phase, WriteResult(WriteOutcome.UNKNOWN, problem))
        case CloseNode(bundle):
            return NodeNotClosed(bundle)
        case _:
            return None
