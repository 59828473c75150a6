"""Compares policies by real load: make bench-load DATA=../shared/data ARGS="--scenarios churn61 --seeds 3".

Each row is the mean over the seeds of one day of one policy in one scenario; docs/benchmarks/load.md says
what the columns mean.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from load_days.days import Day, play
from load_days.policies import POLICIES
from load_days.scenarios import SCENARIOS
from load_days.traces import read, synthetic

COLUMNS = {
    "hot_minutes": "hot min",
    "overload_p99": "overload p99",
    "unmet_core_minutes": "unmet core-min",
    "spread": "spread",
    "peak_over_mean": "max - mean",
    "evictions": "evictions",
    "reversals": "reversals",
    "wasted": "wasted",
    "again": "moved again",
    "pending_minutes": "pending min",
    "mean": "mean cpu",
}


def main() -> None:
    """Play, print one table a scenario."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the traces; left out, made-up ones")
    parser.add_argument("--scenarios", default="churn55,churn61,churn67", help="or all")
    parser.add_argument("--policies", default="all")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from --first-seed")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--hours", type=float, help="of each day, 24 unless said")
    parser.add_argument("--output", type=Path, help="append each day as a line of JSON")
    given = parser.parse_args()
    traces = read(given.data) if given.data else synthetic()
    keys = list(POLICIES) if given.policies == "all" else given.policies.split(",")
    names = list(SCENARIOS) if given.scenarios == "all" else given.scenarios.split(",")
    for name in names:
        scenario = SCENARIOS[name]
        if given.hours:
            scenario = replace(scenario, hours=given.hours)
        print(f"\n{name}: {traces.name}, {given.seeds} seeds from {given.first_seed}\n")
        print("| | " + " | ".join(COLUMNS.values()) + " | CPU s |")
        print("| --- |" + " ---: |" * (len(COLUMNS) + 1))
        for key in keys:
            days = []
            for seed in range(given.first_seed, given.first_seed + given.seeds):
                day = play(scenario, POLICIES[key], traces, seed)
                days.append(day)
                if given.output:
                    with given.output.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(day.row()) + "\n")
            print(line(key, days), flush=True)


def line(key: str, days: list[Day]) -> str:
    """One row: means over the days."""
    cells = []
    for column in COLUMNS:
        mean = sum(float(getattr(day.figures, column)) for day in days) / len(days)
        cells.append(f"{mean:.1f}" if mean < 1_000 else f"{mean:,.0f}")
    cells.append(f"{sum(day.seconds for day in days) / len(days):.0f}")
    return f"| {key} {POLICIES[key].title} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
