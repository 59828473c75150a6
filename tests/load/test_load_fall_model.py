"""Nodes whose load falls against a dictionary: they come, go, are made again, stale and measured again.

The model keeps, for each name, the highest load since the node was last returned and whether it was stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load.load_book import LoadBook
from plimsoll.load.shares import PEAK
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.scheduling.queue.cooled_nodes import DEAD_BAND, CoolingNodes
from plimsoll.testing.builders import a_node

CORE, GIB = 10**9, 2**30
#: Room of every node: cores, and bytes.
ROOM = (10 * CORE, 100 * GIB)
NAMES = st.sampled_from(["n0", "n1", "n2", "n3"])
STEPS = st.one_of(
    st.tuples(st.just("uses"), NAMES, st.integers(0, 10), st.integers(0, 10), st.integers(0, 3)),
    st.tuples(st.just("is"), NAMES, st.sampled_from([*LoadState])),
    st.tuples(st.just("goes"), NAMES),
    st.tuples(st.just("comes"), NAMES),
    st.tuples(st.just("median"), st.integers(0, 90), st.integers(0, 90)),
    st.tuples(st.just("look")),
    st.tuples(st.just("look")),
)


class Watched:
    """A cluster whose load is watched, and the dictionary that says what should be found."""

    def __init__(self) -> None:
        self.cluster, self.cooling = Cluster(), CoolingNodes()
        self.book = self.cluster.index(LoadBook)
        self.highest: dict[str, list[float]] = {}
        self.stale: set[str] = set()

    def comes(self, name: str) -> None:
        """A node is there, without readings if it is new."""
        self.cluster.set_node(a_node(name, cpu="10", memory="100Gi"))

    def goes(self, name: str) -> None:
        """It is deleted."""
        if name in self.cluster.rows:
            self.cluster.remove_node(name)

    def uses(self, name: str, cores: int, tens: int, peak: int) -> None:
        """Its use, and how much its pods may use on top."""
        if name in self.cluster.rows:
            row = self.cluster.rows[name]
            self.book.system[row] = cores * CORE, 10 * tens * GIB
            self.book.sums[row, PEAK] = peak * CORE, 10 * peak * GIB

    def median(self, cpu: int, memory: int) -> None:
        """The medians of the measured nodes, in percent."""
        self.book.middle = (cpu, memory)

    def state(self, name: str, state: LoadState) -> None:
        """Whether it is measured."""
        if name in self.cluster.rows:
            self.book.known[self.cluster.rows[name]] = state

    def percent(self, row: int) -> list[float]:
        """Its load and peak, of cpu and of memory, as said in words."""
        found = []
        for extra in ((0, 0), self.book.sums[row, PEAK].tolist()):
            for at in (0, 1):
                used = int(self.book.system[row, at]) + extra[at]
                if self.book.known[row] != LoadState.MEASURED:
                    used = max(used, ROOM[at] // 100 * self.book.middle[at])
                found.append(100.0 * used / ROOM[at])
        return found

    def look(self) -> None:
        """What is returned is what fell since the node was last returned."""
        before, after, stale = [], [], []
        highest: dict[str, list[float]] = {}
        for row, node in enumerate(self.cluster.nodes):
            now = self.percent(row)
            top = [max(pair) for pair in zip(self.highest.get(node.name, [0.0] * 4), now, strict=True)]
            is_back = node.name in self.stale and self.book.known[row] == LoadState.MEASURED
            if is_back or any(high - low >= DEAD_BAND for high, low in zip(top, now, strict=True)):
                before.append(top)
                after.append(now)
                stale.append(is_back)
                top = now
            highest[node.name] = top
        self.highest = highest
        self.stale = {
            node.name
            for row, node in enumerate(self.cluster.nodes)
            if self.book.known[row] == LoadState.STALE
        }
        found = self.cooling.look(self.cluster)
        assert (found is not None) is bool(after)
        if found is not None:
            assert found.before.tolist() == before
            assert found.after.tolist() == after
            assert found.was_stale.tolist() == stale
            assert found.room.tolist() == [list(ROOM)] * len(after)


@given(st.lists(STEPS, min_size=20, max_size=40))
def test_nodes_that_cool_are_those_of_the_dictionary(steps: list[tuple[Any, ...]]) -> None:
    watched = Watched()
    does: dict[str, Callable[..., None]] = {
        "comes": watched.comes,
        "goes": watched.goes,
        "uses": watched.uses,
        "is": watched.state,
        "median": watched.median,
        "look": watched.look,
    }
    for name in ("n0", "n1", "n2"):
        watched.comes(name)
    for what, *values in [*steps, ("look",)]:
        does[what](*values)
