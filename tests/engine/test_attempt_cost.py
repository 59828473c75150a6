"""Limits the function calls of a scheduling attempt, so that a loop over nodes or a lost cache is seen.

The workloads are those of ``make bench``, small. Calls of Python and C functions are counted, not seconds:
the figures are equal on every machine, however busy it is. Pods per second are in ``docs/benchmarks.md``.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

#: The most calls of an attempt, by workload and number of templates (None: all pods differ): about half as
#: many again as are made at this size, where each template's first pod weighs more than in the benchmark.
CEILINGS = {
    ("basic", 10): 500,
    ("basic", None): 1080,
    ("crowded", 10): 560,
    ("node-affinity", 10): 510,
    ("spreading", 10): 680,
    ("preferred-spreading", 10): 700,
    ("affinity", 10): 750,
    ("preferred-affinity", 10): 740,
    ("anti-affinity", 10): 710,
    ("preferred-anti-affinity", 10): 740,
    ("preemption", 10): 3000,
    ("constrained-preemption", 10): 3000,
    ("unschedulable", 10): 650,
    ("mixed", 10): 540,
    ("gang", 10): 730,
}
NODES, PODS = 300, 100

#: Workloads whose attempts look at one victim after another: how many there are depends on the nodes.
VICTIMS = {"preemption", "constrained-preemption"}


class Counter:
    """Counts the calls that functions make while they run."""

    def __init__(self) -> None:
        self.calls = 0

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, counting."""

        def count(_frame: FrameType, event: str, _argument: Any) -> None:
            self.calls += event in ("call", "c_call")

        def call(*args: Any, **options: Any) -> Any:
            sys.setprofile(count)
            try:
                return function(*args, **options)
            finally:
                sys.setprofile(None)

        return call


class Measurements:
    """Calls of attempts; each workload is measured once."""

    def __init__(self, benchmark: Any) -> None:
        self.benchmark = benchmark
        self._found: dict[tuple[str, int, int | None], float] = {}

    def calls_of(self, family: str, nodes: int, templates: int | None) -> float:
        """Calls of one attempt, on average."""
        key = (family, nodes, templates)
        if key not in self._found:
            counter = Counter()
            with pytest.MonkeyPatch.context() as patch:
                for name in ("schedule", "place_together"):
                    patch.setattr(self.benchmark, name, counter.counted(getattr(self.benchmark, name)))
                attempts: int = self.benchmark.measure(family, nodes, templates, PODS).attempts
            self._found[key] = counter.calls / attempts
        return self._found[key]


@pytest.fixture(scope="module")
def measured() -> Iterator[Measurements]:
    """Measurements by benchmarks/engine.py, which is a script and no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        spec = importlib.util.spec_from_file_location("benchmarks_engine", BENCHMARKS / "engine.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield Measurements(module)


@pytest.mark.parametrize(("family", "templates"), CEILINGS)
def test_an_attempt_makes_few_calls(measured: Measurements, family: Any, templates: Any) -> None:
    """With all default plugins."""
    made = measured.calls_of(family, NODES, templates)

    assert made <= CEILINGS[family, templates]


@pytest.mark.parametrize("family", sorted({family for family, _ in CEILINGS} - VICTIMS))
def test_calls_do_not_grow_with_the_nodes(measured: Measurements, family: Any) -> None:
    """What is done for each node is done by numpy."""
    few = measured.calls_of(family, NODES // 3, 10)

    assert measured.calls_of(family, NODES, 10) < 1.3 * few


def test_every_workload_has_a_ceiling(measured: Measurements) -> None:
    """A workload that is added is held to something."""
    benchmark = measured.benchmark
    workloads = set(benchmark.yaml.safe_load(benchmark.WORKLOADS.read_text()))

    assert {family for family, _ in CEILINGS} == workloads
