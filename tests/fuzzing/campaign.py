"""Campaign tries inputs on one target for a while, and keeps those that lead on and those that break it."""

from __future__ import annotations

import gc
import signal
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType

from fuzzing.coverage_feedback import LinesSeen
from fuzzing.mutation import Mutation
from fuzzing.target import Broken, Target

#: CPU seconds after which an attempt is taken for endless.
ENDLESS_S = 30.0

#: One in so many inputs is gigantic, and of one in so many the memory is measured.
GIGANTIC_EACH, MEASURED_EACH = 400, 40

#: So many inputs are traced at first, for an eighth of the time at most; then one in four: that makes most
#: targets several times as slow.
TRACED_FIRST = 3000

#: Inputs that are kept; then old ones make room.
KEPT = 3000


class EndlessError(BaseException):
    """An attempt takes too long; no parser may catch that."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that breaks a target.

    Attributes:
        signature: What failures of one cause have in common.
        story: The end of the traceback.
    """

    data: bytes
    signature: str
    story: str


@dataclass(slots=True)
class Report:
    """What a campaign has done."""

    executions: int = 0
    seconds: float = 0.0
    kept: int = 0
    answers: int = 0
    slowest_s: float = 0.0
    failures: dict[str, Failure] = field(default_factory=dict)


def judged(target: Target, data: bytes, attempt: Callable[[bytes], object] | None = None) -> Failure | None:
    """Try one input, its costs included; the failure, or None."""
    try:
        with _limited():
            began = time.thread_time()
            (attempt or target.attempt)(data)
            took_s = time.thread_time() - began
        if took_s > target.bound.seconds_for(len(data)):
            _check_time(target, data)
    except (Exception, EndlessError, RecursionError) as exc:  # noqa: BLE001 - whatever comes out is the finding
        return _failure(data, exc)
    return None


def measured(target: Target, data: bytes) -> Failure | None:
    """Likewise, with the memory that it takes."""
    tracemalloc.start()
    try:
        with _limited():
            target.attempt(data)
        peak = tracemalloc.get_traced_memory()[1]
    except (Exception, EndlessError) as exc:  # noqa: BLE001 - likewise
        return _failure(data, exc)
    finally:
        tracemalloc.stop()
    if peak > target.bound.memory_for(len(data)):
        problem = Broken(f"{len(data)} bytes take {peak} bytes of memory")
        return Failure(data, "too much memory", str(problem))
    return None


def _check_time(target: Target, data: bytes) -> None:
    """Once more without feedback, the best of three: other work on the machine is no fault."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        target.attempt(data)
        times.append(time.thread_time() - began)
    if min(times) > target.bound.seconds_for(len(data)):
        raise Broken(f"{len(data)} bytes take {min(times):.2f} s")


def _failure(data: bytes, exc: BaseException) -> Failure:
    frames = traceback.extract_tb(exc.__traceback__)
    ours = [each for each in frames if "/plimsoll/" in each.filename] or list(frames)
    at = ours[-1]
    where = at.filename.rpartition("/plimsoll/")[2]
    story = "".join(traceback.format_exception_only(exc))[-2000:].strip()
    steps = "".join(
        f"\n    {each.filename.rpartition('/wt-')[2]}:{each.lineno} {each.line}" for each in frames[-6:]
    )
    return Failure(data, f"{type(exc).__name__} in {where}:{at.lineno} ({at.name})", story[:1500] + steps)


@contextmanager
def _limited() -> Iterator[None]:
    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise EndlessError(f"more than {ENDLESS_S} s")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def campaign(target: Target, seed: int, seconds: float, trying: Callable[[bytes], None]) -> Report:
    """Try inputs for so many seconds.

    Args:
        target: What is tried.
        seed: Of the inputs.
        seconds: Of the clock on the wall.
        trying: Called with each input before it is tried, for what ends the process.
    """
    random, lines, report = Random(f"{target.name} {seed}"), LinesSeen(), Report()
    corpus = list(target.seeds())
    mutation = Mutation(random, target.words, corpus)
    traced = lambda data: new.append(lines.leads_on(target.attempt, data))  # noqa: E731 - one place
    began = time.monotonic()
    todo = list(corpus)
    while time.monotonic() - began < seconds:
        data = todo.pop() if todo else _next(corpus, mutation, random, report.executions)
        trying(data)
        new: list[bool] = []
        tried = time.thread_time()
        is_first = report.executions < TRACED_FIRST and time.monotonic() - began < seconds / 8
        is_traced = len(data) <= 2**14 and (is_first or report.executions % 4 == 0)
        found = judged(target, data, traced if is_traced else None)
        report.slowest_s = max(report.slowest_s, time.thread_time() - tried)
        report.executions += 1
        if found is None and (report.executions % MEASURED_EACH == 0 or len(data) > 2**14 or any(new)):
            found = measured(target, data)
        if found is not None:
            known = report.failures.get(found.signature)
            if known is None or len(found.data) < len(known.data):
                report.failures[found.signature] = found
        elif any(new):
            report.kept += 1
            corpus.append(data)
            if len(corpus) > KEPT:
                del corpus[random.randrange(len(corpus) // 2)]
        if report.executions % 2000 == 0:
            gc.collect()
    report.seconds = time.monotonic() - began
    report.answers = lines.count
    return report


def _next(corpus: list[bytes], mutation: Mutation, random: Random, number: int) -> bytes:
    """A new input; the latest that led on are chosen more often."""
    at = max(random.randrange(len(corpus)), random.randrange(len(corpus)))
    if number % GIGANTIC_EACH == GIGANTIC_EACH - 1:
        return mutation.gigantic(corpus[at])
    return mutation.of(corpus[at], random.choice(corpus))
