"""Caches each node's result for claims of one shape, and searches again where something has changed.

Pods of one template have claims of one shape: for a new pod, only the one or two nodes are searched on which
devices were taken since the last one.

Axis letter: N nodes, as rows of the cluster.
"""

from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from weakref import ReferenceType, ref

import msgspec
import numpy as np

from plimsoll.devices.allocator import Found, Given, Matches, Search
from plimsoll.devices.amounts import Amounts
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.cel import is_too_much, why_not_yet
from plimsoll.devices.pod_claims import MOST_ALTERNATIVES
from plimsoll.devices.pools import NO_DRIVER, DeviceID, Pool, PooledDevice, PoolKey, PoolState
from plimsoll.devices.requests import WantedClaim
from plimsoll.devices.search_limits import TIMED_OUT, AllocationError, UnusablePoolError
from plimsoll.devices.taken import Taken
from plimsoll.model.columns.columns import BoolArray, IntArray
from plimsoll.model.kinds.node import Node

#: Codes of nodes: all claims fit; they do not fit; they do not, and a pool is invalid; the search failed; all
#: devices are requested, and a pool is being updated, or invalid.
FREE, NOT_FREE, INVALID, FAILED, ALL_OF_UPDATED, ALL_OF_INVALID = range(6)

#: Average steps per node, beyond the maximum of a single node.
STEPS_A_NODE = 300

#: Steps after which a part of the search ends: 5 to 20 ms.
STEPS_A_PART = 600

#: Number of nodes below which a part is not worthwhile.
FEW = 50


class KeptDevice(NamedTuple):
    """A device that was chosen for a request, without its slice: answers are kept when that has gone.

    Attributes:
        request: The index of the request.
        alternative: The index of the chosen alternative; 0 if the request is no list.
        device: The device's name.
        capacity: As :attr:`Given.capacity`.
    """

    request: int
    alternative: int
    device: DeviceID
    capacity: Amounts | None


class KeptDevices(NamedTuple):
    """A solution by names: the devices of each claim, and the chosen alternatives, as :class:`Found`."""

    given: tuple[tuple[KeptDevice, ...], ...]
    chosen: Mapping[tuple[int, int], int]

    def found(self, claims: Sequence[WantedClaim], pools: Sequence[Pool]) -> Found | None:
        """The solution for claims of this shape; None if a device is no longer among these pools."""
        by_key = {pool.key: pool for pool in pools}
        given = []
        for wanted, kept in zip(claims, self.given, strict=True):
            devices = []
            for each in kept:
                pool = by_key.get(PoolKey(each.device.driver, each.device.pool))
                device = None if pool is None else device_named(pool, each.device.device)
                if device is None:
                    return None
                request = wanted.requests[each.request].alternatives[each.alternative]
                devices.append(Given(request, device, each.capacity))
            given.append(tuple(devices))
        return Found(tuple(given), self.chosen)


def device_named(pool: Pool, name: str) -> PooledDevice | None:
    """The device of that name."""
    return next((each for each in pool.devices if each.device.name == name), None)


def named(found: Found, claims: Sequence[WantedClaim]) -> KeptDevices:
    """A solution that holds the names of its devices."""
    given = []
    for wanted, devices in zip(claims, found.given, strict=True):
        places = {
            id(each): (request, alternative)
            for request, asked in enumerate(wanted.requests)
            for alternative, each in enumerate(asked.alternatives)
        }
        given.append(
            tuple([KeptDevice(*places[id(each.wanted)], each.device.id, each.capacity) for each in devices])
        )
    return KeptDevices(tuple(given), found.chosen)


class NodeAnswer(NamedTuple):
    """The result of one node.

    Attributes:
        code: One of the codes.
        found: The names of the devices for the claims there.
        error: Why the search failed, without the name of the claim.
        pools: The pools that the node reaches.
        claim: Index of the claim whose name the error begins with; -1 for none.
        steps: Number of steps of the search.
        is_late: Whether these were too many.
    """

    code: int
    found: KeptDevices | None = None
    error: str = ""
    pools: frozenset[PoolKey] = frozenset()
    claim: int = -1
    steps: int = 1
    is_late: bool = False

    def failure(self, claims: Sequence[WantedClaim]) -> str:
        """Why the search failed, with the name of one of these claims; "" if it did not."""
        if self.claim < 0:
            return self.error
        return f"claim {claims[self.claim].claim.key}{self.error}"


class NodeAnswers:
    """The results for claims of one shape.

    Args:
        matches: Evaluates selectors.
        most_steps: Maximum number of steps on one node.

    Attributes:
        codes: Shape (N,).
        points: Shape (N,): points for alternatives that stand early in their lists.
        searches: Number of searches.
    """

    def __init__(self, matches: Matches, most_steps: int) -> None:
        self._matches = matches
        self._most_steps = most_steps
        self._answers: list[NodeAnswer] = []
        self._nodes: list[ReferenceType[Node]] = []
        self._is_stale: BoolArray = np.zeros(0, dtype=np.bool_)
        # Arrays, as a list holds an object for each row.
        self._rows_below: dict[PoolKey, array[int]] = {}  #: arrays are immutable
        self._rows_of: dict[PoolKey, array[int]] = {}  #: in addition to those
        self._gone: dict[PoolKey, int] = {}  #: numbers of rows there that no longer reach the pool
        self._is_shared = False
        self._late: set[int] = set()  #: rows on which the search took too long
        #: rows that have the result of such a row in place of their own
        self._is_behind: BoolArray = np.zeros(0, dtype=np.bool_)
        self._left: int | None = None  #: remaining steps of the parts for the following attempt
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
        """Search the nodes in ``rows``, shape (N,), where something has changed since their last search.

        Args:
            claims: Claims of the shape.
            nodes: Nodes by row.
            node_mark: Equal while these are the same.
            book: The book of devices.
            rows: The nodes to search.
        """
        asked, late = self._to_ask(nodes, node_mark, book, rows)
        if asked and (problem := why_not_yet(expressions_of(claims), book.now)):
            self._postpone(asked, NodeAnswer(FAILED, error=problem), self._is_stale)
            return
        left = self._most_steps + STEPS_A_NODE * len(asked) if self._left is None else self._left
        self._left = None
        reached: dict[int, NodeAnswer] = {}
        for place, row in enumerate(asked):
            if late is None and left > 0:
                answer = self._ask(row, claims, nodes[row], book, reached)
                left -= answer.steps
                late = row if answer.is_late else None
                continue
            if late is None:
                answer = NodeAnswer(FAILED, error=f"node {nodes[row].name}: {TIMED_OUT}")
                self._postpone(asked[place:], answer, self._is_stale)
            else:
                self._postpone(asked[place:], self._answers[late], self._is_behind)
            break

    def renew_part(
        self,
        claims: Sequence[WantedClaim],
        nodes: Sequence[Node],
        node_mark: Hashable,
        book: DeviceBook,
        rows: BoolArray,
    ) -> bool:
        """Do a short part of :meth:`renew`; returns whether another part is worthwhile.

        The parts and the following call of ``renew`` may together take as many steps as that call alone.

        Args:
            claims: Claims of the shape.
            nodes: Nodes by row.
            node_mark: Equal while these are the same.
            book: The book of devices.
            rows: The nodes to search, shape (N,).
        """
        if book.slices.judge_some():
            return True
        asked, late = self._to_ask(nodes, node_mark, book, rows)
        if late is not None or len(asked) <= FEW or is_too_much(expressions_of(claims)):
            return False
        if self._left is None:
            self._left = self._most_steps + STEPS_A_NODE * len(asked)
        before, reached = self._left, dict[int, NodeAnswer]()
        for row in asked:
            if self._left <= 0:
                return False
            answer = self._ask(row, claims, nodes[row], book, reached)
            self._left -= answer.steps
            if answer.is_late:
                return False
            if before - self._left > STEPS_A_PART:
                return True
        return False

    def answer(self, row: int) -> NodeAnswer:
        """The result of one node."""
        return self._answers[row]

    def rows_of(self, pools: Iterable[PoolKey]) -> frozenset[int]:
        """Rows of the nodes that reach one of these pools, as far as they were searched."""
        return frozenset(
            row
            for pool in pools
            for known in (self._rows_below, self._rows_of)
            for row in known.get(pool, ())
            if pool in self._answers[row].pools
        )

    def answer_if(
        self, claims: Sequence[WantedClaim], node: Node, book: DeviceBook, taken: Taken
    ) -> NodeAnswer:
        """The result of a node if these devices were taken; it is not cached."""
        return self._searched(claims, node, book, taken)

    def copied(self) -> "NodeAnswers":
        """An independent copy; results are shared until either side writes."""
        if self._rows_of:
            rows = dict(self._rows_below)
            for pool, known in self._rows_of.items():
                rows[pool] = rows[pool] + known if pool in rows else known
            self._rows_below, self._rows_of = rows, {}
        twin = NodeAnswers(self._matches, self._most_steps)
        twin._answers, twin._nodes, twin._is_stale = self._answers, self._nodes, self._is_stale
        twin._rows_below, twin.codes, twin.points = self._rows_below, self.codes, self.points
        twin._version, twin._shape_version = self._version, self._shape_version
        twin._late, twin._is_behind, twin._gone = set(self._late), self._is_behind, dict(self._gone)
        twin.searches = self.searches  # another cluster's rows may be other nodes: they are compared
        self._is_shared = twin._is_shared = True
        return twin

    def _own(self) -> None:
        """Unshare the data before writing, so that no copy sees the change."""
        if self._is_shared:
            self._answers, self._nodes = list(self._answers), list(self._nodes)
            self._rows_below = dict(self._rows_below)
            self._is_stale, self._is_behind = self._is_stale.copy(), self._is_behind.copy()
            self.codes, self.points = self.codes.copy(), self.points.copy()
            self._is_shared = False

    def _note_stale(self, nodes: Sequence[Node], node_mark: Hashable, book: DeviceBook) -> None:
        changed = book.changed_pools(self._version)
        count = len(nodes)
        if changed is None or self._shape_version != book.shape_version or count != len(self._nodes):
            self._answers, self._nodes = [NodeAnswer(FREE)] * count, list(map(ref, nodes))
            self._rows_below, self._rows_of, self._gone, self._late = {}, {}, {}, set()
            self._is_shared = False
            self._is_stale = np.ones(count, dtype=np.bool_)
            self._is_behind = np.zeros(count, dtype=np.bool_)
            self.codes, self.points = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        else:
            touched = self.rows_of(changed)
            if names := {key.name for key in changed if key.driver == NO_DRIVER}:
                touched |= {row for row, node in enumerate(nodes) if node.name in names}
            if touched:
                self._own()
                self._is_stale[list(touched)] = True
            if node_mark != self._node_mark:
                changed_rows = [row for row, known in enumerate(self._nodes) if known() is not nodes[row]]
                if changed_rows:
                    self._own()
                for row in changed_rows:
                    self._nodes[row], self._is_stale[row] = ref(nodes[row]), True
        self._version, self._shape_version, self._node_mark = book.version, book.shape_version, node_mark

    def _to_ask(
        self, nodes: Sequence[Node], node_mark: Hashable, book: DeviceBook, rows: BoolArray
    ) -> tuple[list[int], int | None]:
        """Rows to search, and one on which the search has taken too long; None without one."""
        self._note_stale(nodes, node_mark, book)
        late = next((row for row in self._late if rows[row] and not self._is_stale[row]), None)
        if late is None and self._is_behind.any():
            self._own()
            self._is_stale |= self._is_behind
            self._is_behind[:] = False
        asked: list[int] = np.flatnonzero(self._is_stale & rows).tolist()
        if asked:
            self._own()
        return asked, late

    def _postpone(self, rows: Sequence[int], answer: NodeAnswer, until: BoolArray) -> None:
        """Skip these nodes now, as the search would take too long.

        If the search took too long on one node, the same is expected of all others. An attempt with one such
        node fails anyway, so these have its result until it gets another. Otherwise they are searched in the
        next attempt.

        Args:
            rows: The rows of the nodes.
            answer: What they have meanwhile.
            until: ``_is_behind`` or ``_is_stale``.
        """
        for row in rows:
            self._note(row, answer._replace(pools=self._answers[row].pools))
        until[rows] = True

    def _ask(
        self,
        row: int,
        claims: Sequence[WantedClaim],
        node: Node,
        book: DeviceBook,
        reached: dict[int, NodeAnswer],
    ) -> NodeAnswer:
        """Search one node, or reuse the result of one that reaches the same pools."""
        before = self._answers[row].pools
        same = id(book.slices.pools_of(node))
        answer = reached.get(same)
        if answer is None:
            answer = self._searched(claims, node, book, book.taken)
            reached[same] = answer._replace(steps=1)
        self._note(row, answer, 0 if answer.found is None else points_of(answer.found, claims))
        if before != answer.pools:
            self._reaches(row, before, answer.pools)
        if answer.is_late:
            self._late.add(row)
        else:
            self._late.discard(row)
        return answer

    def _reaches(self, row: int, before: frozenset[PoolKey], now: frozenset[PoolKey]) -> None:
        """Note the pools that a node reaches: a driver may rename its own as often as it likes.

        Rows that no longer reach a pool are taken out when they are half of its rows, so that many nodes that
        leave it cost no more than their number.
        """
        for key in now - before:
            self._rows_of.setdefault(key, array("i")).append(row)
        for key in before - now:
            gone = self._gone[key] = self._gone.get(key, 0) + 1
            layers = (self._rows_below, self._rows_of)
            if 2 * gone < sum(len(rows.get(key, ())) for rows in layers):
                continue
            del self._gone[key]
            for rows in layers:
                left = array("i", [each for each in rows.pop(key, ()) if key in self._answers[each].pools])
                if left:
                    rows[key] = left

    def _searched(
        self, claims: Sequence[WantedClaim], node: Node, book: DeviceBook, taken: Taken
    ) -> NodeAnswer:
        """Search one node."""
        pools = book.slices.pools_of(node)
        keys = frozenset(pool.key for pool in pools)
        self.searches += 1
        search = Search(claims, pools, taken, self._matches, self._most_steps)
        try:
            found = search.run()
        except UnusablePoolError as exc:
            code = ALL_OF_INVALID if exc.is_invalid else ALL_OF_UPDATED
            return NodeAnswer(code, pools=keys, steps=search.steps.used)
        except AllocationError as exc:
            error = f"node {node.name}: {TIMED_OUT}" if exc.told == TIMED_OUT else exc.told
            names = [each.claim.key for each in claims]
            at = names.index(exc.claim) if exc.claim in names else -1
            return NodeAnswer(FAILED, None, error, keys, at, search.steps.used, search.is_late)
        code = FREE
        if found is None:
            is_invalid = any(pool.state is PoolState.INVALID for pool in pools)
            code = INVALID if is_invalid else NOT_FREE
        kept = None if found is None else named(found, claims)
        return NodeAnswer(code, kept, pools=keys, steps=search.steps.used)

    def _note(self, row: int, answer: NodeAnswer, points: int = 0) -> None:
        self._answers[row] = answer
        self.codes[row], self.points[row] = answer.code, points
        self._is_stale[row] = self._is_behind[row] = False


def points_of(found: KeptDevices, claims: Sequence[WantedClaim]) -> int:
    """Eight points for each list of alternatives whose first was chosen, seven for the second, and so on."""
    return sum(
        MOST_ALTERNATIVES - found.chosen[claim, place]
        for claim, wanted in enumerate(claims)
        for place, request in enumerate(wanted.requests)
        if request.is_list and (claim, place) in found.chosen
    )


def expressions_of(claims: Iterable[WantedClaim]) -> Iterator[str]:
    """The selectors of their requests and classes."""
    return (
        expression.text
        for claim in claims
        for request in claim.requests
        for wanted in request.alternatives
        for expression in wanted.expressions
    )


def shape_of(claims: Sequence[WantedClaim]) -> bytes:
    """A key that is equal for claims with equal results on every node."""
    return msgspec.msgpack.encode([each.claim.spec for each in claims])
