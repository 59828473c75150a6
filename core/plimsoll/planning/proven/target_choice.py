"""Chooses the target of a move from the scheduler's ranking for the pod's replacement."""

from collections.abc import Callable, Iterator
from itertools import chain, islice

import numpy as np
from msgspec import Struct

from plimsoll.engine.decision import Ranking
from plimsoll.framework import BoolArray
from plimsoll.framework.descheduling.proposals import Candidate, Destinations, Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import counted
from plimsoll.model.kinds.node import Node

Exclusion = Callable[[str], str]
"""Whether replacements may be expected on the node of this name."""

RefusalAt = Callable[[str], Refusal | None]
"""Why the replacement does not go to the node of this name."""

CoolRows = Callable[[], BoolArray | None]
"""Shape (N,) by row: whether a node's load alone is no objection; None where load does not matter."""

#: Maximum number of nodes to try for one pod, best first; strategies object to most others for the same
#: reason.
TRIES = 12

#: Up to this many nodes are sorted together; of more, the best are found first.
FEW = 64


class TargetRows:
    """Nodes as rows of a plan's fork, whose nodes do not change.

    Attributes:
        admitted: Shape (N,): whether the node may be a target; those that the plan empties are no more.
    """

    def __init__(self, cluster: Cluster, is_target: Callable[[Node], bool]) -> None:
        self._rows = cluster.rows
        self.admitted: BoolArray = np.fromiter(map(is_target, cluster.nodes), np.bool_, len(cluster))
        self._latest: tuple[frozenset[str] | None, BoolArray] = None, self.admitted

    def close(self, name: str) -> None:
        """Admit the node no longer."""
        self.admitted[self._rows[name]] = False

    def among(self, names: frozenset[str]) -> BoolArray:
        """Shape (N,): whether the node has one of these names; cached for the latest set."""
        if self._latest[0] is not names:
            mask = np.zeros(len(self.admitted), dtype=np.bool_)
            mask[[self._rows[name] for name in names if name in self._rows]] = True
            self._latest = names, mask
        return self._latest[1]


class TargetChoice(Struct, frozen=True):
    """The target of a replacement.

    Attributes:
        is_directed: Whether the replacement must be sent there, because the scheduler may choose another node
            by score.
    """

    target: str
    is_directed: bool


def expected(
    candidate: Candidate,
    ranking: Ranking,
    exclusion: Exclusion,
    refusal_at: RefusalAt,
    *,
    is_forecast: bool,
    may_return: bool,
) -> TargetChoice | Refusal:
    """The node that the scheduler chooses by itself, not the pod's own unless it ``may_return``.

    If another scheduler decides (``is_forecast``), each of several equal nodes must be acceptable.
    """
    source, best = candidate.node, ranking.best
    refusal = _without_choice(source, ranking, may_return=may_return)
    if refusal is not None:
        return refusal
    if source in best and not may_return:
        return Refusal(
            "WouldReturn",
            f"the scheduler may put it on node {source} again: no other node has a better score"
            f" than its {int(ranking.totals.max())}",
        )
    other = next((name for name in best if exclusion(name)), "")
    if other:
        return Refusal("NotATarget", f"the best node {other} {exclusion(other)}")
    serves = candidate.destinations
    useless = next((name for name in best if serves is not None and not serves.admits(name)), "")
    if useless:
        return Refusal(
            "NoDestination",
            f"the scheduler may put it on node {useless}, which does not serve the strategy's purpose",
        )
    first: Refusal | None = None
    for name in best[:TRIES]:
        refusal = refusal_at(name)
        if refusal is None and not is_forecast:
            return TargetChoice(name, is_directed=False)
        first = first or refusal
    return first or TargetChoice(best[0], is_directed=False)


def best_admitted(
    candidate: Candidate,
    ranking: Ranking,
    targets: TargetRows,
    refusal_at: RefusalAt,
    *,
    may_return: bool,
    cool: CoolRows = lambda: None,
) -> TargetChoice | Refusal:
    """The best node that serves the strategy's purpose; the replacement is sent there.

    The best is by the strategy's own order if it has one, then by the scheduler's score. If there are more
    nodes than tries, and the strategy has no order, ``cool`` nodes come first. The pod's own node is allowed
    if it ``may_return``.
    """
    source, serves = candidate.node, candidate.destinations
    refusal = _without_choice(source, ranking, may_return=may_return)
    if refusal is not None:
        return refusal
    rows = ranking.rows
    chosen = (
        np.ones(len(rows), dtype=np.bool_) if may_return else rows != ranking.cluster.rows.get(source, -1)
    )
    fitting = int(np.count_nonzero(chosen))
    chosen &= targets.admitted[rows]
    allowed = int(np.count_nonzero(chosen))
    if serves is not None and serves.names is not None:
        chosen &= targets.among(serves.names)[rows]
    first: Refusal | None = None
    for name, total in islice(_cool_first(ranking, chosen, serves, cool), TRIES):
        refusal = refusal_at(name)
        if refusal is None:
            highest = int(ranking.totals.max())
            best = ranking.totals == highest
            rivals = bool(
                np.count_nonzero(best) > 1 if serves is not None else (best & ~targets.admitted[rows]).any()
            )
            returns: bool = name != source and ranking.total_of(source) == highest
            return TargetChoice(name, is_directed=total < highest or returns or rivals)
        first = first or refusal
    return first or no_target(fitting, allowed)


def no_target(fitting: int, allowed: int) -> Refusal:
    """No ``fitting`` node is a target, or no ``allowed`` one serves the purpose."""
    if not allowed:
        return Refusal("NotATarget", f"it fits {_nodes(fitting)} besides its own, and none may be a target")
    return Refusal(
        "NoDestination", f"it fits {_nodes(allowed)} besides its own, and none serves the strategy's purpose"
    )


def best_rows(ranking: Ranking, chosen: BoolArray, count: int) -> list[int]:
    """The best of the chosen nodes, at most ``count``, in the order in which they are tried."""
    return [row for row, _ in islice(_by_total(ranking, chosen), count)]


def not_sent(candidate: Candidate, ranking: Ranking, exclusion: Exclusion) -> Refusal | None:
    """Why the replacement cannot be sent to the strategy's target."""
    target = candidate.target
    if target == candidate.node:
        return Refusal("NoOtherNode", f"the pod already runs on target node {target}")
    if ranking.total_of(target) is None:
        why = f": {ranking.diagnosis}" if ranking.diagnosis else ""
        return Refusal("NotFeasible", f"node {target} is not feasible for it any more{why}")
    if exclusion(target):
        return Refusal("NotATarget", f"node {target} {exclusion(target)}")
    return None


def short_of_gain(
    ranking: Ranking, source: str, target: str, least: int | None, *, compares: bool
) -> Refusal | None:
    """Why a move gains less than ``least`` points by the scheduler's score; None when ``least`` is None.

    A strategy that ``compares`` is refused when the pod's own node is no longer feasible.
    """
    if least is None:
        return None
    own, total = ranking.total_of(source), ranking.total_of(target)
    if own is None or total is None:
        if not compares:
            return None
        return Refusal("NoComparison", f"node {source}, its own, is not feasible and has no score")
    if total - own >= least:
        return None
    return Refusal(
        "SmallGain",
        f"node {target} scores {counted(total - own, 'point')} more than its own, {least} are required",
    )


def narrowed(ranking: Ranking, meanwhile: Ranking, source: str, exclusion: Exclusion) -> Ranking:
    """The pod's own node, and the targets that are feasible while the pod still runs.

    The scores are those of ``ranking``, for the cluster without the pod: next to itself, a pod scores every
    other node higher than it should. ``meanwhile`` ranks the cluster as it is until then.
    """
    kept = [
        at
        for at, name in enumerate(ranking.nodes)
        if name == source or (meanwhile.total_of(name) is not None and not exclusion(name))
    ]
    return Ranking(
        ranking.cluster,
        ranking.rows[kept],
        ranking.totals[kept],
        None if kept else ranking.diagnosis or meanwhile.diagnosis,
    )


def both(ranking: Ranking, meanwhile: Ranking) -> Ranking:
    """The nodes that are feasible at any time; without any, those that are feasible in the end.

    ``ranking`` is for the cluster without the pod, ``meanwhile`` for the cluster until the pod has ended.
    """
    kept = np.flatnonzero(np.isin(ranking.rows, meanwhile.rows))
    if not len(kept):
        return ranking
    return Ranking(ranking.cluster, ranking.rows[kept], ranking.totals[kept])


def _in_order(ranking: Ranking, chosen: BoolArray, serves: Destinations | None) -> Iterator[tuple[str, int]]:
    """The chosen nodes that serve the purpose, with their totals, the best first.

    By the strategy's order if it has one, then by the total, then sorted by name.
    """
    nodes = ranking.cluster.nodes
    admits = None if serves is None or serves.names is not None else serves.admits
    ordered = (
        (nodes[row].name, total)
        for row, total in _by_total(ranking, chosen)
        if admits is None or admits(nodes[row].name)
    )
    if serves is None or serves.preference is None:
        return ordered
    preference = serves.preference
    return iter(sorted(ordered, key=lambda each: -preference(each[0])))


def _cool_first(
    ranking: Ranking, chosen: BoolArray, serves: Destinations | None, cool: CoolRows
) -> Iterator[tuple[str, int]]:
    """The same; if there are more nodes than tries, the nodes that are not too hot come first."""
    has_order = serves is not None and serves.preference is not None
    rows = None if has_order or np.count_nonzero(chosen) <= TRIES else cool()
    if rows is None:
        return _in_order(ranking, chosen, serves)
    is_cool = rows[ranking.rows]
    return chain(_in_order(ranking, chosen & is_cool, serves), _in_order(ranking, chosen & ~is_cool, serves))


def _by_total(ranking: Ranking, chosen: BoolArray) -> Iterator[tuple[int, int]]:
    """Rows with their totals, the highest first, equal ones sorted by name; sorts no more than are read."""
    rows, totals = ranking.rows[chosen], ranking.totals[chosen]
    if len(rows) > FEW:
        line = np.partition(totals, len(totals) - TRIES)[len(totals) - TRIES]
        parts: tuple[BoolArray, ...] = (totals >= line, totals < line)
    else:
        parts = (np.ones(len(rows), dtype=np.bool_),)
    ranks = ranking.cluster.name_ranks
    for part in parts:
        some, points = rows[part], totals[part]
        order = np.lexsort((ranks[some], -points))
        yield from zip(some[order].tolist(), points[order].tolist(), strict=True)


def _without_choice(source: str, ranking: Ranking, *, may_return: bool = False) -> Refusal | None:
    """Why there is no other node at all."""
    if not len(ranking):
        return Refusal("NoFeasibleNode", str(ranking.diagnosis))
    if not may_return and len(ranking) == 1 and ranking.total_of(source) is not None:
        return Refusal("NoOtherNode", f"node {source}, its own, is the only feasible one")
    return None


def _nodes(count: int) -> str:
    return counted(count, "node")
