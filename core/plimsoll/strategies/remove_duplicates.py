"""RemoveDuplicates: evict surplus pods of one owner from a node if other nodes could run some.

Formula, per owner and set of images, over the evictable pods::

    upper = ceil(pods of the kind / nodes they could run on)

On each node with a duplicate, all pods beyond ``upper`` are candidates; the alphabetically first ones stay.

Units: counts of pods and nodes.
Edges: owners are distinguished by kind and name. A pod with two owners counts for both and may be proposed
twice. With fewer than two possible nodes nothing happens. Cordoned nodes are possible, and resources are not
considered.
Source: descheduler v0.36, ``removeduplicates``.
Differs: under the Proven planner an unreadable node selector term matches no node; upstream treats the error
as a match. A pod goes to a node with fewer pods than its share, or stays. Among equal pods of a node, those
that cost most to move stay; upstream keeps the first that it sees.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar

from msgspec import Struct, field
from pydantic import Field, StrictStr

from plimsoll.framework import Node, PluginArgs, PodInfo
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Gravity, Vicinity
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations, Verdict
from plimsoll.framework.selectors import NodeMatcher, untolerated
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.descheduling.pod_scope import NamespacesArg

Kind = tuple[str, str, str, str]
"""The key of duplicates: namespace, owner kind, owner name, images."""

Owner = tuple[str, str, str]
"""Namespace, kind, name."""

Identity = tuple[tuple[str, ...], list[Kind]]
"""What equal pods have in common, and their keys by owner."""


class RemoveDuplicatesArgs(PluginArgs):
    """Arguments, as in descheduler v1alpha2."""

    namespaces: NamespacesArg | None = Field(
        default=None, description="Namespaces whose pods are looked at; left out, all."
    )
    exclude_owner_kinds: tuple[StrictStr, ...] = Field(
        default=(), description="Pods with an owner of one of these kinds are left alone."
    )


class _Crowd(Struct):
    """The pods of one key.

    Attributes:
        occurrences: The counted pods.
        duplicates: Those that are not the first of their node, by node, in order.
    """

    occurrences: int = 0
    duplicates: dict[str, list[PodInfo]] = field(default_factory=dict)


class _Crowds:
    """Finds duplicates by owner; evictors are called only for owners with two equal pods on some node."""

    def __init__(self, counts: Callable[[PodInfo, StrategyContext], bool], context: StrategyContext) -> None:
        self._counts = counts
        self._context = context
        self._known: dict[Owner, list[tuple[Kind, _Crowd]]] = {}

    def owners(self) -> list[Owner]:
        """All owners of placed pods, sorted."""
        return sorted(
            (namespace, kind, name)
            for namespace, groups in self._context.owners().items()
            for kind, name in groups
        )

    def of(self, owner: Owner) -> list[tuple[Kind, _Crowd]]:
        """The keys of an owner's pods that have duplicates, sorted."""
        if owner not in self._known:
            self.look(owner)
        return self._known.pop(owner)

    def look(self, owner: Owner) -> None:
        """Examine an owner, and all owners that share pods with it: a verdict concerns all of them."""
        ahead = [owner]
        while ahead:
            each = ahead.pop()
            if each in self._known:
                continue
            members = self._members(each)
            self._known[each] = self._crowds(each, members)
            ahead += {kind[:3] for _, _, (_, kinds) in members if len(kinds) > 1 for kind in kinds}

    def _members(self, owner: Owner) -> list[tuple[str, PodInfo, Identity]]:
        """The pods of an owner on nodes in scope, with their nodes and identities."""
        placed = self._context.with_nodes(self._context.owned_by(*owner).values())
        return [(node, pod, _identity(pod)) for node, pod in placed]

    def _crowds(
        self, owner: Owner, members: list[tuple[str, PodInfo, Identity]]
    ) -> list[tuple[Kind, _Crowd]]:
        identities = {(node, *identity) for node, _, (identity, _) in members}
        if len(identities) == len(members):
            return []
        crowds: dict[Kind, _Crowd] = {}
        by_node: dict[str, list[tuple[PodInfo, Identity]]] = {}
        for node, pod, described in members:
            if not pod.pod.is_terminal and self._counts(pod, self._context):
                by_node.setdefault(node, []).append((pod, described))
        for node in sorted(by_node):
            seen: set[tuple[str, ...]] = set()
            for pod, (identity, kinds) in self._in_order(by_node[node]):
                for kind in kinds:
                    if kind[:3] == owner:
                        crowd = crowds.setdefault(kind, _Crowd())
                        crowd.occurrences += 1
                        if identity in seen:
                            crowd.duplicates.setdefault(node, []).append(pod)
                seen.add(identity)
        return sorted((kind, crowd) for kind, crowd in crowds.items() if crowd.duplicates)

    def _in_order(self, pods: list[tuple[PodInfo, Identity]]) -> list[tuple[PodInfo, Identity]]:
        """The node's pods; among equal ones the first stay, so those that cost more to move are first."""
        if len(pods) > 1:
            pods.sort(key=lambda each: each[0].key)
            if not self._context.is_exact:
                pods.sort(key=lambda each: eviction_cost(each[0]), reverse=True)
        return pods


class RemoveDuplicates(Strategy):
    """Spread the pods of an owner over nodes."""

    name: ClassVar = "RemoveDuplicates"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = RemoveDuplicatesArgs

    spreads_evenly: ClassVar = True
    """No node takes more pods of an owner than its even share."""

    def __init__(self, args: RemoveDuplicatesArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Propose pods by owner and node.

        In exact mode, the cluster before the first verdict counts. Otherwise each owner is examined when it
        is reached, together with the owners that share pods with it.
        """
        targets, crowds = self._targets(context), _Crowds(self._counts, context)
        by_owner = crowds.owners()
        if context.is_exact:
            for owner in by_owner:
                crowds.look(owner)
        for owner in by_owner:
            for kind, crowd in crowds.of(owner):
                count = len(targets.of((pod for pods in crowd.duplicates.values() for pod in pods), context))
                if count >= 2:
                    upper = -(-crowd.occurrences // count)
                    yield from self._beyond(kind, crowd, upper, count, context)

    def _beyond(
        self, kind: Kind, crowd: _Crowd, upper: int, count: int, context: StrategyContext
    ) -> Candidates:
        """The pods with one key beyond its share of each node."""
        destinations: Destinations | None = None
        for name, pods in crowd.duplicates.items():
            reason = (
                f"{len(pods) + 1} pods of {kind[1]} {kind[2]} are on its node, {count} nodes could share"
                f" all {crowd.occurrences} at {upper} each"
            )
            for pod in pods[upper - 1 :]:
                if destinations is None:
                    destinations = self._destinations(kind, upper, context)
                verdict = yield Candidate(pod, name, reason, destinations=destinations)
                if verdict is Verdict.ACCEPTED:
                    destinations = None  # the counts have changed
                elif verdict is Verdict.NODE_CLOSED:
                    break

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods beyond an owner's even share of their node, counted by owner.

        Evictors are asked about pods that share their node with another one of the owner. Others only count
        for the share, and are asked about if it depends on them.
        """
        by_kind: dict[Kind, list[tuple[str, PodInfo]]] = {}
        wanted = None if near is None else {kind for pod in near.pods for kind in _identity(pod)[1]}
        for node, pod in context.with_nodes(self._concerned(context, wanted)):
            kinds = _identity(pod)[1]
            if (wanted is None or not wanted.isdisjoint(kinds)) and self._is_meant(pod):
                for kind in kinds:
                    by_kind.setdefault(kind, []).append((node, pod))
        found = {}
        targets = self._targets(context)
        for kind, members in by_kind.items():
            placed = Counter(node for node, _ in members)
            if len(placed) == len(members):
                continue
            sharing = [each for each in members if placed[each[0]] > 1 and context.may_go(each[1])]
            on = Counter(node for node, _ in sharing)
            crowded = [pod for node, pod in sharing if on[node] > 1]
            count = len(targets.of(crowded, context))
            if count < 2:
                continue
            alone = [pod for node, pod in members if placed[node] == 1]
            upper = -(-len(sharing) // count)
            if upper != -(-(len(sharing) + len(alone)) // count):
                upper = -(-(len(sharing) + sum(map(context.may_go, alone))) // count)
            beyond = sum(max(each - upper, 0) for each in on.values())
            if beyond:
                owner = f"{kind[1]} {kind[0]}/{kind[2]}"
                sentence = f"a node has more than its share of the pods of {owner}"
                found[Complaint(sentence, Gravity.PREFERENCE)] = float(beyond)
        return found

    def _targets(self, context: StrategyContext) -> "_Targets":
        """The targets, cached for the run, in which nodes do not change."""
        found: _Targets = context.kept.setdefault((self.name, "targets"), _Targets())
        return found

    def _concerned(self, context: StrategyContext, wanted: set[Kind] | None) -> Iterable[PodInfo]:
        """All placed pods, or those of the owners of these keys."""
        if wanted is None:
            return context.cluster.pods.values()
        found: dict[str, PodInfo] = {}
        for owner in {kind[:3] for kind in wanted}:
            found.update(context.owned_by(*owner))
        return found.values()

    def _destinations(self, kind: Kind, upper: int, context: StrategyContext) -> Destinations:
        """Nodes with fewer pods of this key than an even share; counted if the proof asks."""
        on: Counter[str] = Counter()

        def admits(name: str) -> bool:
            if not on:
                pods = (pod for pod in context.owned_by(*kind[:3]).values() if kind in _identity(pod)[1])
                on.update(map(context.node_of, pods))
            return on[name] < upper

        return Destinations(admits)

    def _counts(self, pod: PodInfo, context: StrategyContext) -> bool:
        return self._is_meant(pod) and context.may_go(pod)

    def _is_meant(self, pod: PodInfo) -> bool:
        """Whether the arguments include the pod, and it has an owner."""
        metadata, namespaces = pod.pod.metadata, self.args.namespaces
        if not metadata.owner_references or metadata.has_owner_of(*self.args.exclude_owner_kinds):
            return False
        return namespaces is None or namespaces.covers(pod.namespace)


class _Targets:
    """The nodes that could run pods, determined once per set of node requirements.

    The context refers to it, but it does not refer to the context, so that both are freed when the run ends.
    """

    def __init__(self) -> None:
        self._known: dict[object, frozenset[str]] = {}

    def of(self, pods: Iterable[PodInfo], context: StrategyContext) -> frozenset[str]:
        """Nodes that any of the pods could run on; pods that are bound to one node are ignored."""
        union: frozenset[str] = frozenset()
        for pod in pods:
            tolerations = frozenset(pod.pod.spec.tolerations)
            wishes = (tolerations, pod.template.required_nodes)
            nodes = self._known.get(wishes)
            if nodes is None:
                nodes = self._known[wishes] = frozenset(
                    node.name
                    for node in map(context.node, context.nodes)
                    if _matches(pod.template.required_nodes, node, context)
                    and (
                        not node.spec.taints
                        or untolerated(node.spec.taints, tolerations, numeric=context.is_exact) is None
                    )
                )
            if len(nodes) > 1 and union is not nodes:
                union = union | nodes if union else nodes
        return union


def _matches(wishes: NodeMatcher, node: Node, context: StrategyContext) -> bool:
    """Whether the node matches; upstream treats an unreadable term as a match."""
    if wishes.matches(node.labels, node.name):
        return True
    return (
        context.is_exact
        and all(node.labels.get(key) == value for key, value in wishes.equal)
        and any(term.error for term in wishes.terms or ())
    )


def _identity(pod: PodInfo) -> Identity:
    references = pod.pod.metadata.owner_references
    if len(references) == 1:  # almost all
        owners: tuple[tuple[str, str], ...] = ((references[0].kind, references[0].name),)
    else:
        owners = tuple([(owner.kind, owner.name) for owner in references])
    return pod.template.memo(("duplicates", owners), lambda: _described(pod, owners))


def _described(pod: PodInfo, owners: tuple[tuple[str, str], ...]) -> Identity:
    images = sorted(container.image for container in pod.pod.spec.containers)
    identity = sorted(f"{pod.namespace}/{kind}/{name}/{image}" for kind, name in owners for image in images)
    return tuple(identity), [(pod.namespace, kind, name, "#".join(images)) for kind, name in owners]
