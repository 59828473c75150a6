"""The solver of planner Optimal in a simulation: HiGHS reads the machine's clock, its searches take no time.

How long a search took is in the status of a policy, and ends the next one: a run would be another one on a
machine with other work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll_optimal.milp import _Model

#: Nodes of the search tree after which a search ends: without a clock, as the same run ends in the same way.
MOST_NODES = 20

#: Seconds of the machine that a search may take; those of simulated clusters end after milliseconds.
MOST_S = 300.0


@contextmanager
def timeless() -> Iterator[None]:
    """Searches end by themselves, and say that they took no time."""
    run, nodes = _Model.run, _Model.most_nodes

    def instant(self: _Model, seconds: float, start: Any) -> Any:
        leaving, arriving, bound, _ = run(self, max(seconds, MOST_S), start)
        return leaving, arriving, bound, 0.0

    _Model.run = instant  # type: ignore[method-assign] # undone below
    _Model.most_nodes = MOST_NODES
    try:
        yield
    finally:
        _Model.run = run  # type: ignore[method-assign] # as it was
        _Model.most_nodes = nodes
