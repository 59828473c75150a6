"""Plans without the extra that brings the solver."""

import subprocess
import sys
from typing import Any

import pytest

from planning.test_complaint_comparison import SOFT, a_knot, made_by, ways


@pytest.fixture
def no_solver(monkeypatch: Any) -> None:
    """The solver is not installed, as far as Python's import system can tell."""
    for name in [name for name in sys.modules if name.split(".")[0] == "highspy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "highspy", None)


@pytest.mark.usefixtures("no_solver")
def test_proven_leaves_the_exact_repair_out_and_says_so() -> None:
    """Moves that help only together are not searched for; the remark names what to install."""
    made = made_by(a_knot(), SOFT)

    assert ways(made) == {}
    (remark,) = [said for _, said in made.remarks]
    assert remark == (
        "topology spread: no single move helps any more; moves that help only together were not searched for,"
        " because the solver is not installed (install the wheel plimsoll_optimal of the same release)"
    )


@pytest.mark.usefixtures("no_solver")
def test_proven_makes_single_moves_without_the_solver() -> None:
    """Only the repair needs it."""
    made = made_by(a_knot(taint=False), SOFT)

    assert len(made.moves) == 2


def test_an_operator_that_starts_imports_no_solver() -> None:
    """The extra is imported when it is first used."""
    code = (
        "import sys, plimsoll.app.process, plimsoll.rebalancing.controller; print('highspy' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout == "False\n"
