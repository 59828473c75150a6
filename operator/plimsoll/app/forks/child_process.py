"""A child process: a fork of this one that answers requests through a pipe until it is ended.

The child has all objects as they are at the fork, and shares their memory until one side writes to it
(copy on write). It is isolated from the operator in every other respect:

* only the thread that forked continues in the child. It never returns to the event loop but ends with
  ``os._exit``, so that no handler, buffer or destructor of the operator runs a second time;
* its copies of sockets, files and the loop's selector are replaced by ``/dev/null`` before it computes. It
  keeps no connection and no port open, and no lease: only the operator's own threads renew these;
* its signals have their default effect, and none reaches the operator's loop through it;
* it has a lower priority than the operator (``NICE``), and is the first to be killed when memory runs out;
* it ends when the operator does: a thread reads the requests from a pipe that only the operator holds.

Locks that other threads hold at the fork stay locked in the child, except those that Python, its logging and
the C library reinitialise. Computations therefore take no lock of the operator.
"""

import contextlib
import gc
import os
import signal
import struct
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

#: The child's niceness: under contention it gets about a tenth of the operator's CPU time.
NICE = 10

#: The prefixes of a result and of the text of an exception; the length follows.
ANSWER, PROBLEM = b"=", b"!"

_DESCRIPTORS = Path("/dev/fd")
_LENGTH = struct.Struct("<Q")


class ChildProcess:
    """One child, from its fork until its exit status was read.

    Attributes:
        pid: The process id.
    """

    def __init__(self, pid: int, answers: int, questions: int) -> None:
        self.pid = pid
        self._answers = os.fdopen(answers, "rb")
        self._questions = questions
        self._ending = threading.Lock()
        self._is_gone = False

    def ask(self, question: bytes) -> tuple[bytes, bytes] | None:
        """Send a request; returns ``ANSWER`` or ``PROBLEM`` and its content, None at the end. Blocks."""
        with contextlib.suppress(BrokenPipeError):
            _write(self._questions, _LENGTH.pack(len(question)) + question)
        head = self._answers.read(1 + _LENGTH.size)
        if len(head) <= _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack(head[1:])
        text = self._answers.read(length)
        return (head[:1], text) if len(text) == length else None

    def kill(self) -> None:
        """Kill the child unless it has ended; any thread may call it."""
        with self._ending:
            if not self._is_gone:
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the child's end; returns its exit status, negative for a signal. Blocks; call it once."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._ending:
            self._is_gone = True
            _, status = os.waitpid(self.pid, 0)
        self._answers.close()
        os.close(self._questions)
        return os.waitstatus_to_exitcode(status)


def fork(function: Callable[[bytes], bytes]) -> ChildProcess:
    """Fork a child that answers each request by a function.

    Raises:
        OSError: The system has no room for another process.
    """
    answers, to_answers = os.pipe()
    questions, to_questions = os.pipe()
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with warnings.catch_warnings():
                # Python 3.12 and later warn when a process with threads forks; see the module's docstring.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if not pid:
                _serve(function, to_answers, questions)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except OSError:
        os.close(answers)
        os.close(to_questions)
        raise
    finally:
        os.close(to_answers)
        os.close(questions)
    return ChildProcess(pid, answers, to_questions)


def _serve(function: Callable[[bytes], bytes], answers: int, questions: int) -> NoReturn:
    """Run the child."""
    try:
        _leave_the_operator({answers, questions})
        asked: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=_take, args=(questions, asked), daemon=True).start()
        while True:
            question = asked.get()
            try:
                kind, said = ANSWER, function(question)
            except BaseException as exc:  # noqa: BLE001 - it is raised where the result is awaited
                kind, said = PROBLEM, repr(exc).encode(errors="replace")
            _write(answers, kind + _LENGTH.pack(len(said)))
            _write(answers, said)
    finally:
        os._exit(1)


def _write(pipe: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[os.write(pipe, left) :]


def _leave_the_operator(own: set[int]) -> None:
    """Drop everything that the fork inherited from the operator except its objects."""
    gc.freeze()  # a collection of existing objects would copy their memory
    signal.set_wakeup_fd(-1)
    for terminal in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(terminal, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the operator handles Ctrl-C and ends its children
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(each.name) for each in _DESCRIPTORS.iterdir()]:
        if number > 2 and number not in own:  # standard output and error stay open
            with contextlib.suppress(OSError):  # the directory's own descriptor is closed already
                os.fstat(number)
                os.dup2(nothing, number)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _take(pipe: int, asked: "SimpleQueue[bytes]") -> None:
    """Receive requests from the operator, and end with it."""
    with os.fdopen(pipe, "rb") as questions:
        while len(head := questions.read(_LENGTH.size)) == _LENGTH.size:
            asked.put(questions.read(*_LENGTH.unpack(head)))
        os._exit(1)
