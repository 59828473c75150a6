"""Finds what plimsoll-optimal adds, a planner and a repair, by the names of entry points."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

#: The group of entry points, and the names in it.
GROUP, OPTIMAL, SPREAD_REPAIR = "plimsoll.planners", "Optimal", "SpreadRepair"

#: What brings them. No command of pip: an index may have another project that is called so.
INSTALL_SOLVER = "install the wheel plimsoll_optimal of the same release"


def has_solver() -> bool:
    """Whether the distribution and its solver are installed."""
    return find_spec("highspy") is not None and find_spec("plimsoll_optimal") is not None


@cache
def installed(name: str) -> Callable[..., Any]:
    """What an entry point names.

    Raises:
        LookupError: Nothing that is installed has the name.
    """
    for each in entry_points(group=GROUP, name=name):
        loaded: Callable[..., Any] = each.load()
        return loaded
    raise LookupError(f"no installed distribution has {name} in {GROUP}: {INSTALL_SOLVER}")
