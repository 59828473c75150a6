"""Tables and verdicts from the days that were played: python -m load_days --report FILE."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from load_days.policies import POLICIES

#: Columns of a table: the figure and its heading.
COLUMNS = {
    "hot_minutes": "hot min",
    "overload_p99": "overload p99",
    "unmet_core_minutes": "unmet core-min",
    "spread": "spread",
    "peak_over_mean": "max - mean",
    "after_event": "after event",
    "evictions": "evictions",
    "reversals": "reversals",
    "wasted": "wasted",
    "calming": "by use",
    "again": "moved again",
    "pending_minutes": "pending min",
    "mean": "mean cpu",
    "cpu_seconds": "CPU s",
}

Row = dict[str, Any]


def heading() -> str:
    """The first two lines of a table."""
    return f"| | {' | '.join(COLUMNS.values())} |\n| --- |{' ---: |' * len(COLUMNS)}"


def line(key: str, days: Sequence[Row]) -> str:
    """One row: means over the days."""
    cells = []
    for column in COLUMNS:
        amount = mean(float(day[column]) for day in days)
        cells.append(f"{amount:.1f}" if amount < 1_000 else f"{amount:,.0f}")
    return f"| {key} | {' | '.join(cells)} |"


def report(path: Path) -> str:
    """All that a file of days says: one table a scenario, then forecasts."""
    days = defaultdict[tuple[str, str], list[Row]](list)
    for text in path.read_text(encoding="utf-8").splitlines():
        day = json.loads(text)
        days[day["scenario"], day["policy"]].append(day)
    parts = []
    for scenario in dict.fromkeys(name for name, _ in days):
        rows = [(key, days[scenario, key]) for key in POLICIES if (scenario, key) in days]
        seeds = sorted({day["seed"] for _, found in rows for day in found})
        title = f"**{scenario}**, seeds {', '.join(map(str, seeds))}:"
        parts.append("\n".join([title, "", heading(), *(line(key, found) for key, found in rows)]))
    parts.append(_forecasts(days))
    return "\n\n".join(parts)


def _forecasts(days: dict[tuple[str, str], list[Row]]) -> str:
    """What the load books foretold, one row a scenario and policy."""
    kinds = {
        "book": "replacements, book",
        "by_request": "by request",
        "book_new": "new pods, book",
        "by_request_new": "by request",
        "covered": "hours below peak",
        "above": "peak above maximum",
    }
    lines = [f"| | {' | '.join(kinds.values())} |", f"| --- |{' ---: |' * len(kinds)}"]
    for (scenario, key), found in days.items():
        known = [day["forecasts"] for day in found if day["forecasts"]["covered"]]
        if known:
            cells = [f"{mean(each[kind] for each in known):.1f}" for kind in kinds]
            lines.append(f"| {scenario} {key} | {' | '.join(cells)} |")
    return "\n".join(lines)
