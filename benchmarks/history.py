"""Keeps the figures of ``make bench`` by commit, and names the commit that made one worse.

    python benchmarks/history.py build/bench.jsonl

Figures of two machines, or of one that is busy with other things, cannot be compared as they are. So each is
kept as a multiple of a calibration loop that runs next to it, with the machine that measured it, in
``.bench-history.jsonl``, which is not in git. It is compared with figures of the same machine at ancestors of
the present commit; of several runs at one commit the best counts. Where runs of one commit differ by more
than 5 %, only what differs by more is reported. A tree with changes is compared, not kept.
"""

import argparse
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from book.results import circumstances

ROOT = Path(__file__).parents[1]

#: What is kept of a result; what names it are its other values that say what was measured.
FIGURES = ("best_us", "cold_s", "warm_s")
NAMES = ("case", "family", "strategy", "nodes", "pods", "templates", "attempts")

#: How much worse a figure is that is reported.
WORSE = 1.05

#: Commits to look back.
COMMITS = 500


def figures(path: Path) -> dict[str, float]:
    """The figures of a file of results, in the calibration loops that ran next to each."""
    found: dict[str, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        title = ", ".join(f"{name} {result[name]}" for name in NAMES if name in result)
        for figure in FIGURES:
            if figure in result:
                seconds = result[figure] / (1e6 if figure.endswith("_us") else 1)
                found[f"{title}: {figure.rpartition('_')[0]}"] = seconds / result["unit_s"]
    return found


def by_commit(entries: Sequence[Mapping[str, Any]], commits: Sequence[str]) -> dict[str, dict[str, float]]:
    """The best of each figure, by commit in their order; commits without one are left out."""
    found: dict[str, dict[str, float]] = {}
    for commit in commits:
        for entry in entries:
            if entry["commit"] == commit:
                best = found.setdefault(commit, {})
                for name, value in entry["figures"].items():
                    best[name] = min(value, best.get(name, value))
    return found


class Loss(NamedTuple):
    """A figure that is worse at the last commit than at the best one.

    Attributes:
        factor: How much larger it is.
        since: The first commit from which on it has been worse.
        before: The last one at which it was not.
    """

    figure: str
    factor: float
    since: str
    before: str


def spread(entries: Sequence[Mapping[str, Any]], name: str) -> float:
    """By how much runs of one commit differ in a figure: the median of those that were measured again."""
    runs = defaultdict[str, list[float]](list)
    for entry in entries:
        if name in entry["figures"]:
            runs[entry["commit"]].append(entry["figures"][name])
    return median([max(each) / min(each) for each in runs.values() if len(each) > 1] or [1.0])


def losses(
    history: Mapping[str, Mapping[str, float]], entries: Sequence[Mapping[str, Any]]
) -> Iterator[Loss]:
    """The figures that are worse at the last commit, by more than runs of one commit differ."""
    *_, last = history
    for name, present in history[last].items():
        rows = [(commit, each[name]) for commit, each in history.items() if name in each]
        best = min(value for _, value in rows)
        most = best * max(WORSE, spread(entries, name))
        if present > most:
            good = max(place for place, (_, value) in enumerate(rows) if value <= most)
            yield Loss(name, present / best, rows[good + 1][0], rows[good][0])


def git(root: Path, *words: str) -> list[str]:
    """The lines that git prints."""
    command = ["git", *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603 - git
    return done.stdout.splitlines()


def main() -> None:
    """Keep the figures of this run, and print what has become worse."""
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "results", type=Path, help="lines of JSON, as engine.py and rebalancing.py write them"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--history", type=Path, help="left out: .bench-history.jsonl of the checkout")
    given = parser.parse_args()
    kept = given.history or given.root / ".bench-history.jsonl"
    now = circumstances(given.root)
    machine = f"{now.machine}, Python {now.python}"
    mine = {
        "commit": now.commit.rstrip("+"),
        "day": now.day,
        "machine": machine,
        "figures": figures(given.results),
    }
    if now.commit.endswith("+"):
        print(f"not kept: {mine['commit']} has changes that are not committed")
        mine["commit"] = now.commit
    else:
        with kept.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps(mine) + "\n")
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    entries = [entry for entry in map(json.loads, lines) if entry["machine"] == machine]
    commits = git(
        given.root, "log", f"-{COMMITS}", "--first-parent", "--reverse", "--abbrev=10", "--format=%h"
    )
    if now.commit.endswith("+"):
        entries, commits = [*entries, mine], [*commits, now.commit]
    history = by_commit(entries, commits)
    for each in losses(history, entries):
        between = len(git(given.root, "log", "--format=%h", f"{each.before}..{each.since.rstrip('+')}"))
        more = f", or by one of the {between - 1} before it" if between > 1 else ""
        print(f"{each.figure} is {each.factor - 1:.0%} worse than at {each.before}, by {each.since}{more}")
    noise = max((spread(entries, name) for name in mine["figures"]), default=1.0) - 1
    print(f"compared with {len(history) - 1} commits on this machine ({kept})")
    if noise > WORSE - 1:
        print(f"runs of one commit differ by up to {noise:.0%} here: what is less is not reported")


if __name__ == "__main__":
    main()
