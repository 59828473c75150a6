"""Computes in forks of this process, so that the event loop shares neither its lock nor its processor."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable

from plimsoll.app.forks import child_process, memory_room
from plimsoll.app.forks.child_process import ANSWER, ChildProcess
from plimsoll.ports.clock import ComputationFailed, ComputationLost, NoRoomForProcess

#: Bytes of memory that are to be left when a child has copied all that it shares.
MARGIN = 64 * 2**20


class ForkedComputer:
    """Forks a child for each computation; one that is cancelled, or whose loop ends, is killed."""

    def obstacle(self) -> str:
        """Why no child can be had now, "" when one can."""
        if sys.platform != "linux":
            return "processes are forked on Linux only"
        room, own = memory_room.room_bytes(), memory_room.resident_bytes()
        if room is not None and room < own + MARGIN:
            return f"{room >> 20} MiB of memory are free, and a fork may need {(own + MARGIN) >> 20} MiB"
        return ""

    async def compute(self, function: Callable[[], bytes]) -> bytes:
        """What the function returns, computed on the objects of this moment.

        Raises:
            NoRoomForProcess: The system refused another process.
            ComputationFailed: The function raised.
            ComputationLost: The child ended without an answer.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[bytes, int]] = loop.create_future()
        try:
            child = child_process.fork(function)
        except OSError as exc:
            raise NoRoomForProcess(str(exc)) from exc
        attendant = threading.Thread(target=_attend, args=(child, loop, ended), name="plan", daemon=True)
        attendant.start()
        try:
            received, status = await asyncio.shield(ended)
        except asyncio.CancelledError:
            child.kill()
            with contextlib.suppress(asyncio.CancelledError):  # the loop ends: the attendant waits for it
                await asyncio.shield(ended)
            raise
        if status or not received:
            raise ComputationLost(_story(status))
        if not received.startswith(ANSWER):
            raise ComputationFailed(received[1:].decode(errors="replace"))
        return received[1:]


def _attend(
    child: ChildProcess, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[tuple[bytes, int]]
) -> None:
    outcome = child.attend()

    def settle() -> None:
        if not ended.done():
            ended.set_result(outcome)

    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(settle)


def _story(status: int) -> str:
    """What became of a child that gave no answer."""
    if status >= 0:
        return f"the process that made the plan ended with {status} and without a plan"
    hint = ", as the kernel does when memory runs out" if -status == signal.SIGKILL else ""
    name = signal.Signals(-status).name if -status in signal.valid_signals() else str(-status)
    return f"the process that made the plan was killed by {name}{hint}"
