"""RemoveDuplicates: several pods of one owner on one node, where other nodes could take some.

Formula, per owner and set of images, over the evictable pods::

    upper = ceil(pods of the kind / nodes they could run on)

From each node with a duplicate all pods past ``upper`` are candidates; the alphabetically first ones stay.

Units: counts of pods and nodes.
Edges: owners are distinguished by kind and name; a pod with two owners counts for both and may be proposed
twice; fewer than two possible nodes and nothing happens; cordoned nodes are possible, resources are not
looked at.
Source: descheduler v0.36, ``removeduplicates``.
Differs: under the Proven planner a node selector term that cannot be read matches no node; upstream
takes the error for a match; a pod goes to a node with fewer than its share, or stays. Of equal
pods of a node those stay that cost most to move; upstream keeps the
first that it sees.
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field, StrictStr

from plimsoll.framework import Node, PluginArgs, PodInfo
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import Complaints, Vicinity
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations, until_closed
from plimsoll.framework.selectors import NodeMatcher, untolerated
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.descheduling.pod_scope import NamespacesArg

Kind = tuple[str, str, str, str]
"""What makes pods duplicates: namespace, owner kind, owner name, images."""


class RemoveDuplicatesArgs(PluginArgs):
    """Arguments, as in descheduler v1alpha2."""

    namespaces: NamespacesArg | None = Field(
        default=None, description="Namespaces whose pods are looked at; left out, all."
    )
    exclude_owner_kinds: tuple[StrictStr, ...] = Field(
        default=(), description="Pods with an owner of one of these kinds are left alone."
    )


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
        """Owner by owner, node by node."""
        suspects = self._suspects(context)
        occurrences: Counter[Kind] = Counter()
        duplicates: dict[Kind, dict[str, list[PodInfo]]] = {}
        for name in context.nodes:
            seen: set[tuple[str, ...]] = set()
            for pod in self._in_order(name, suspects, context):
                identity, kinds = _identity(pod)
                if suspects.isdisjoint(kinds) or not self._counts(pod, context):
                    continue
                occurrences.update(kinds)
                if identity in seen:
                    for kind in kinds:
                        duplicates.setdefault(kind, {}).setdefault(name, []).append(pod)
                seen.add(identity)
        targets = _Targets(context)
        for kind, by_node in sorted(duplicates.items()):
            count = len(targets.of(pod for pods in by_node.values() for pod in pods))
            if count < 2:
                continue
            upper = -(-occurrences[kind] // count)
            for name, pods in by_node.items():
                reason = (
                    f"{len(pods) + 1} pods of {kind[1]} {kind[2]} are on its node, {count} nodes could share"
                    f" all {occurrences[kind]} at {upper} each"
                )
                yield from until_closed(
                    Candidate(pod, name, reason, destinations=self._destinations(kind, upper, context))
                    for pod in pods[upper - 1 :]
                )

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods of an owner beyond its even share on their node, counted by owner."""
        by_kind: dict[Kind, list[PodInfo]] = {}
        for pod in self._concerned(context, near):
            if context.node_of(pod) in context.considered and self._counts(pod, context):
                for kind in _identity(pod)[1]:
                    by_kind.setdefault(kind, []).append(pod)
        found = {}
        targets = context.kept.setdefault((self.name, "targets"), _Targets(context))
        for kind, members in by_kind.items():
            on = Counter(context.node_of(pod) for pod in members)
            if len(on) == len(members):
                continue
            crowded = [pod for pod in members if on[context.node_of(pod)] > 1]
            count = len(targets.of(crowded))
            if count < 2:
                continue
            upper = -(-len(members) // count)
            beyond = sum(max(each - upper, 0) for each in on.values())
            if beyond:
                owner = f"{kind[1]} {kind[0]}/{kind[2]}"
                found[f"a node has more than its share of the pods of {owner}"] = float(beyond)
        return found

    def _concerned(self, context: StrategyContext, near: Vicinity | None) -> Iterable[PodInfo]:
        """All placed pods, or those of the kinds that move."""
        if near is None:
            return list(context.cluster.pods.values())
        kinds = {kind for pod in near.pods for kind in _identity(pod)[1]}
        return {
            pod.uid: pod
            for namespace, owner, name, _ in kinds
            for pod in context.owned_by(namespace, owner, name).values()
            if not kinds.isdisjoint(_identity(pod)[1])
        }.values()

    def _destinations(self, kind: Kind, upper: int, context: StrategyContext) -> Destinations:
        """Nodes with fewer pods of the kind than an even share."""
        on = Counter(
            context.node_of(pod) for pod in context.owned_by(*kind[:3]).values() if kind in _identity(pod)[1]
        )
        return Destinations(lambda name: on[name] < upper)

    def _in_order(self, name: str, suspects: set[Kind], context: StrategyContext) -> Iterable[PodInfo]:
        """The node's pods; of equal ones the first stay, so those that cost more to move come first."""
        if context.is_exact:
            return context.pods(name)
        pods = (pod for pod in context.pods(name) if not suspects.isdisjoint(_identity(pod)[1]))
        return sorted(pods, key=eviction_cost, reverse=True)

    def _suspects(self, context: StrategyContext) -> set[Kind]:
        """Kinds with two pods on some node, evictable or not: evictors need not be asked about others."""
        found: set[Kind] = set()
        for name in context.nodes:
            seen: set[tuple[str, ...]] = set()
            for pod in context.placed(name):
                identity, kinds = _identity(pod)
                if identity in seen:
                    found.update(kinds)
                seen.add(identity)
        return found

    def _counts(self, pod: PodInfo, context: StrategyContext) -> bool:
        owners = pod.pod.metadata.owner_references
        if not owners or any(owner.kind in self.args.exclude_owner_kinds for owner in owners):
            return False
        if self.args.namespaces is not None and not self.args.namespaces.covers(pod.namespace):
            return False
        return context.may_go(pod)


class _Targets:
    """Which nodes could run which pods, looked up once for each set of wishes."""

    def __init__(self, context: StrategyContext) -> None:
        self._context = context
        self._known: dict[object, frozenset[str]] = {}

    def of(self, pods: Iterable[PodInfo]) -> frozenset[str]:
        """Nodes that any of the pods could run on; a pod that is bound to one node has no say."""
        union: frozenset[str] = frozenset()
        for pod in pods:
            tolerations = frozenset(pod.pod.spec.tolerations)
            wishes = (tolerations, pod.template.required_nodes)
            nodes = self._known.get(wishes)
            if nodes is None:
                nodes = self._known[wishes] = frozenset(
                    node.name
                    for node in map(self._context.node, self._context.nodes)
                    if self._matches(pod.template.required_nodes, node)
                    and untolerated(node.spec.taints, tolerations, numeric=True) is None
                )
            if len(nodes) > 1:
                union |= nodes
        return union

    def _matches(self, wishes: NodeMatcher, node: Node) -> bool:
        """Whether the node will do; upstream takes a term that cannot be read for a match."""
        if wishes.matches(node.labels, node.name):
            return True
        return (
            self._context.is_exact
            and all(node.labels.get(key) == value for key, value in wishes.equal)
            and any(term.error for term in wishes.terms or ())
        )


def _identity(pod: PodInfo) -> tuple[tuple[str, ...], list[Kind]]:
    owners = tuple((owner.kind, owner.name) for owner in pod.pod.metadata.owner_references)
    return pod.template.memo(("duplicates", owners), lambda: _described(pod, owners))


def _described(pod: PodInfo, owners: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], list[Kind]]:
    images = sorted(container.image for container in pod.pod.spec.containers)
    identity = sorted(f"{pod.namespace}/{kind}/{name}/{image}" for kind, name in owners for image in images)
    return tuple(identity), [(pod.namespace, kind, name, "#".join(images)) for kind, name in owners]
