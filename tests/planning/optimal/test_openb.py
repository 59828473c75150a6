"""The benchmark of the GPU cluster, on a small one: more is placed, no more than can be, by lawful moves."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "openb.py"


@pytest.fixture(scope="module")
def openb() -> Iterator[Any]:
    """The script, which is no package."""
    spec = importlib.util.spec_from_file_location("benchmarks_openb", BENCHMARK)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type] # a fake has only what is used
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_room_that_is_made_is_worth_its_moves(openb: Any) -> None:
    """The experiment itself refuses moves whose target, or pods whose room, is not feasible."""
    trace = openb.drawn_trace(40, 220, seed=1)

    alone, *later = openb.carry_out(trace, seed=1, search=2.0).stages

    bound = openb.upper_bound(trace, of_gpus=True)
    gpus = [stage.gpus for stage in (alone, *later)]
    assert gpus == sorted(gpus)
    assert alone.moves == 0 < later[-1].moves
    assert (bound - later[-1].gpus) * 2 < bound - alone.gpus, "at least half of what was lacking is gained"
    assert later[-1].gpus <= bound
    assert later[-1].pods <= openb.upper_bound(trace, of_gpus=False)


def test_the_bound_by_hand(openb: Any) -> None:
    """20 cpus in all and 8 for a pod are 2.5 pods; the model of the fourth pod is not there."""
    node = openb.NodeClass(10_000, 1000, 2000, "T4")
    wants_cpu, elsewhere = openb.Shape(8_000, 1, 1000), openb.Shape(1, 1, 1000, ("A10",))
    trace = openb.Trace((node, node), (wants_cpu,) * 3 + (elsewhere,))

    assert openb.upper_bound(trace, of_gpus=True) == pytest.approx(2.5)
    assert openb.upper_bound(trace, of_gpus=False) == pytest.approx(2.5)
