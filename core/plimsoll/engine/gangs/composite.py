"""Places the groups of a composite group together, on a fork: enough groups with enough members, or none.

The tree is searched from the root. A composite group with a label takes one domain after the other, as a
group does (:mod:`plimsoll.engine.gangs.placement`), and the groups below it are confined to it. In a domain,
each group is placed while it sees those before it. What kube-scheduler does not try, because it never goes
back, is tried here for a bounded time: a group that does not fit goes first in the next try, and members that
no group needs are left out until all groups that are needed have their places.

A composite group preempts for the groups and members that it needs, and only if those have places then.
Source: KEP-6012; kube-scheduler v1.37, ``schedule_one_podgroup.go`` (compositePodGroupSchedulingAlgorithm).
Differs: the order of groups; a group's minimum comes before another group's further members; and no group
preempts for members beyond its minimum.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.devices.fork_bookings import book_again
from plimsoll.engine.decision import Decision
from plimsoll.engine.gangs.fewer_victims import displace
from plimsoll.engine.gangs.joint_decision import GangDecision, Placement
from plimsoll.engine.gangs.placement import GangSearch, domains_to_try, place_together
from plimsoll.engine.plugin_calls import OverBudgetError, check_budget
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.group_trees import GroupTrees
from plimsoll.model.kinds.composite_pod_group import is_composite
from plimsoll.model.kinds.owned_group import title_of

#: Maximum number of times that the groups of one composite group are tried in another order.
MOST_ORDERS = 8


class Leaf(Struct, frozen=True):
    """A group of pods.

    Attributes:
        key: Its key.
        least: The number of members that must have a node.
        waiting: The members without a node, with their schedulers.
        placed: The uids of the members that have one.
        within: The node label whose value all members share, "" for none.
        near: The node labels whose values they should share, the narrowest first.
    """

    key: str
    least: int
    waiting: tuple[tuple[PodInfo, ProfileScheduler], ...]
    placed: tuple[str, ...] = ()
    within: str = ""
    near: tuple[str, ...] = ()

    @property
    def leaves(self) -> Iterator["Leaf"]:
        """Itself."""
        yield self

    @property
    def fewest(self) -> int:
        """The fewest members that must be placed for it."""
        return max(self.least - len(self.placed), 0)

    @property
    def labels(self) -> frozenset[str]:
        """The node labels that confine members."""
        return frozenset({self.within} - {""})

    def ready(self, uids: Collection[str]) -> frozenset[str] | None:
        """Its key if these members and those that have a node are enough, else None; empty without these."""
        count = sum(pod.uid in uids for pod, _ in self.waiting)
        if count < self.fewest:
            return None
        return frozenset({self.key}) if count else frozenset()


class Branch(Struct, frozen=True):
    """A composite group.

    Attributes:
        key: Its key.
        least: The number of its groups that must have enough members with a node.
        children: Its groups, the oldest first.
        within: The node label whose value the members of all groups share, "" for none.
    """

    key: str
    least: int
    children: tuple["Leaf | Branch", ...]
    within: str = ""

    @property
    def leaves(self) -> Iterator[Leaf]:
        """The groups of pods."""
        return chain.from_iterable(each.leaves for each in self.children)

    @property
    def fewest(self) -> int:
        """The fewest members that must be placed for it."""
        return sum(sorted(each.fewest for each in self.children)[: self.least])

    def ready(self, uids: Collection[str]) -> frozenset[str] | None:
        """The keys of the groups of pods that may start with these members; None if too few groups may."""
        found = [keys for each in self.children if (keys := each.ready(uids)) is not None]
        return frozenset().union(*found) if len(found) >= self.least else None

    @property
    def members(self) -> list[tuple[PodInfo, ProfileScheduler]]:
        """The members of all groups that have no node."""
        return [each for leaf in self.leaves for each in leaf.waiting]

    @property
    def labels(self) -> frozenset[str]:
        """The node labels that confine members."""
        return frozenset({self.within} - {""}).union(*(each.labels for each in self.children))


def branch_of(trees: GroupTrees, key: str, leaf: Callable[[str], Leaf]) -> Branch:
    """The composite group with this key, which is part of a valid tree; ``leaf`` gives a group of pods."""
    found = trees.composite(key)
    children = tuple(
        branch_of(trees, each, leaf) if is_composite(each) else leaf(each) for each in trees.children(key)
    )
    return Branch(key, found.least, children, found.topology_key)


def place_unit(unit: Leaf | Branch, cluster: Cluster, *, is_preempting: bool = False) -> GangDecision:
    """Find nodes for enough members of a group or of enough groups, or for none; the cluster is only read."""
    if isinstance(unit, Branch):
        return _place_composite(unit, cluster, is_preempting=is_preempting)
    return _together(unit, unit.waiting, cluster, is_preempting=is_preempting)


def _together(
    leaf: Leaf,
    members: Sequence[tuple[PodInfo, ProfileScheduler]],
    cluster: Cluster,
    *,
    is_preempting: bool,
    inside: Sequence[tuple[str, str]] = (),
    others: Collection[str] = (),
) -> GangDecision:
    """Places for members of one group."""
    return place_together(
        members,
        cluster,
        max(leaf.fewest, 1),
        is_preempting=is_preempting,
        placed=leaf.placed,
        within=leaf.within,
        near=() if is_preempting else leaf.near,
        inside=inside,
        others=others,
    )


def _place_composite(root: Branch, cluster: Cluster, *, is_preempting: bool) -> GangDecision:
    ours = frozenset(
        chain.from_iterable((*(pod.uid for pod, _ in each.waiting), *each.placed) for each in root.leaves)
    )
    members = root.members
    if not members:
        return GangDecision((), (), 1)
    scope = _Scope(cluster.fork(), ours, members[0], is_preempting=is_preempting, only_needed=is_preempting)
    found = _placed(root, scope)
    if not (found.is_met or found.is_over) and any(len(each.waiting) > each.fewest for each in root.leaves):
        needed = _placed(root, replace(scope, only_needed=True))
        if needed.is_met and needed.placements:
            fork = scope.cluster.fork()
            _repeat(needed.placements, fork)
            more = _placed(_after(root, needed.placements), scope.on(fork))
            found = replace(needed, placements=(*needed.placements, *more.placements), refused=more.refused)
    if found.is_met and found.placements:
        return GangDecision(found.placements, found.refused, 1)
    said = found.said or "; ".join(dict.fromkeys(each.message for each in found.refused))
    return GangDecision((), found.refused, 1, "", f"{title_of(root.key)}: {said}")


class _Scope(Struct, frozen=True):
    """Where groups are searched, and what they may do.

    Attributes:
        cluster: A fork, with the members that were placed before.
        ours: The uids of all members of the tree, which cannot be victims.
        first: The member that is refused when the search is given up.
        domains: Label and value of the domains that confine the members.
        only_needed: Whether groups and members beyond the minimum are left out.
        twins: The schedulers on the fork, by the id of the one that they are copies of.
    """

    cluster: Cluster
    ours: frozenset[str]
    first: tuple[PodInfo, ProfileScheduler]
    is_preempting: bool
    only_needed: bool
    domains: tuple[tuple[str, str], ...] = ()
    twins: dict[int, ProfileScheduler] = field(default_factory=dict)

    def on(self, fork: Cluster) -> "_Scope":
        """The same on another fork."""
        return replace(self, cluster=fork, twins={})

    def bound(
        self, members: Sequence[tuple[PodInfo, ProfileScheduler]]
    ) -> list[tuple[PodInfo, ProfileScheduler]]:
        """Members with their schedulers on the fork, which keep what they know from group to group."""
        for _, scheduler in members:
            if id(scheduler) not in self.twins:
                self.twins[id(scheduler)] = scheduler.on(self.cluster, scheduler.profile)
        return [(pod, self.twins[id(scheduler)]) for pod, scheduler in members]


class _Found(Struct, frozen=True):
    """What a search came to.

    Attributes:
        is_met: Whether enough members have, or get, a node.
        placements: The members that get one; none if it is not met.
        refused: Members that get none.
        said: What is lacking.
        groups: The number of groups that have enough.
    """

    is_met: bool
    placements: tuple[Placement, ...] = ()
    refused: tuple[Decision, ...] = ()
    said: str = ""
    groups: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the processor time is used up: no further try can succeed."""
        return any(isinstance(each.error, OverBudgetError) for each in self.refused)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The better, the higher."""
        return self.is_met, self.groups, len(self.placements)


def _placed(node: Leaf | Branch, scope: _Scope) -> _Found:
    try:
        check_budget()  # a tree in many domains can fail in each order without a call of a plugin
    except OverBudgetError as exc:
        pod, scheduler = scope.first
        return _Found(is_met=False, refused=(scheduler.broken(pod, exc),))
    if isinstance(node, Leaf):
        return _leaf(node, scope)
    if not node.within:
        return _children(node, scope)
    search = GangSearch(
        scope.bound(node.members),
        scope.cluster,
        node.fewest,
        scope.ours,
        scope.is_preempting,
        settled=[
            row
            for leaf in node.leaves
            for uid in leaf.placed
            if (row := scope.cluster.row_of_pod(uid)) is not None
        ],
        domains=scope.domains,
    )
    values, why = domains_to_try(search, node.within)
    best: _Found | None = None
    for value in values:
        found = _children(node, replace(scope, domains=(*scope.domains, (node.within, value))))
        if best is None or found.rank > best.rank:
            said = found.said and f"in {node.within} {value}, the first of {len(values)} to try: {found.said}"
            best = replace(found, said=said)
        if found.is_over or (best.is_met and (scope.is_preempting or not best.refused)):
            return best if not found.is_over else found
    return best or _Found(is_met=not node.fewest, said=why)


def _leaf(leaf: Leaf, scope: _Scope) -> _Found:
    title, waiting = title_of(leaf.key), leaf.waiting
    if len(waiting) < leaf.fewest:
        return _Found(is_met=False, said=f"cannot find enough sibling pods of {title}")
    if scope.only_needed:
        waiting = tuple(sorted(waiting, key=_size)[: leaf.fewest])
    if not waiting:
        return _Found(is_met=True, groups=1)
    found = _together(
        leaf,
        scope.bound(waiting),
        scope.cluster,
        is_preempting=scope.is_preempting,
        inside=scope.domains,
        others=scope.ours,
    )
    said = "" if found.is_feasible else f"{title}: {found.message(len(leaf.placed), leaf.least)}"
    placements = found.placements if found.is_feasible else ()
    is_met = found.is_feasible or not leaf.fewest
    return _Found(is_met, placements, found.refused, said, int(is_met))


def _children(node: Branch, scope: _Scope) -> _Found:
    """The groups of a composite group in one domain; those that do not fit go first in the next try."""
    order, moved = list(node.children), set[str]()
    best, failed = _in_order(node, order, scope)
    while not (best.is_met or best.is_over) and len(moved) < MOST_ORDERS:
        first = next((each for each in failed if each.key not in moved), None)
        if first is None:
            break
        moved.add(first.key)
        order = [first, *(each for each in order if each.key != first.key)]
        found, failed = _in_order(node, order, scope)
        best = max(best, found, key=lambda each: each.rank)
    return best


def _in_order(
    node: Branch, order: Sequence[Leaf | Branch], scope: _Scope
) -> tuple[_Found, list[Leaf | Branch]]:
    """The groups one after the other, each seeing those before it; also those that did not fit.

    When they preempt, those that fit without victims go first.
    """
    fork, met = scope.cluster.fork(), 0
    inside = scope.on(fork)
    placements, refused, said = list[Placement](), list[Decision](), list[str]()
    failed = list(order)
    for is_preempting in (False, True) if scope.is_preempting else (False,):
        left, failed, refused, said = failed, [], [], []
        for each in left:
            if scope.only_needed and met >= node.least:
                break
            found = _placed(each, replace(inside, is_preempting=is_preempting))
            refused += found.refused
            if found.is_over:
                return replace(found, is_met=False, placements=()), []
            if not found.is_met:
                failed.append(each)
                said.append(found.said)
                continue
            met += 1
            placements += found.placements
            _repeat(found.placements, fork)
    if met >= node.least:
        return _Found(True, tuple(placements), tuple(refused), "", met), failed  # noqa: FBT003 - a result
    lacking = f"{met} of {len(order)} groups fit, {node.least} must; {'; '.join(dict.fromkeys(said))}"
    return _Found(is_met=False, refused=tuple(refused), said=lacking, groups=met), failed


def _repeat(placements: Sequence[Placement], fork: Cluster) -> None:
    """Place members on a fork as they were placed on another one."""
    for each in placements:
        displace(each.victims, fork)
        book_again(each.state, each.decision.pod, fork)
        fork.place(each.decision.pod, each.node)


def _after(node: Branch, placements: Sequence[Placement]) -> Branch:
    """The tree with these members among those that have a node."""
    given = {each.decision.pod.uid for each in placements}

    def renewed(each: Leaf | Branch) -> Leaf | Branch:
        if isinstance(each, Branch):
            return _after(each, placements)
        waiting = tuple(member for member in each.waiting if member[0].uid not in given)
        placed = tuple(pod.uid for pod, _ in each.waiting if pod.uid in given)
        return replace(each, waiting=waiting, placed=(*each.placed, *placed))

    return replace(node, children=tuple(map(renewed, node.children)))


def _size(member: tuple[PodInfo, ProfileScheduler]) -> tuple[int, int, int]:
    """The most important first, then the smallest."""
    pod = member[0]
    return -pod.priority, pod.requests.get("cpu", 0), pod.requests.get("memory", 0)
