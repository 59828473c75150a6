"""Topology spread constraints of a pod: compiled, with the defaults of its workload."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from plimsoll.framework import ABSENT, BoolArray, ClusterObjects, Plugin, PodInfo, PodTemplate, Snapshot
from plimsoll.framework.columns import DomainSums, PodClass, PodCounts
from plimsoll.framework.plugin_answers import judged, of_kind
from plimsoll.framework.selectors import (
    NodeMatcher,
    ReplicaSet,
    Selector,
    SelectorError,
    StatefulSet,
    Toleration,
    TopologySpreadConstraint,
    compile_selector,
    selector_of_labels,
)
from plimsoll.toolkit.node_matching import matching_nodes, tolerated_nodes

HOSTNAME = "kubernetes.io/hostname"


class Included:
    """The nodes that form domains: they have all the keys, and pass the inclusion policies."""

    __slots__ = ("_content", "_hash")

    def __init__(
        self,
        keys: tuple[str, ...],
        matcher: NodeMatcher | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> None:
        self._content = (keys, matcher, tolerations)
        self._hash = hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Included) and self._content == other._content)

    def among(self, snapshot: Snapshot) -> BoolArray:
        """Which nodes belong to the set, shape (N,)."""
        keys, matcher, tolerations = self._content
        included: BoolArray = np.ones(len(snapshot), dtype=np.bool_)
        for key in keys:
            included &= snapshot.label_ids(key) != ABSENT
            if not included.any():
                return included  # no node has the key; hundreds may follow
        if matcher is not None:
            included &= matching_nodes(matcher, snapshot)
        if tolerations is not None:
            included &= tolerated_nodes(tolerations, snapshot)
        return included


@dataclass(frozen=True, eq=False)
class Constraint:
    """One constraint of one template, compiled."""

    topology_key: str
    max_skew: int
    min_domains: int
    namespace: str
    selector: Selector
    pods: PodClass
    selects_itself: bool
    nodes: Included | None

    def means(self, pod: PodInfo) -> bool:
        """Whether the pod matches by namespace and labels, whether or not it is terminating."""
        return pod.namespace == self.namespace and self.selector.matches(pod.labels)

    def counts(self, snapshot: Snapshot) -> DomainSums:
        """Numbers of matching pods by domain."""
        return snapshot.index(PodCounts).of(self.pods).sums(self.topology_key, snapshot, self.nodes)

    def without_key(self, snapshot: Snapshot) -> int:
        """Number of matching pods on nodes without the key: the defaults count them to a domain named ""."""
        whole = snapshot.whole
        lacking = whole.label_ids(self.topology_key) == ABSENT
        if self.nodes is not None:
            lacking &= self.nodes.among(whole)
        counted: int = whole.cut(whole.index(PodCounts).of(self.pods).column)[lacking].sum()
        return int(counted)


@dataclass(frozen=True, eq=False)
class Constraints:
    """The constraints of one template: the hard ones reject nodes, the soft ones score them.

    Unless ``all_keys_required``, a node without one of the soft keys is scored by the other constraints.
    """

    hard: tuple[Constraint, ...] = ()
    soft: tuple[Constraint, ...] = ()
    all_keys_required: bool = True
    problem: str = ""

    @cached_property
    def soft_keys(self) -> frozenset[str]:
        """The keys of the soft constraints."""
        return frozenset(each.topology_key for each in self.soft)


NONE = Constraints()


@runtime_checkable
class SpreadsPods(Plugin, Protocol):
    """A plugin that spreads pods by constraints: their own, or ones that it gives them."""

    @property
    def gives_constraints(self) -> bool:
        """Whether pods without constraints of their own may get some from the profile."""

    def constraints(self, template: PodTemplate, objects: ClusterObjects) -> Constraints:
        """The constraints of a template's pods, without those that are built in."""


def constraints_of(plugin: SpreadsPods, template: PodTemplate, objects: ClusterObjects) -> Constraints:
    """What the plugin answers.

    Raises:
        PluginError: It raised, or returned something else.
    """
    answer = judged(plugin.name, "filter", plugin.constraints, template, objects)
    return of_kind(answer, Constraints, plugin.name, "filter")


def own_constraints(template: PodTemplate, own: Collection[TopologySpreadConstraint]) -> Constraints:
    """The constraints in a template's pod spec, or the error of one that cannot be parsed."""
    try:
        pairs = [(each, selector_of(each, template.labels, len(own))) for each in own]
    except SelectorError as exc:
        return Constraints(problem=str(exc))
    return compiled(template, pairs, all_keys_required=True)


def selector_of(constraint: TopologySpreadConstraint, labels: Mapping[str, str], among: int = 1) -> Selector:
    """The pods that a constraint, ``among`` as many of its pod, counts for a pod with these labels.

    Raises:
        SelectorError: The selector is invalid.
    """
    return compile_selector(constraint.label_selector, among=among).and_equal(
        {key: labels[key] for key in constraint.match_label_keys if key in labels}
    )


def compiled(
    template: PodTemplate,
    pairs: list[tuple[TopologySpreadConstraint, Selector]],
    *,
    all_keys_required: bool,
) -> Constraints:
    """The compiled constraints, divided into hard and soft ones."""
    groups: dict[bool, tuple[Constraint, ...]] = {}
    for hard in (True, False):
        chosen = [pair for pair in pairs if (pair[0].when_unsatisfiable == "DoNotSchedule") is hard]
        keys = tuple(sorted({constraint.topology_key for constraint, _ in chosen}))
        included = _Inclusion(template, keys if hard or all_keys_required else ())
        groups[hard] = tuple(
            _compile(constraint, selector, template, included) for constraint, selector in chosen
        )
    return Constraints(groups[True], groups[False], all_keys_required)


class _Inclusion:
    """The sets of nodes of one template's constraints; one of each kind, as all have the same keys."""

    def __init__(self, template: PodTemplate, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._matcher = None if template.required_nodes.is_empty else template.required_nodes
        self._tolerations = template.sample.spec.tolerations
        self._made: dict[tuple[bool, bool], Included] = {}

    def of(self, constraint: TopologySpreadConstraint) -> Included | None:
        """The nodes that form the constraint's domains; None: all that have its key."""
        policies = constraint.node_affinity_policy != "Ignore", constraint.node_taints_policy == "Honor"
        matcher = self._matcher if policies[0] else None
        tolerations = self._tolerations if policies[1] else None
        if matcher is None and tolerations is None and self._keys in ((), (constraint.topology_key,)):
            return None
        if policies not in self._made:
            self._made[policies] = Included(self._keys, matcher, tolerations)
        return self._made[policies]


def _compile(
    constraint: TopologySpreadConstraint, selector: Selector, template: PodTemplate, included: _Inclusion
) -> Constraint:
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains or 1,
        namespace=template.namespace,
        selector=selector,
        pods=PodClass(
            ((frozenset((template.namespace,)), selector),), living=True, passing=template.is_heavy
        ),
        selects_itself=selector.matches(template.labels),
        nodes=included.of(constraint),
    )


def default_selector(template: PodTemplate, objects: ClusterObjects) -> Selector:
    """The combined selectors of the pod's Services and controller; empty if none selects it."""
    services = objects.derived("selectors of Services by namespace", lambda: _service_selectors(objects))
    pairs: dict[str, str] = {}
    for wanted in services.get(template.namespace, ()):
        if all(template.labels.get(key) == value for key, value in wanted.items()):
            pairs.update(wanted)
    owner = template.owner
    if owner is None:
        return selector_of_labels(pairs)
    key = f"{template.namespace}/{owner.name}"
    if owner.kind == "ReplicationController" and key in objects.replication_controllers:
        pairs.update(objects.replication_controllers[key].spec.selector)
    selector = selector_of_labels(pairs)
    found: ReplicaSet | StatefulSet | None = None
    if owner.kind == "ReplicaSet":
        found = objects.replica_sets.get(key)
    elif owner.kind == "StatefulSet":
        found = objects.stateful_sets.get(key)
    if found is None:
        return selector
    try:
        more = compile_selector(found.spec.selector)
    except SelectorError:
        return selector
    return Selector((*selector.requirements, *more.requirements))


def _service_selectors(objects: ClusterObjects) -> dict[str, list[dict[str, str]]]:
    selectors: dict[str, list[dict[str, str]]] = {}
    for service in objects.services.values():
        if service.spec.selector:
            selectors.setdefault(service.metadata.namespace, []).append(service.spec.selector)
    return selectors
