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

from msgspec.structs import replace

from plimsoll.engine.gangs.composite import Branch, Leaf, place_unit
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from whole_groups.topology import BLOCK, PROFILE, RACK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

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


def _racks(draw: random.Random, priorities: Sequence[int] = ()) -> Cluster:
    """Up to four racks in two blocks, partly in use; with priorities, mostly by pods of these."""
    nodes, pods = [], []
    for rack in range(draw.randint(1, 4)):
        for number in range(draw.randint(1, 3)):
            name = f"r{rack}-{number}"
            labels = {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
            cpu = draw.randint(1, 5)
            nodes.append(a_node(name, cpu=str(cpu), labels=labels))
            if priorities:
                names = (f"old-{name}-{each}" for each in range(draw.randint(0, cpu)))
                pods += [a_pod(each, cpu="1", node=name, priority=draw.choice(priorities)) for each in names]
            elif draw.random() < 0.4:
                pods.append(a_pod(f"old-{name}", cpu="1", node=name))
    return a_cluster(nodes, pods)


def _tree(draw: random.Random, cluster: Cluster, priorities: Sequence[int] = (0, 0)) -> Branch:
    """Two or three groups, one of them perhaps of two more."""
    scheduler = ProfileScheduler(PROFILE, cluster)

    def leaf(name: str) -> Leaf:
        count, sizes = draw.randint(1, 4), draw.choices((1, 2, 3), (3, 2, 1), k=2)
        pods = [
            a_pod(f"{name}-{number}", cpu=str(sizes[number % 2]), priority=priorities[number // 2 % 2])
            for number in range(count)
        ]
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
    new = {str(each.decision.pod.uid): each.node for each in found.placements}
    if refused := new.keys() & {each.pod.uid for each in found.refused}:
        yield f"placed and refused: {sorted(refused)}"
    free = (cluster.allocatable - cluster.requested).copy()
    for each in found.placements:
        free[cluster.rows[each.node]] -= cluster.requests_row(each.decision.pod.requests)
        for victim in each.victims:
            free[cluster.rows[each.node]] += cluster.requests_row(victim.requests)
    if (free[: len(cluster)] < 0).any():
        yield "a node has more than it can hold"
    yield from _broken(node, {**_standing(node, cluster), **new}, cluster)


def _standing(node: Leaf | Branch, cluster: Cluster) -> dict[str, str]:
    """The nodes of the members that have one, by uid."""
    uids = [uid for leaf in node.leaves for uid in leaf.placed]
    rows = ((uid, cluster.row_of_pod(uid)) for uid in uids)
    return {uid: cluster.nodes[row].name for uid, row in rows if row is not None}


def _members(leaf: Leaf) -> list[str]:
    return [*leaf.placed, *(pod.uid for pod, _ in leaf.waiting)]


def _broken(node: Leaf | Branch, node_of: Mapping[str, str], cluster: Cluster) -> Iterator[str]:
    """Groups of which too few members or groups have a node, though some have; and labels that differ."""
    placed = [node_of[uid] for leaf in node.leaves for uid in _members(leaf) if uid in node_of]
    values = {cluster.nodes[cluster.rows[each]].labels.get(node.within) for each in placed}
    if node.within and len(values) > 1:
        yield f"{node.key} is in {sorted(map(str, values))}, and {node.within} must be the same"
    if placed and not _is_met(node, node_of):
        yield f"{node.key} is placed in part: {sorted(placed)}"
    for child in node.children if isinstance(node, Branch) else ():
        yield from _broken(child, node_of, cluster)


def _is_met(node: Leaf | Branch, node_of: Mapping[str, str]) -> bool:
    if isinstance(node, Leaf):
        return sum(uid in node_of for uid in _members(node)) >= node.least
    return sum(_is_met(each, node_of) for each in node.children) >= node.least


# -- the second time ---------------------------------------------------------------------------------------


def start_again(seed: int) -> Outcome:
    """Let one random composite group start with some of its members, lose one, and get the others."""
    draw = random.Random(seed)
    cluster = _racks(draw)
    whole = _tree(draw, cluster)
    late = {pod.uid for pod, _ in whole.members if draw.random() < 0.3}
    first = place_unit(_as_it_is(whole, cluster, late), cluster)
    for each in first.placements if first.is_feasible else ():
        cluster.place(each.decision.pod, each.node)
    if first.placements and draw.random() < 0.3:
        cluster.displace(draw.choice(first.placements).decision.pod.uid)
    root = _as_it_is(whole, cluster)
    found = place_unit(root, cluster)
    outcome = Outcome(started=found.is_feasible, may_start=bool(root.fewest) and _may_start(root, cluster))
    if found.is_feasible:
        outcome.faults = [*_faults(root, found, cluster), *_idle(root, found, cluster)]
        if root.fewest and not outcome.may_start:
            outcome.faults.append("it starts, and no way was found by trying all")
        outcome.faults += _domains_that_take_more(root, found, cluster)
    return outcome


def preempt(seed: int) -> Outcome:
    """Let one random composite group preempt, perhaps after it has started with some of its members."""
    draw = random.Random(seed)
    cluster = _racks(draw, priorities=(0, 0, 0, 50))
    whole = _tree(draw, cluster, priorities=(10, 20))
    late = {pod.uid for pod, _ in whole.members if draw.random() < 0.5}
    first = place_unit(_as_it_is(whole, cluster, late), cluster)
    for each in first.placements if first.is_feasible else ():
        cluster.place(each.decision.pod, each.node)
    root = _as_it_is(whole, cluster)
    if place_unit(root, cluster).is_feasible:
        return Outcome()  # then no group preempts
    found = place_unit(root, cluster, is_preempting=True)
    without = cluster.fork()
    ours = {uid for leaf in root.leaves for uid in leaf.placed}
    for uid in [uid for uid, pod in cluster.pods.items() if pod.priority < 10]:
        without.displace(uid)
    outcome = Outcome(started=found.is_feasible, may_start=bool(root.fewest) and _may_start(root, without))
    if not found.is_feasible:
        return outcome
    outcome.faults = [*_faults(root, found, cluster)]
    victims = [victim for each in found.placements for victim in each.victims]
    if len({each.uid for each in victims}) < len(victims):
        outcome.faults.append("a pod is a victim twice")
    if ours & {each.uid for each in victims}:
        outcome.faults.append("a member is a victim of another one")
    if any(
        victim.priority >= each.decision.pod.priority for each in found.placements for victim in each.victims
    ):
        outcome.faults.append("a victim is as important")
    new = {each.decision.pod.uid for each in found.placements}
    outcome.faults += _beyond_need(root, new)
    return outcome


def _as_it_is(node: Branch, cluster: Cluster, absent: Collection[str] = ()) -> Branch:
    """The tree with the members that have a node now, and those that wait."""

    def renewed(each: Leaf | Branch) -> Leaf | Branch:
        if isinstance(each, Branch):
            return _as_it_is(each, cluster, absent)
        placed = tuple(pod.uid for pod, _ in each.waiting if pod.uid in cluster.pods)
        waiting = tuple(one for one in each.waiting if one[0].uid not in {*placed, *absent})
        return replace(each, waiting=waiting, placed=placed)

    return replace(node, children=tuple(map(renewed, node.children)))


def _idle(root: Branch, found: GangDecision, cluster: Cluster) -> Iterator[str]:
    """Members of groups that have started, without a node, though one of their domain has room for them."""
    node_of = _standing(root, cluster)
    node_of |= {str(each.decision.pod.uid): each.node for each in found.placements}
    after = cluster.fork()
    for each in found.placements:
        after.place(each.decision.pod, each.node)

    def walk(node: Leaf | Branch, rows: set[int]) -> Iterator[str]:
        there = [
            cluster.rows[node_of[uid]] for leaf in node.leaves for uid in _members(leaf) if uid in node_of
        ]
        if not there:
            return
        if node.within:
            value = cluster.nodes[there[0]].labels.get(node.within)
            rows = {row for row in rows if cluster.nodes[row].labels.get(node.within) == value}
        for child in node.children if isinstance(node, Branch) else ():
            yield from walk(child, rows)
        for pod, _ in node.waiting if isinstance(node, Leaf) else ():
            wanted = after.requests_row(pod.requests)
            free = [row for row in rows if (after.allocatable[row] - after.requested[row] >= wanted).all()]
            if pod.uid not in node_of and free:
                yield f"{pod.name} waits although there is room"

    yield from walk(root, set(range(len(cluster))))


def _domains_that_take_more(root: Branch, found: GangDecision, cluster: Cluster) -> Iterator[str]:
    """Domains of the root in which more members would have a node than in the one that was chosen."""
    for value in {node.labels.get(root.within) for node in cluster.nodes} if root.within else ():
        other = cluster.fork()
        for node in cluster.nodes:
            if node.labels.get(root.within) != value:
                spec = replace(node.spec, unschedulable=True)
                other.set_node(replace(node, spec=spec))
        alone = place_unit(root, other)
        if alone.is_feasible and len(alone.placements) > len(found.placements):
            yield f"{value} takes {len(alone.placements)} members, not {len(found.placements)}"


def _beyond_need(node: Branch, new: Collection[str]) -> Iterator[str]:
    """Groups and members that were placed with victims without being needed; or the less important ones."""
    served = [
        each
        for each in node.children
        if any(pod.uid in new for leaf in each.leaves for pod, _ in leaf.waiting)
    ]
    if len(served) > node.least:
        yield f"{len(served)} groups of {node.key} are placed, and {node.least} are enough"
    for each in served:
        if isinstance(each, Branch):
            yield from _beyond_need(each, new)
            continue
        important = sorted((-pod.priority for pod, _ in each.waiting))[: each.fewest]
        if sorted(-pod.priority for pod, _ in each.waiting if pod.uid in new) != important:
            yield f"of {each.key} others are placed than the most important ones that are needed"


# -- the search through all ways -----------------------------------------------------------------------------


def _may_start(root: Branch, cluster: Cluster) -> bool:
    """Whether the fewest members of enough groups fit, tried in every way."""
    n = len(cluster)
    axis = cluster.axis_of("cpu")
    assert axis is not None
    labels = [node.labels for node in cluster.nodes[:n]]
    free = tuple(((cluster.allocatable - cluster.requested)[:n, axis] // 1000).tolist())
    standing = {uid: cluster.rows[name] for uid, name in _standing(root, cluster).items()}
    return any(True for _ in _Ways(labels, standing).of(root, free, frozenset(range(n))))


@dataclass
class _Ways:
    """All ways to place the fewest members of enough groups.

    Attributes:
        labels: Those of each node.
        standing: The rows of the members that have a node, by uid; others must go to their domains.
    """

    labels: Sequence[Mapping[str, str]]
    standing: Mapping[str, int]

    def of(
        self, node: Leaf | Branch, free: tuple[int, ...], rows: frozenset[int]
    ) -> Iterator[tuple[int, ...]]:
        """What may be left free once the group has enough members or groups in these rows, each way once."""
        settled = {self.standing[uid] for leaf in node.leaves for uid in leaf.placed}
        domains = {self.labels[row].get(node.within) for row in settled or rows} if node.within else {None}
        seen: set[tuple[int, ...]] = set()
        for value in domains if len(domains) == 1 or not settled else ():
            inside = frozenset(
                row for row in rows if not node.within or self.labels[row].get(node.within) == value
            )
            for left in self._inside(node, free, inside):
                if left not in seen:
                    seen.add(left)
                    yield left

    def _inside(
        self, node: Leaf | Branch, free: tuple[int, ...], rows: frozenset[int]
    ) -> Iterator[tuple[int, ...]]:
        if isinstance(node, Leaf):
            sizes = sorted(pod.requests["cpu"] // 1000 for pod, _ in node.waiting)
            if len(sizes) >= node.fewest:
                yield from _put(free, rows, tuple(sizes[: node.fewest]))
            return
        for chosen in combinations(node.children, node.least):
            lefts = {free}
            for child in chosen:
                lefts = {after for left in lefts for after in self.of(child, left, rows)}
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
