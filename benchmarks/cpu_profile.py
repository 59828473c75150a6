"""Samples where the processor time of a call goes, by function: a signal each millisecond of CPU time.

Unlike a tracing profiler it costs each call nothing, so shares are those of the undisturbed program.
"""

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

EVERY_S = 0.001


class CPUProfile:
    """Samples of this process, by functions of the package.

    Attributes:
        samples: How many were taken.
        own: Those in which a function itself ran, by ``module.function``.
        total: Those in which it was on the stack, each counted once.
    """

    def __init__(self) -> None:
        self.samples = 0
        self.own: Counter[str] = Counter()
        self.total: Counter[str] = Counter()

    def of(self, work: Callable[[], T]) -> T:
        """Sample a call."""
        before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
        try:
            return work()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def rows(self, most: int) -> list[tuple[str, float, float]]:
        """The functions with the largest totals, each with its shares of all samples: total and own."""
        return [
            (name, count / self.samples, self.own[name] / self.samples)
            for name, count in self.total.most_common(most)
        ]

    def _sample(self, _signal: int, frame: FrameType | None) -> None:
        self.samples += 1
        if frame is not None and _is_ours(frame):
            self.own[_name(frame)] += 1
        seen = set()
        while frame is not None:
            if _is_ours(frame):
                seen.add(_name(frame))
            frame = frame.f_back
        self.total.update(seen)


def _is_ours(frame: FrameType) -> bool:
    return "/plimsoll/" in frame.f_code.co_filename


def _name(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}"
