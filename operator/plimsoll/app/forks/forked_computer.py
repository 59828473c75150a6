"""Computes in forks of this process, so that the event loop shares neither its lock nor its CPU."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from plimsoll.app.forks import child_process, memory_room
from plimsoll.app.forks.child_process import ANSWER, ChildProcess
from plimsoll.ports.clock import Ask, ComputationFailed, ComputationLost, NoRoomForProcess

T = TypeVar("T")

#: Bytes that must remain free after a child has copied all of its shared memory.
MARGIN = 64 * 2**20


class ForkedComputer:
    """Forks a child for each computation; kills it if the computation is cancelled or its loop ends."""

    def obstacle(self) -> str:
        """Why no child can be forked now; "" when one can."""
        if sys.platform != "linux":
            return "processes are forked on Linux only"
        room, own = memory_room.room_bytes(), memory_room.resident_bytes()
        if room is not None and room < own + MARGIN:
            return f"{room >> 20} MiB of memory are free, and a fork may need {(own + MARGIN) >> 20} MiB"
        return ""

    async def compute(self, function: Callable[[], bytes]) -> bytes:
        """Return the function's result, computed on the objects as they are now.

        Raises:
            NoRoomForProcess: The system refused another process.
            ComputationFailed: The function raised.
            ComputationLost: The child ended without a result.
        """
        async with self.conversation(lambda _: function()) as ask:
            return await ask(b"")

    @asynccontextmanager
    async def conversation(self, function: Callable[[bytes], bytes]) -> AsyncIterator[Ask]:
        """Start a child that answers one request after the other; it ends with the context.

        Raises:
            NoRoomForProcess: The system refused another process.
        """
        try:
            child = child_process.fork(function)
        except OSError as exc:
            raise NoRoomForProcess(str(exc)) from exc
        ended: list[int] = []

        async def ask(question: bytes) -> bytes:
            said = await _in_thread(lambda: child.ask(question), child)
            if said is None:
                ended.append(await _in_thread(child.wait, child))
                raise ComputationLost(_story(ended[0]))
            kind, text = said
            if kind != ANSWER:
                raise ComputationFailed(text.decode(errors="replace"))
            return text

        try:
            yield ask
        finally:
            if not ended:
                child.kill()
                await _in_thread(child.wait, child)


async def _in_thread(work: Callable[[], T], child: ChildProcess) -> T:
    """Run blocking work until the child answers or ends; if cancelled, kill the child and await its end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result = work()
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=run, name="plan", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        child.kill()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(done)
        raise


def _story(status: int) -> str:
    """A sentence about how a child without a result ended."""
    if status >= 0:
        return f"the process that made the plan ended with {status} and without a plan"
    hint = ", as the kernel does when memory runs out" if -status == signal.SIGKILL else ""
    name = signal.Signals(-status).name if -status in signal.valid_signals() else str(-status)
    return f"the process that made the plan was killed by {name}{hint}"
