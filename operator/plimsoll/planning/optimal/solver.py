"""Checks that the solver of planner Optimal is installed; :mod:`plimsoll.planning.optimal.milp` calls it."""

from importlib.util import find_spec

#: The command that installs the solver.
INSTALL_SOLVER = "pip install 'plimsoll[optimal]'"


def has_solver() -> bool:
    """Whether the solver is installed."""
    return find_spec("highspy") is not None
