"""A pytest plugin that raises a time-out only where it does no harm to the rest of the run.

pytest-timeout raises wherever its signal strikes. In a hook of pytest, that ends the whole run without a list
of failures: pluggy turns it into a warning, and warnings are errors. In hypothesis, it spoils every later
test of the process (the limiter of its recursion counts contexts) or is lost (in a callback of the garbage
collector); and what hypothesis catches, it repeats and shrinks for minutes.

This plugin replaces the timer. It raises in code of the tests or of the package only, while a phase of the
test runs, and raises an exception that hypothesis does not catch. Where hypothesis or pytest is interrupted,
it waits for the next call of such code.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from pytest_timeout import Settings, timeout_sigalrm

if TYPE_CHECKING:
    from types import FrameType

#: Packages that run the tests, and this module: nothing is raised in them.
RUNNERS = frozenset(
    (
        "_hypothesis_pytestplugin",
        "_pytest",
        "hypothesis",
        "pluggy",
        "pytest",
        "pytest_timeout",
        "sortedcontainers",
        "time_limits",
        "workers",
    )
)

#: Packages that runners and tests call: their caller decides. typing_extensions is called by typing itself.
CALLED = sys.stdlib_module_names | {"typing_extensions"}

#: Seconds between two looks, and until the exception is raised in a runner all the same.
RETRY_S, GRACE_S = 0.05, 30.0


class TookTooLongError(BaseException):
    """The time limit of a test is over; no Exception, so that hypothesis does not catch it."""


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: Any, settings: Settings) -> bool | None:
    """Replace the timer of pytest-timeout, where that would use a signal."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    limit = time.monotonic() + settings.timeout

    def strike(signum: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if is_in_phase(frame) and (is_own(frame) or time.monotonic() > limit + GRACE_S):
            end()
        if is_in_phase(frame) and sys.getprofile() is None:
            sys.setprofile(watch)
        signal.setitimer(signal.ITIMER_REAL, RETRY_S)

    def watch(frame: FrameType, event: str, arg: Any) -> None:
        __tracebackhide__ = True
        if event == "call" and is_own(frame) and is_in_phase(frame):
            end()

    def end() -> None:
        __tracebackhide__ = True
        sys.setprofile(None)
        signal.setitimer(
            signal.ITIMER_REAL, settings.timeout
        )  # for a fixture that hangs while it is torn down
        try:
            timeout_sigalrm(item, settings)
        except pytest.fail.Exception as exc:
            raise TookTooLongError(str(exc)) from None

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if sys.getprofile() is watch:
            sys.setprofile(None)

    item.cancel_timeout = cancel
    signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


def is_in_phase(frame: FrameType | None) -> bool:
    """Whether set-up, call or teardown of a test runs: what is raised then belongs to the test."""
    while frame is not None:
        if frame.f_code.co_name == "from_call" and frame.f_globals.get("__name__") == "_pytest.runner":
            return True
        frame = frame.f_back
    return False


def is_own(frame: FrameType | None) -> bool:
    """Whether the innermost frame outside the standard library is no runner's."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in RUNNERS:
            return False
        if package not in CALLED and not package.startswith("namedtuple_"):
            return not is_hook(frame)
        frame = frame.f_back
    return False


def is_hook(frame: FrameType) -> bool:
    """Whether pluggy calls it: an exception in a hook's second half becomes a warning."""
    caller = frame.f_back
    return caller is not None and str(caller.f_globals.get("__name__")).partition(".")[0] == "pluggy"
