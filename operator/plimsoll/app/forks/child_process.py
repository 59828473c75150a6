"""A child process: a fork of this one that computes one answer, writes it into a pipe, and ends.

The child has all objects as they are at the fork, and shares their memory until one side writes to it
(copy on write). Of the operator it has nothing else:

* only the thread that forked goes on in it. It never returns to the event loop: it ends with ``os._exit``, so
  that no handler, buffer or destructor of the operator runs a second time;
* its copies of sockets, files and the loop's selector are replaced by ``/dev/null`` before it computes: no
  connection is kept open by it, no port, and no lease, which only the operator's own threads renew;
* signals have their default effect, and none reaches the operator's loop through it;
* it has a lower priority than the operator (``NICE``), and is the first to be killed when memory runs out;
* it ends when the operator does: a thread waits for the end of a pipe that only the operator holds.

Locks that other threads hold at the fork stay locked in the child, except for those that Python, its logging
and the C library make new: what is computed takes no lock of the operator.
"""

import contextlib
import gc
import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

#: How much lower the child's priority is: under contention it gets about a tenth of the operator's share.
NICE = 10

#: What stands before an answer, and before the text of an exception.
ANSWER, PROBLEM = b"=", b"!"

#: Bytes of one read.
CHUNK = 1 << 20

_DESCRIPTORS = Path("/dev/fd")


class ChildProcess:
    """One child, from its fork until it has been waited for.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, pid: int, answer: int, lifeline: int) -> None:
        self.pid = pid
        self._answer, self._lifeline = answer, lifeline
        self._ending = threading.Lock()
        self._is_gone = False

    def kill(self) -> None:
        """End it now, unless it has ended; from any thread."""
        with self._ending:
            if not self._is_gone:
                os.kill(self.pid, signal.SIGKILL)

    def attend(self) -> tuple[bytes, int]:
        """Read its answer, and wait for its end; blocks. The exit status is negative for a signal."""
        received = bytearray()
        try:
            while chunk := os.read(self._answer, CHUNK):
                received += chunk
        finally:
            os.close(self._answer)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self._ending:
                self._is_gone = True
                _, status = os.waitpid(self.pid, 0)
            os.close(self._lifeline)
        return bytes(received), os.waitstatus_to_exitcode(status)


def fork(function: Callable[[], bytes]) -> ChildProcess:
    """Fork a child that computes a function.

    Raises:
        OSError: The system has no room for another process.
    """
    answer, to_answer = os.pipe()
    lifeline, to_lifeline = os.pipe()
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with warnings.catch_warnings():
                # Python 3.12 and later warn of forks of processes with threads; see above.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if not pid:
                _compute(function, to_answer, lifeline)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except OSError:
        os.close(answer)
        os.close(to_lifeline)
        raise
    finally:
        os.close(to_answer)
        os.close(lifeline)
    return ChildProcess(pid, answer, to_lifeline)


def _compute(function: Callable[[], bytes], answer: int, lifeline: int) -> NoReturn:
    """All that the child does."""
    status = 1
    try:
        _leave_the_operator({answer, lifeline})
        threading.Thread(target=_end_with_the_operator, args=(lifeline,), daemon=True).start()
        try:
            result = ANSWER + function()
        except BaseException as exc:  # noqa: BLE001 - it is raised where the answer is awaited
            result = PROBLEM + repr(exc).encode(errors="replace")
        left = memoryview(result)
        while left:
            left = left[os.write(answer, left) :]
        status = 0
    finally:
        os._exit(status)


def _leave_the_operator(own: set[int]) -> None:
    """Give up what the fork has of the operator besides its objects."""
    gc.freeze()  # what is there stays: looking through it would copy its memory
    signal.set_wakeup_fd(-1)
    for terminal in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(terminal, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the operator, which ends its children
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(each.name) for each in _DESCRIPTORS.iterdir()]:
        if number > 2 and number not in own:  # standard output and errors stay
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.fstat(number)
                os.dup2(nothing, number)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _end_with_the_operator(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)
