"""The benchmark of consolidation's cost, on a small made up trace: the bound holds, and each rule saves."""

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BINS, WARM = 36, 12


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script, which imports others next to it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("trace_cost")
    for name in ("trace_cost", "unmovable_pods", "openb"):
        sys.modules.pop(name, None)


def test_no_rule_costs_less_than_the_bound_and_each_saves(benchmark_module: Any) -> None:
    """Each pod is on a node to the end, and who asks for a larger saving restarts fewer pods."""
    module = benchmark_module
    (found,) = module.traces(None, (), BINS, 1, one_type=False)
    name, demands, machines = found
    rules = module.rules(1, (0, 10, 40))

    results = dict(module.played(rules, demands, machines, BINS, WARM, 1))

    alone, *others = results.values()
    assert name == "made up"
    assert 0 < alone.bound <= min(each.bounded for each in results.values())
    assert all(each.usd < alone.usd for each in others)
    restarts = [results[f"ConsolidateNodes, {each} USD/day"].restarts for each in (0, 10, 40)]
    assert restarts == sorted(restarts, reverse=True)
    assert restarts[0] > 0
    module.a_table("a day", list(results.items()), alone.bound)


def test_the_bound_is_no_more_than_what_is_needed(benchmark_module: Any) -> None:
    """Pods that fill two machines cost these; one that fits a single type pays for it, shares its rest."""
    machines = (
        benchmark_module.Machine("small", 4, 4, 9, 0, 1.0),
        benchmark_module.Machine("gpu", 8, 8, 9, 1, 5.0),
    )
    bound = benchmark_module.Bound(machines)

    assert bound.usd(Counter({(2, 2, 0, 1): 4})) == pytest.approx(2.0)
    assert bound.usd(Counter({(2, 2, 0, 1): 4, (5, 1, 0, 1): 1})) == pytest.approx(7.0)
    assert bound.usd(Counter({(1, 1, 1, 1): 3})) == pytest.approx(15.0)


def test_machines_are_ordered_for_the_largest_pods_first(benchmark_module: Any) -> None:
    """As many in a machine as some type takes, and then the cheapest of these."""
    module = benchmark_module
    small, large = module.Machine("small", 4, 4, 9, 0, 1.0), module.Machine("large", 8, 8, 9, 0, 1.9)

    def asked(*sizes: int) -> list[str]:
        demands = [module.Demand("w", size, size, 0, 0, 1) for size in sizes]
        return [each.name for each in module.ordered(demands, (small, large))]

    assert asked(3) == ["small"]
    assert asked(3, 5) == ["large"]
    assert asked(3, 6, 1) == ["large", "small"]
    assert module.cheapest(np.array([9, 1, 0, 1]), (small, large)) is None


def test_a_burst_waits_for_its_machines(benchmark_module: Any) -> None:
    """Where nothing else is there; only pods of bursts are asked how long they waited."""
    module = benchmark_module
    demands = module.bursts(WARM, BINS, 5)
    rule = module.Rule("alone")
    result = module.Replay(rule, module.MADE_UP, 1).play(demands, BINS, WARM, None)

    assert len(result.waits) == len(demands) == 5
    assert module.BOOT_S[0] <= result.wait(0.5) <= result.wait(0.99) <= module.BOOT_S[1]
