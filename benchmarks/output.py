"""Results of a benchmark for docs/benchmarks.md: one line of JSON each."""

import json
import time
from pathlib import Path

#: Loops of the calibration, of which the best counts.
LOOPS = 40


def calibration_s() -> float:
    """CPU seconds of a loop that depends on the interpreter and the machine, and on nothing of ours."""
    best = float("inf")
    for _ in range(LOOPS):
        began, table = time.thread_time(), dict[int, int]()
        for number in range(40_000):
            table[number * 7 % 4_099] = table.get(number % 4_099, 0) + len(str(number))
        best = min(best, time.thread_time() - began)
    return best


def append(path: Path | None, **result: float | str | None) -> None:
    """Append one result, if there is a file for it."""
    if path is not None:
        with path.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps(result, ensure_ascii=False) + "\n")
