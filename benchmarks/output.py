"""Results of a benchmark for docs/benchmarks.md: one line of JSON each."""

import json
from pathlib import Path


def append(path: Path | None, **result: float | str | None) -> None:
    """Append one result, if there is a file for it."""
    if path is not None:
        with path.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps(result, ensure_ascii=False) + "\n")
