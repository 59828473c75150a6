"""A floor under the engine's speed, well below the aims, so that a regression by a factor is seen.

The workloads are those of ``make bench``, small. CPU time is measured, since other tests run beside this one;
the better of two runs counts.
"""

import gc
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

#: Pods per second of CPU, by workload and number of templates (None: all pods differ): about a quarter of
#: what is usual at this size, where the first pod of each template weighs more than in the benchmark.
FLOORS = {
    ("basic", 10): 1500,
    ("basic", None): 600,
    ("crowded", 10): 1500,
    ("node-affinity", 10): 1000,
    ("spreading", 10): 1000,
    ("preferred-spreading", 10): 1000,
    ("affinity", 10): 1000,
    ("preferred-affinity", 10): 1000,
    ("anti-affinity", 10): 1000,
    ("preferred-anti-affinity", 10): 1000,
    ("preemption", 10): 250,
    ("constrained-preemption", 10): 200,
    ("unschedulable", 10): 8000,
    ("mixed", 10): 1000,
    ("gang", 10): 1000,
}
NODES, PODS = 500, 150


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Any]:
    """benchmarks/engine.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("benchmarks_engine", BENCHMARKS / "engine.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type] # a fake has only what is used
    spec.loader.exec_module(module)
    yield module
    gc.unfreeze()
    del sys.modules[spec.name]


@pytest.mark.parametrize(("family", "templates"), FLOORS)
def test_the_engine_stays_above_its_floor(benchmark: Any, family: Any, templates: Any) -> None:
    """At 500 nodes, with all default plugins; a figure below is a regression, not a slow machine."""
    best = min(benchmark.measure(family, NODES, templates, PODS).cpu_us for _ in range(2))

    assert 1e6 / best >= FLOORS[family, templates], f"{1e6 / best:.0f} pods per second of CPU"


def test_every_workload_has_a_floor(benchmark: Any) -> None:
    """A workload that is added is held to something."""
    assert {family for family, _ in FLOORS} == set(benchmark.yaml.safe_load(benchmark.WORKLOADS.read_text()))
