"""NodeAnswers keeps what each node answers to claims of one shape, searching again where something changed.

Pods of one template have claims of one shape: a new pod asks the one or two nodes on which devices were taken
since the last one, and no other.

Axis letter: N nodes, as rows of the cluster.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from plimsoll.devices.allocator import AllocationError, Found, Matches, Search
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pod_claims import MOST_ALTERNATIVES
from plimsoll.devices.pools import PoolKey, PoolState
from plimsoll.devices.requests import WantedClaim
from plimsoll.model.columns.columns import BoolArray, IntArray
from plimsoll.model.kinds.node import Node

#: Codes of nodes: all claims fit; they do not; they do not, and a pool is invalid; the search failed.
FREE, NOT_FREE, INVALID, FAILED = range(4)


class NodeAnswer(NamedTuple):
    """What one node answers.

    Attributes:
        code: One of the codes.
        found: What the claims get there.
        error: Why the search failed.
        pools: Those that the node reaches.
    """

    code: int
    found: Found | None = None
    error: str = ""
    pools: frozenset[PoolKey] = frozenset()


class NodeAnswers:
    """The answers to claims of one shape.

    Args:
        matches: Evaluates selectors.
        most_steps: Of a search on one node.

    Attributes:
        codes: Shape (N,).
        points: Shape (N,): for alternatives that stand early in their lists.
        searches: How many there were.
    """

    def __init__(self, matches: Matches, most_steps: int) -> None:
        self._matches = matches
        self._most_steps = most_steps
        self._answers: list[NodeAnswer] = []
        self._nodes: list[Node] = []
        self._is_stale: BoolArray = np.zeros(0, dtype=np.bool_)
        self._rows_of: dict[PoolKey, list[int]] = {}
        self._version = self._shape_version = -1
        self._node_mark: Hashable = None
        self.codes: IntArray = np.zeros(0, dtype=np.int64)
        self.points: IntArray = np.zeros(0, dtype=np.int64)
        self.searches = 0

    def renew(
        self,
        claims: Sequence[WantedClaim],
        nodes: Sequence[Node],
        node_mark: Hashable,
        book: DeviceBook,
        rows: BoolArray,
    ) -> None:
        """Ask those of the nodes in ``rows``, shape (N,), where something changed since they were asked.

        Args:
            claims: Of the shape.
            nodes: By row.
            node_mark: Equal while these are the same.
            book: What is taken.
            rows: Which nodes are asked about.
        """
        self._note_stale(nodes, node_mark, book)
        asked = np.flatnonzero(self._is_stale & rows).tolist()
        for place, row in enumerate(asked):
            if self._ask(row, claims, nodes[row], book):
                continue
            # As long on every node that is left: an attempt with one such node fails anyway.
            for other in asked[place + 1 :]:
                self._note(other, self._answers[row]._replace(pools=self._answers[other].pools))
            break

    def answer(self, row: int) -> NodeAnswer:
        """What one node answers."""
        return self._answers[row]

    def _note_stale(self, nodes: Sequence[Node], node_mark: Hashable, book: DeviceBook) -> None:
        changed = book.changed_pools(self._version)
        count = len(nodes)
        if changed is None or self._shape_version != book.shape_version or count != len(self._nodes):
            self._answers, self._nodes, self._rows_of = [NodeAnswer(FREE)] * count, list(nodes), {}
            self._is_stale = np.ones(count, dtype=np.bool_)
            self.codes, self.points = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        else:
            for pool in changed:
                self._is_stale[self._rows_of.get(pool, [])] = True
            if node_mark != self._node_mark:
                for row, node in enumerate(nodes):
                    if node is not self._nodes[row]:
                        self._nodes[row], self._is_stale[row] = node, True
        self._version, self._shape_version, self._node_mark = book.version, book.shape_version, node_mark

    def _ask(self, row: int, claims: Sequence[WantedClaim], node: Node, book: DeviceBook) -> bool:
        """Search on one node; False where that took too long."""
        pools = book.slices.pools_of(node)
        keys = frozenset(pool.key for pool in pools)
        for key in keys - self._answers[row].pools:
            self._rows_of.setdefault(key, []).append(row)
        self.searches += 1
        search = Search(claims, pools, book.taken, self._matches, self._most_steps)
        try:
            found = search.run()
        except AllocationError as exc:
            error = f"node {node.name}: {exc}" if search.is_late else str(exc)
            self._note(row, NodeAnswer(FAILED, error=error, pools=keys))
            return not search.is_late
        code = FREE
        if found is None:
            is_invalid = any(pool.state is PoolState.INVALID for pool in pools)
            code = INVALID if is_invalid else NOT_FREE
        self._note(row, NodeAnswer(code, found, pools=keys), 0 if found is None else points_of(found, claims))
        return True

    def _note(self, row: int, answer: NodeAnswer, points: int = 0) -> None:
        self._answers[row] = answer
        self.codes[row], self.points[row] = answer.code, points
        # An error names claims, and the next pod's have other names.
        self._is_stale[row] = answer.code == FAILED


def points_of(found: Found, claims: Sequence[WantedClaim]) -> int:
    """Eight for each list of alternatives whose first one was chosen, seven for the second, and so on."""
    return sum(
        MOST_ALTERNATIVES - found.chosen[claim, place]
        for claim, wanted in enumerate(claims)
        for place, request in enumerate(wanted.requests)
        if request.is_list and (claim, place) in found.chosen
    )


def shape_of(claims: Sequence[WantedClaim]) -> bytes:
    """Equal for claims that every node answers alike."""
    return msgspec.msgpack.encode([each.claim.spec for each in claims])
