"""Topology spread constraints as plain values, and the populations of pods that they count, by domain.

The constraints of one namespace whose selectors share pods form a population. A move that repairs one of them
may violate another, so they are judged together. The excess of a constraint is::

    excess = sum over domains of max(size - smallest size - maxSkew, 0)

Units: counts of pods. Ended and terminating pods do not count.
Source: Kubernetes v1.36, ``pod.spec.topologySpreadConstraints``; KEP-3094 (node inclusion policies) and
KEP-3243 (matchLabelKeys).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from plimsoll.framework.descheduling.complaints import Gravity
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.pod_indexes import NeighbourRule
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selectors import NodeMatcher, Selector, SelectorError
from plimsoll.model.taints import untolerated
from plimsoll.toolkit.scheduling.topology_spread import selector_of

Covers = Callable[[PodInfo], bool]
"""Whether pods like this one count."""


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A spread constraint reduced to the fields that distinguish it; hashable.

    Attributes:
        nodes: Matches the nodes that count; None when the constraint ignores node affinity.
        tolerations: Only nodes whose taints these tolerate count; None when the constraint ignores taints.
        is_hard: Whether the scheduler refuses nodes by it.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    nodes: NodeMatcher | None
    tolerations: frozenset[Toleration] | None
    is_hard: bool = field(default=True, compare=False)

    @property
    def gravity(self) -> Gravity:
        """Of a complaint about it."""
        return Gravity.RULE if self.is_hard else Gravity.PREFERENCE

    def admits(self, node: Node) -> bool:
        """Whether the node's domain counts for the constraint's pods."""
        if self.nodes is not None and not self.nodes.matches(node.labels, node.name):
            return False
        return (
            self.tolerations is None or untolerated(node.spec.taints, self.tolerations, numeric=True) is None
        )


def spread_constraints_of(pod: PodInfo, wanted: tuple[str, ...]) -> tuple[SpreadConstraint, ...]:
    """A pod's constraints of the wanted kinds, such as ``DoNotSchedule``; cached by template."""
    return pod.template.memo(("spread constraints", wanted), lambda: tuple(_compiled(pod, wanted)))


def _compiled(pod: PodInfo, wanted: tuple[str, ...]) -> Iterator[SpreadConstraint]:
    for each in pod.pod.spec.topology_spread_constraints:
        if each.when_unsatisfiable in wanted:
            try:
                selector = selector_of(each, pod.labels)
            except SelectorError:
                continue
            tolerations = frozenset(pod.pod.spec.tolerations)
            yield SpreadConstraint(
                max_skew=each.max_skew,
                topology_key=each.topology_key,
                selector=selector,
                nodes=pod.template.required_nodes if each.node_affinity_policy == "Honor" else None,
                tolerations=tolerations if each.node_taints_policy == "Honor" else None,
                is_hard=each.when_unsatisfiable == "DoNotSchedule",
            )


@dataclass(slots=True)
class DomainSizes:
    """A constraint with the number of matching pods in each domain.

    Attributes:
        domain_of: The domain of each node that counts, keyed by name.
        templates: Templates of the pods that count.
        sizes: Number of pods by domain, including domains without pods.
    """

    constraint: SpreadConstraint
    domain_of: Mapping[str, str]
    templates: frozenset[PodTemplate]
    sizes: Counter[str] = field(default_factory=Counter)

    @property
    def line(self) -> int:
        """The largest size of a domain without excess."""
        return min(self.sizes.values(), default=0) + self.constraint.max_skew

    @property
    def excess(self) -> int:
        """Number of pods above the line, over all domains."""
        line = self.line
        return sum(size - line for size in self.sizes.values() if size > line)

    @property
    def sentence(self) -> str:
        """A sentence about the violation while there is an excess."""
        rule = self.constraint
        pods = f"pods that match {_written(rule.selector)}"
        return f"{pods} are spread unevenly over {rule.topology_key} (maxSkew {rule.max_skew})"

    def size_at(self, node: str) -> int | None:
        """Pods in the node's domain; None when the node does not count."""
        domain = self.domain_of.get(node)
        return None if domain is None else self.sizes[domain]

    def excess_after(self, source: str, target: str) -> int:
        """The excess after a move of one pod between two nodes."""
        left, entered = self.domain_of.get(source), self.domain_of.get(target)
        if left == entered:
            return self.excess
        if left is not None:
            self.sizes[left] -= 1
        if entered is not None:
            self.sizes[entered] += 1
        try:
            return self.excess
        finally:
            if left is not None:
                self.sizes[left] += 1
            if entered is not None:
                self.sizes[entered] -= 1


@dataclass(frozen=True, slots=True)
class Population:
    """Constraints of one namespace that share pods, and all pods that any of them counts, by uid."""

    namespace: str
    constraints: tuple[DomainSizes, ...]
    pods: Mapping[str, PodInfo]

    @property
    def excess(self) -> int:
        """The total excess of all constraints."""
        return sum(each.excess for each in self.constraints)

    def counting(self, template: PodTemplate) -> list[DomainSizes]:
        """The constraints that count pods of the template."""
        return [each for each in self.constraints if template in each.templates]


def sizes_of(
    namespace: str,
    wanted: tuple[str, ...],
    covers: Covers,
    context: StrategyContext,
    only: PodInfo | None = None,
) -> Iterator[DomainSizes]:
    """The constraints of the wanted kinds (``DoNotSchedule``) of a namespace's pods, with domain sizes.

    With ``only``, those that count this pod.
    """
    found = [
        (min(pod.key for pod in pods.values()), rules)
        for template, pods in context.templates_with(namespace, NeighbourRule.SPREAD)
        if (rules := _about(spread_constraints_of(pod := next(iter(pods.values())), wanted), only))
        and covers(pod)
    ]
    found.sort(key=lambda each: each[0])
    for constraint in dict.fromkeys(rule for _, rules in found for rule in rules):
        domain_of, domains = _domains(constraint, context)
        matching = [
            (template, pods)
            for template, pods in context.templates_matching(namespace, constraint.selector)
            if covers(next(iter(pods.values())))
        ]
        sizes = Counter(domains)
        for _, pods in matching:
            for pod in pods.values():
                domain = domain_of.get(context.node_of(pod))
                if domain is not None and not pod.is_terminating and not pod.pod.is_terminal:
                    sizes[domain] += 1
        yield DomainSizes(constraint, domain_of, frozenset(template for template, _ in matching), sizes)


def _about(rules: Iterable[SpreadConstraint], only: PodInfo | None) -> list[SpreadConstraint]:
    """The constraints that count the pod."""
    return [each for each in rules if only is None or each.selector.matches(only.template.labels)]


def populations(
    namespace: str, wanted: tuple[str, ...], covers: Covers, context: StrategyContext
) -> list[Population]:
    """The populations of a namespace in which some constraint is violated."""
    found = list(sizes_of(namespace, wanted, covers, context))
    made = []
    for together in _connected(found):
        if any(each.excess for each in together):
            templates = frozenset[PodTemplate]().union(*(each.templates for each in together))
            pods = {
                uid: pod
                for template in templates
                for uid, pod in context.pods_of(namespace, template).items()
            }
            made.append(Population(namespace, tuple(together), pods))
    return made


def _connected(found: Iterable[DomainSizes]) -> list[list[DomainSizes]]:
    """Constraints grouped by shared templates, directly or through others."""
    groups: list[tuple[set[PodTemplate], list[DomainSizes]]] = []
    for each in found:
        templates, members = set(each.templates), [each]
        apart = []
        for known, others in groups:
            if known.isdisjoint(templates):
                apart.append((known, others))
            else:
                templates |= known
                members = [*others, *members]
        groups = [*apart, (templates, members)]
    return [members for _, members in groups]


def _written(selector: Selector) -> str:
    """The selector in kubectl's syntax, or close to it."""
    parts = []
    for each in selector.requirements:
        values = f" ({', '.join(sorted(each.values))})" if each.values else ""
        parts.append(f"{each.key} {each.operator}{values}")
    return ", ".join(parts) or "anything"


def _domains(
    constraint: SpreadConstraint, context: StrategyContext
) -> tuple[Mapping[str, str], Mapping[str, int]]:
    """The domain of each node that counts, and the sorted domains, each with 0.

    Cached for the run, in which nodes do not change.
    """
    key = ("spread domains", constraint.topology_key, constraint.nodes, constraint.tolerations)
    if key not in context.kept:
        label = constraint.topology_key
        domain_of = {
            node.name: node.labels[label]
            for node in map(context.node, context.nodes)
            if label in node.labels and constraint.admits(node)
        }
        context.kept[key] = domain_of, dict.fromkeys(sorted(set(domain_of.values())), 0)
    domains: tuple[Mapping[str, str], Mapping[str, int]] = context.kept[key]
    return domains
