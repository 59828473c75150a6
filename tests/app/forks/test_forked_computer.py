"""Computations in forks: their answers, their ends, their distance from the operator."""

import asyncio
import contextvars
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.app.forks import child_process, memory_room
from plimsoll.app.forks.forked_computer import ForkedComputer
from plimsoll.ports.clock import ComputationFailed, ComputationLost, NoRoomForProcess

WHO = contextvars.ContextVar("WHO", default="nobody")

DIES = """
import os, signal, time
from plimsoll.app.forks import child_process

child = child_process.fork(lambda question: time.sleep(60))
os.kill(os.getpid(), signal.SIGKILL)
"""


def hang() -> bytes:
    """Wait until somebody ends this process."""
    time.sleep(60)
    return b""


def die(number: int) -> Callable[[], bytes]:
    """Kill the process that computes."""

    def kill() -> bytes:
        os.kill(os.getpid(), number)
        return hang()

    return kill


async def test_an_answer_and_a_failure_come_back() -> None:
    """From another process, which has the objects and the context of the caller; what it changes is lost."""
    WHO.set("me")
    seen: list[str] = []
    large = b"x" * 300_000

    def answer() -> bytes:
        seen.append("here")
        return f"{os.getpid()} {WHO.get()} {len(seen)} {threading.active_count()} ".encode() + large

    pid, who, changed, threads, rest = (await ForkedComputer().compute(answer)).split(b" ")
    assert int(pid) != os.getpid()
    assert (who, changed, rest, seen) == (b"me", b"1", large, [])
    assert threads == b"2", "the one that forked, and the one that ends with the operator"
    with pytest.raises(ComputationFailed, match=r"^ValueError\('no such pod'\)$"):
        await ForkedComputer().compute(fails)
    assert is_gone(int(pid))


async def test_a_child_keeps_what_it_may_write_to() -> None:
    """Standard output and error are the operator's; all else that was open leads nowhere."""
    with socket.socket() as other:
        numbers = (1, 2, other.fileno())

        def look() -> bytes:
            return "\n".join(str(Path(f"/proc/self/fd/{each}").readlink()) for each in numbers).encode()

        ours, theirs = look(), await ForkedComputer().compute(look)

    assert theirs.split(b"\n") == [*ours.split(b"\n")[:2], b"/dev/null"]


async def test_a_child_answers_one_question_after_the_other() -> None:
    """With what it has learned from those before; a question that it cannot answer does not end it."""
    heard: list[bytes] = []

    def answer(question: bytes) -> bytes:
        heard.append(question)
        return b" ".join(heard) if question else fails()

    async with ForkedComputer().conversation(answer) as ask:
        assert await ask(b"one") == b"one"
        with pytest.raises(ComputationFailed):
            await ask(b"")
        assert await ask(b"two" * 100_000) == b"one  " + b"two" * 100_000
    assert heard == []


def is_gone(pid: int) -> bool:
    """Whether a child has ended, and was waited for."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def fails() -> bytes:
    """Raise."""
    raise ValueError("no such pod")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGKILL, "was killed by SIGKILL, as the kernel does when memory runs out"),
        (signal.SIGTERM, "was killed by SIGTERM"),
    ],
)
async def test_a_child_that_dies_harms_only_itself(number: int, said: str) -> None:
    """It is said how it ended; a signal for it does not reach the operator's loop; the next one computes."""
    told: list[int] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.append, 1)
    try:
        with pytest.raises(ComputationLost) as lost:
            await ForkedComputer().compute(die(number))
        assert await ForkedComputer().compute(lambda: b"done") == b"done"
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    assert str(lost.value) == f"the process that made the plan {said}"
    assert told == []


async def test_a_child_that_ends_without_an_answer_is_said() -> None:
    """Whatever a plugin calls."""
    with pytest.raises(ComputationLost, match="ended with 3 and without a plan"):
        await ForkedComputer().compute(lambda: os._exit(3))


async def test_a_cancelled_computation_has_ended() -> None:
    """Its process is gone, and waited for."""
    children: list[child_process.ChildProcess] = []
    fork = child_process.fork

    def noted(function: Callable[[bytes], bytes]) -> child_process.ChildProcess:
        children.append(fork(function))
        return children[-1]

    task = asyncio.create_task(ForkedComputer().compute(hang))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "fork", noted)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert is_gone(children[0].pid)
    children[0].kill()  # nothing is left that it could hit


def test_a_child_keeps_no_connection_open() -> None:
    """What the operator closes is closed, also while a child computes."""
    ours, theirs = socket.socketpair()
    child = child_process.fork(lambda _: hang())
    try:
        ours.close()
        theirs.settimeout(30)
        assert theirs.recv(1) == b""
    finally:
        child.kill()
        assert child.ask(b"") is None
        assert child.wait() == -signal.SIGKILL
        theirs.close()


def test_a_child_ends_with_the_operator() -> None:
    """However that ends: the output, which the child holds as well, comes to its end."""
    command = [sys.executable, "-c", DIES]
    assert (
        subprocess.run(command, timeout=300, check=False, capture_output=True).returncode == -signal.SIGKILL
    )


async def test_without_room_no_process_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipes are closed, and somebody else computes."""
    before = descriptors()
    monkeypatch.setattr(os, "fork", refuse)

    with pytest.raises(NoRoomForProcess, match="Resource temporarily unavailable"):
        await ForkedComputer().compute(hang)
    assert descriptors() == before


def descriptors() -> list[str]:
    """What this process has open."""
    return [each.name for each in Path("/proc/self/fd").iterdir()]


def refuse() -> int:
    """As the system does when a container may have no more processes."""
    raise BlockingIOError(11, "Resource temporarily unavailable")


@pytest.mark.parametrize(("platform", "room", "said"), [
    ("linux", None, ""),
    ("linux", 1 << 40, ""),
    ("linux", 1 << 20, "1 MiB of memory are free"),
    ("darwin", None, "on Linux only"),
])  # fmt: skip
def test_where_no_child_can_be_had(
    platform: str, room: int | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere than on Linux, and where it might not have the memory that it may come to need."""
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(memory_room, "room_bytes", lambda: room)

    obstacle = ForkedComputer().obstacle()
    assert said in obstacle
    assert bool(obstacle) is bool(said)
