"""Compares policies by real load: make bench-load DATA=../shared/data ARGS="--scenarios churn61 --seeds 3".

Each row is the mean over the seeds of one day of one policy in one scenario; docs/benchmarks/load.md says
what the columns mean. With --end-to-end an operator runs on the development cluster, in real time.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from load_days.days import play
from load_days.policies import POLICIES, VARIANTS
from load_days.report import heading, line, report
from load_days.scenarios import SCENARIOS
from load_days.traces import read, synthetic


def main() -> None:
    """Play, print one table a scenario."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the traces; left out, made-up ones")
    parser.add_argument("--scenarios", default="churn55,churn61,churn67", help="or all")
    parser.add_argument("--policies", default="main", help="keys, or main: all but the variants; or all")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from --first-seed")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--hours", type=float, help="of each day, 24 unless said")
    parser.add_argument("--output", type=Path, help="append each day as a line of JSON")
    parser.add_argument("--end-to-end", action="store_true", help="the operator and the development cluster")
    parser.add_argument("--report", type=Path, help="play nothing; print the tables of such a file")
    given = parser.parse_args()
    if given.report:
        print(report(given.report))
        return
    traces = read(given.data) if given.data else synthetic()
    if given.end_to_end:
        from load_days.end_to_end import HOURS, end_to_end  # noqa: PLC0415 - needs the development cluster

        for name in given.scenarios.split(","):
            end_to_end(SCENARIOS[name], traces, given.first_seed, given.hours or HOURS)
        return
    variants = {each.key for each in VARIANTS}
    known = {"all": list(POLICIES), "main": [key for key in POLICIES if key not in variants]}
    keys = known.get(given.policies) or given.policies.split(",")
    names = list(SCENARIOS) if given.scenarios == "all" else given.scenarios.split(",")
    for name in names:
        scenario = SCENARIOS[name]
        if given.hours:
            scenario = replace(scenario, hours=given.hours)
        print(f"\n{name}: {traces.name}, {given.seeds} seeds from {given.first_seed}\n")
        print(heading())
        for key in keys:
            days = []
            for seed in range(given.first_seed, given.first_seed + given.seeds):
                day = play(scenario, POLICIES[key], traces, seed)
                days.append(day.row())
                if given.output:
                    with given.output.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(day.row()) + "\n")
            print(line(f"{key} {POLICIES[key].title}", days), flush=True)


if __name__ == "__main__":
    main()
