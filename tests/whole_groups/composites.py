"""Random composite groups in racks of blocks: where their groups start, against a search through all ways.

A case is small: an integer program would need a variable for each choice of domains, and trying all of them
is as short. What is searched: a block for all, a rack for each group that wants one, and nodes for members of
two sizes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from plimsoll.engine.gangs.composite import Branch, Leaf, place_unit
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from whole_groups.topology import BLOCK, PROFILE, RACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.engine.gangs.joint_decision import GangDecision
    from plimsoll.model.columns.cluster import Cluster


@dataclass
class Outcome:
    """What became of one composite group.

    Attributes:
        faults: Sentences about what must not happen.
        started: Whether it started.
        may_start: Whether there is a way.
    """

    faults: list[str] = field(default_factory=list)
    started: bool = False
    may_start: bool = False


def start_together(seed: int) -> Outcome:
    """Let one random composite group start."""
    draw = random.Random(seed)
    cluster = _racks(draw)
    root = _tree(draw, cluster)
    found = place_unit(root, cluster)
    outcome = Outcome(started=found.is_feasible, may_start=_may_start(root, cluster))
    if found.is_feasible:
        outcome.faults = list(_faults(root, found, cluster))
        if not outcome.may_start:
            outcome.faults.append("it starts, and no way was found by trying all")
    elif found.placements:
        outcome.faults.append("it does not start, and some members would be placed")
    return outcome


def _racks(draw: random.Random) -> Cluster:
    """Up to four racks in two blocks, partly in use."""
    nodes, pods = [], []
    for rack in range(draw.randint(1, 4)):
        for number in range(draw.randint(1, 3)):
            name = f"r{rack}-{number}"
            labels = {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
            nodes.append(a_node(name, cpu=str(draw.randint(1, 5)), labels=labels))
            if draw.random() < 0.4:
                pods.append(a_pod(f"old-{name}", cpu="1", node=name))
    return a_cluster(nodes, pods)


def _tree(draw: random.Random, cluster: Cluster) -> Branch:
    """Two or three groups, one of them perhaps of two more."""
    scheduler = ProfileScheduler(PROFILE, cluster)

    def leaf(name: str) -> Leaf:
        count, sizes = draw.randint(1, 4), draw.choices((1, 2, 3), (3, 2, 1), k=2)
        pods = [a_pod(f"{name}-{number}", cpu=str(sizes[number % 2])) for number in range(count)]
        waiting = tuple((cluster.templates.info(pod), scheduler) for pod in pods)
        return Leaf(name, draw.randint(max(1, count - 1), count), waiting, within=draw.choice(("", RACK)))

    children: list[Leaf | Branch] = [leaf(name) for name in ("a", "b", "c")[: draw.randint(2, 3)]]
    if draw.random() < 0.3:
        inner = (leaf("d"), leaf("e"))
        children[0] = Branch("inner", draw.randint(1, 2), inner, draw.choice(("", BLOCK, RACK)))
    least = draw.randint(max(1, len(children) - 1), len(children))
    return Branch("root", least, tuple(children), draw.choice(("", "", BLOCK)))


def _faults(node: Leaf | Branch, found: GangDecision, cluster: Cluster) -> Iterator[str]:
    """What must not be so once a composite group has started."""
    node_of = {str(each.decision.pod.uid): each.node for each in found.placements}
    free = (cluster.allocatable - cluster.requested).copy()
    for each in found.placements:
        free[cluster.rows[each.node]] -= cluster.requests_row(each.decision.pod.requests)
    if (free[: len(cluster)] < 0).any():
        yield "a node has more than it can hold"
    yield from _broken(node, node_of, cluster)


def _broken(node: Leaf | Branch, node_of: Mapping[str, str], cluster: Cluster) -> Iterator[str]:
    """Groups of which too few members or groups have a node, though some have; and labels that differ."""
    placed = [node_of[pod.uid] for leaf in node.leaves for pod, _ in leaf.waiting if pod.uid in node_of]
    values = {cluster.nodes[cluster.rows[each]].labels.get(node.within) for each in placed}
    if node.within and len(values) > 1:
        yield f"{node.key} is in {sorted(map(str, values))}, and {node.within} must be the same"
    if placed and not _is_met(node, node_of):
        yield f"{node.key} is placed in part: {sorted(placed)}"
    for child in node.children if isinstance(node, Branch) else ():
        yield from _broken(child, node_of, cluster)


def _is_met(node: Leaf | Branch, node_of: Mapping[str, str]) -> bool:
    if isinstance(node, Leaf):
        return sum(pod.uid in node_of for pod, _ in node.waiting) >= node.least
    return sum(_is_met(each, node_of) for each in node.children) >= node.least


# -- the search through all ways -----------------------------------------------------------------------------


def _may_start(root: Branch, cluster: Cluster) -> bool:
    """Whether the fewest members of enough groups fit, tried in every way."""
    n = len(cluster)
    axis = cluster.axis_of("cpu")
    assert axis is not None
    labels = [node.labels for node in cluster.nodes[:n]]
    free = tuple(((cluster.allocatable - cluster.requested)[:n, axis] // 1000).tolist())
    return any(True for _ in _ways(root, free, frozenset(range(n)), labels))


def _ways(
    node: Leaf | Branch, free: tuple[int, ...], rows: frozenset[int], labels: Sequence[Mapping[str, str]]
) -> Iterator[tuple[int, ...]]:
    """What may be left free once the group has enough members or groups in these rows, each way once."""
    domains = {labels[row].get(node.within) for row in rows} if node.within else {None}
    seen: set[tuple[int, ...]] = set()
    for value in domains:
        inside = frozenset(row for row in rows if not node.within or labels[row].get(node.within) == value)
        for left in _inside(node, free, inside, labels):
            if left not in seen:
                seen.add(left)
                yield left


def _inside(
    node: Leaf | Branch, free: tuple[int, ...], rows: frozenset[int], labels: Sequence[Mapping[str, str]]
) -> Iterator[tuple[int, ...]]:
    if isinstance(node, Leaf):
        sizes = sorted(pod.requests["cpu"] // 1000 for pod, _ in node.waiting)
        yield from _put(free, rows, tuple(sizes[: node.least]))
        return
    for chosen in combinations(node.children, node.least):
        lefts = {free}
        for child in chosen:
            lefts = {after for left in lefts for after in _ways(child, left, rows, labels)}
        yield from lefts


@cache
def _put(free: tuple[int, ...], rows: frozenset[int], sizes: tuple[int, ...]) -> frozenset[tuple[int, ...]]:
    """What may be left free once members of these sizes are placed; the smallest of a group suffice."""
    if not sizes:
        return frozenset({free})
    *rest, size = sizes
    return frozenset(
        left
        for row in rows
        if free[row] >= size
        for left in _put((*free[:row], free[row] - size, *free[row + 1 :]), rows, tuple(rest))
    )
