"""The benchmark of jobs in racks, on a small cluster: required racks hold, and all jobs start."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script, which imports another one next to it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("openb_groups")
    for name in ("openb_groups", "openb"):
        sys.modules.pop(name, None)


def test_each_rule_starts_all_jobs_and_keeps_to_its_racks(benchmark_module: Any, tmp_path: Path) -> None:
    """The experiment checks each cluster against its pods at the end."""
    trace = benchmark_module.drawn_trace(40, 120, 1)
    lasts = [1800.0 + 30 * (at % 60) for at in range(len(trace.pods))]
    page = tmp_path / "page.md"
    page.write_text(
        f"before\n{benchmark_module.BEGIN}\nold\n{benchmark_module.END}\nafter\n", encoding="utf-8"
    )

    found = list(benchmark_module.carry_out(trace, lasts, load=0.9, rounds=6, every=1, seed=1))
    benchmark_module.write(page, benchmark_module.as_table(found))

    results = {each.name: each for each in found}
    assert all(each.never == 0 for each in found)
    assert all(each.whole == 1 for name, each in results.items() if "required" in name)
    anywhere = results["kube-scheduler's rule, no rack named (played)"]
    assert all(each.whole > anywhere.whole for name, each in results.items() if "preferred" in name)
    written = page.read_text(encoding="utf-8")
    assert written.count("\n| ") == len(found) + 2
    assert (written[:7], written[-7:]) == ("before\n", "\nafter\n")
