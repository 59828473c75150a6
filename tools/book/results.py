"""Results of benchmarks with their circumstances, a line of JSON each."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict


class Circumstances(BaseModel):
    """Where and when a table was measured.

    Attributes:
        commit: Short hash of the tree; "+" follows if it had changes that were not committed.
        machine: Processor, cores and memory.
        python: Version of Python.
        day: The date, UTC.
        load: Load average of one minute when the benchmark began, without the benchmark's own.
    """

    model_config = ConfigDict(frozen=True)

    commit: str
    machine: str
    python: str
    day: str
    load: float


class Measured(BaseModel):
    """The results of one table, with the circumstances of its measurement."""

    model_config = ConfigDict(frozen=True)

    table: str
    circumstances: Circumstances
    results: tuple[dict[str, Any], ...]


def circumstances(root: Path) -> Circumstances:
    """Those of this moment."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603 - git
        return done.stdout.strip()

    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Circumstances(
        commit=git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain") else ""),
        machine=f"{processor()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB",
        python=platform.python_version(),
        day=datetime.now(UTC).date().isoformat(),
        load=round(os.getloadavg()[0], 1),
    )


def processor() -> str:
    """The model name that Linux gives, otherwise the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def read(path: Path) -> dict[str, Measured]:
    """Kept results by table; none if there is no file yet."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {kept.table: kept for kept in (Measured.model_validate_json(line) for line in lines)}


def write(path: Path, kept: Iterable[Measured]) -> None:
    """Keep them, one table a line, sorted by name: a new measurement changes only its own line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(table.model_dump(), ensure_ascii=False)
        for table in sorted(kept, key=lambda one: one.table)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
