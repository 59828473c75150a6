"""Fuzzes the parsers of the product: ``make fuzz MINUTES=10``, ``make fuzz TARGET=quantity SEED=7``."""

from __future__ import annotations

import argparse
import hashlib
import mmap
import os
import pickle
import resource
import signal
import sys
import time
from pathlib import Path

from fuzzing.campaign import Failure, Report, campaign, judged, measured
from fuzzing.minimal_input import minimal
from fuzzing.target import Target
from fuzzing.targets.table import TARGETS

#: Where inputs that fail are written.
FOUND = Path(".fuzzing")

#: Bytes of address space that a campaign may take, and seconds that it may be late.
MOST_MEMORY, LATE_S = 4 * 2**30, 90.0


def in_process(target: Target, seed: int, seconds: float) -> tuple[Report, int]:
    """A campaign in a process of its own, which an input may end; and its peak of memory, in KiB."""
    shown = mmap.mmap(-1, 2**20)
    told, tells = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

        def trying(data: bytes) -> None:
            shown.seek(0)
            shown.write(len(data).to_bytes(4, "big") + data)

        code = 1
        try:
            report = campaign(target, seed, seconds, trying)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with os.fdopen(tells, "wb") as out:
                pickle.dump((report, peak), out)
            code = 0
        finally:
            os._exit(code)
    os.close(tells)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, seconds + LATE_S)
    with os.fdopen(told, "rb") as pipe:
        answer = pipe.read()
    signal.setitimer(signal.ITIMER_REAL, 0)
    _, status = os.waitpid(child, 0)
    if answer:
        found: tuple[Report, int] = pickle.loads(answer)
        return found
    size = int.from_bytes(shown[:4], "big")
    ended = Failure(shown[4 : 4 + size], f"the process ended with {status}", "it was killed, or ran too long")
    return Report(1, seconds, failures={ended.signature: ended}), 0


def print_failure(target: Target, failure: Failure) -> None:
    """Make the input small, write it and say how it is tried again."""

    def fails(data: bytes) -> bool:
        found = judged(target, data) if failure.signature != "too much memory" else measured(target, data)
        return found is not None and found.signature == failure.signature

    data = failure.data
    if (
        not failure.signature.startswith(("the process", "EndlessError"))
        and "_check_time" not in failure.signature
        and len(data) < 2**16
    ):
        data = minimal(data, fails)
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{target.name}-{hashlib.sha256(failure.signature.encode()).hexdigest()[:8]}"
    path.write_bytes(data)
    print(f"{target.name}: {failure.signature}\n    {failure.story}")
    print(f"    {len(data)} bytes: {data[:200]!r}")
    print(f"    make fuzz TARGET={target.name} INPUT={path}", flush=True)


def main() -> None:
    """Fuzz all targets in turn, or one, or try one input."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--target", action="append", default=[], choices=[each.name for each in TARGETS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", type=Path)
    given = parser.parse_args()
    chosen = [each for each in TARGETS if not given.target or each.name in given.target]
    if given.input is not None:
        data = given.input.read_bytes()
        failures = [(each, judged(each, data) or measured(each, data)) for each in chosen]
        for each, failure in failures:
            print(f"{each.name}: {f'{failure.signature}: {failure.story}' if failure else 'it holds'}")
        sys.exit(any(failure for _, failure in failures))
    failed = executions = 0
    began = time.monotonic()
    for number, target in enumerate(chosen):
        left_s = given.minutes * 60 - (time.monotonic() - began)
        report, peak = in_process(target, given.seed, max(1.0, left_s / (len(chosen) - number)))
        executions += report.executions
        print(
            f"{target.name:22}{report.executions:10,} executions{report.executions / report.seconds:9,.0f}/s"
            f"{report.kept:6} kept{report.answers:6} answers{report.slowest_s:7.2f} s{peak >> 10:5} MiB"
            f"{len(report.failures):4} failures",
            flush=True,
        )
        for failure in report.failures.values():
            failed += 1
            print_failure(target, failure)
    print(f"{executions:,} executions of {len(chosen)} targets, {failed} failures")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
