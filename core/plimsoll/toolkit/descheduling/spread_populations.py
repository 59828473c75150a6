"""Topology spread constraints, and the populations of pods that they count, by domain.

Constraints and counts are those of the plugin PodTopologySpread of the profile that places the pods, with its
``defaultConstraints``. The constraints of one namespace whose selectors share pods form a population. A move
that repairs one of them may violate another, so they are judged together. The excess of a constraint is::

    excess = sum over domains of max(size - smallest size - maxSkew, 0)

With fewer domains than ``minDomains`` the smallest size is 0, as if one more domain were empty.

Units: counts of pods. Ended and terminating pods do not count.
``SpreadConstraint`` is descheduler's reading of them, for planner Upstream.
Source: Kubernetes v1.36, ``pod.spec.topologySpreadConstraints``; KEP-3094 (node inclusion policies) and
KEP-3243 (matchLabelKeys).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from plimsoll.framework import ABSENT
from plimsoll.framework.descheduling.complaints import Gravity
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.pod_indexes import NeighbourRule
from plimsoll.model.columns.pod_counts import PodClass, PodCounts
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Toleration
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selector_lookup import SelectorLookup
from plimsoll.model.selectors import NodeMatcher, Selector, SelectorError
from plimsoll.model.taints import untolerated
from plimsoll.toolkit.descheduling.filter_answers import answer_of
from plimsoll.toolkit.scheduling.topology_spread import (
    Constraint,
    Included,
    SpreadsPods,
    constraints_of,
    selector_of,
)

Covers = Callable[[PodInfo], bool]
"""Whether pods like this one count."""


class SpreadConstraint(Struct, frozen=True):
    """A spread constraint reduced to the fields that distinguish it; hashable.

    Attributes:
        nodes: Matches the nodes that count; None when the constraint ignores node affinity.
        tolerations: Only nodes whose taints these tolerate count; None when the constraint ignores taints.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    nodes: NodeMatcher | None
    tolerations: frozenset[Toleration] | None

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
            )


class SpreadRule(NamedTuple):
    """A constraint as the scheduler's plugin reads it; equal for all templates with the same constraint.

    Attributes:
        nodes: The nodes that form domains; None for all that have the key.
        gravity: Of a complaint about it.
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    pods: PodClass
    nodes: Included | None
    gravity: Gravity

    @classmethod
    def of(cls, constraint: Constraint, gravity: Gravity) -> "SpreadRule":
        """The rule of a compiled constraint."""
        return cls(
            constraint.topology_key,
            constraint.max_skew,
            constraint.min_domains,
            constraint.selector,
            constraint.pods,
            constraint.nodes,
            gravity,
        )

    def counts(self, template: PodTemplate) -> bool:
        """Whether pods of the template count."""
        return self.pods.matches(template.namespace, template.labels)


#: A domain that no node is in: present where there are fewer domains than ``minDomains``.
MISSING = "\0"
SPREADING = "PodTopologySpread"


class DomainSizes(Struct):
    """A constraint with the number of matching pods in each domain.

    Attributes:
        domain_of: The domain of each node that counts, keyed by name.
        templates: Templates of the pods that count and that the strategy covers.
        sizes: Number of pods by domain, including domains without pods, and ``MISSING`` if there are too few.
    """

    constraint: SpreadRule
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


class Population(Struct, frozen=True):
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
    known = _rules_in(namespace, wanted, context)
    about = known.declaring if only is None else known.lookup.candidates(only.labels)
    found: dict[SpreadRule, str] = {}
    for rule in about:
        if only is None or rule.counts(only.template):
            declaring = (context.pods_of(namespace, template) for template in known.declaring[rule])
            firsts = [
                min(each.key for each in pods.values())
                for pods in declaring
                if pods and covers(next(iter(pods.values())))
            ]
            if firsts:
                found[rule] = min(firsts)
    for rule in sorted(found, key=found.__getitem__):
        domain_of, sizes = _domains(rule, context)
        templates = frozenset(
            template
            for template, pods in context.templates_matching(namespace, rule.selector)
            if rule.counts(template) and covers(next(iter(pods.values())))
        )
        yield DomainSizes(rule, domain_of, templates, sizes)


class _Rules(Struct, frozen=True):
    """The rules of a namespace, with the templates that declare each."""

    lookup: SelectorLookup[SpreadRule]
    declaring: dict[SpreadRule, list[PodTemplate]]


def _rules_in(namespace: str, wanted: tuple[str, ...], context: StrategyContext) -> _Rules:
    """The rules of a namespace; kept for the run as long as it has the same templates with constraints."""
    templates = sum(1 for _ in context.templates_with(namespace, NeighbourRule.SPREAD))
    key = ("spread rules", namespace, wanted)
    known: tuple[int, _Rules] | None = context.kept.get(key)
    if known is None or known[0] != templates:
        rules = _Rules(SelectorLookup(), {})
        for template, pods in _with_constraints(namespace, context):
            for rule in _rules_of(next(iter(pods.values())), wanted, context):
                if rule not in rules.declaring:
                    rules.declaring[rule] = []
                    rules.lookup.add(rule.selector, rule)
                rules.declaring[rule].append(template)
        known = context.kept[key] = templates, rules
    return known[1]


def _with_constraints(
    namespace: str, context: StrategyContext
) -> Iterator[tuple[PodTemplate, Mapping[str, PodInfo]]]:
    """Templates with constraints of their own, then those that a profile gives some."""
    yield from context.templates_with(namespace, NeighbourRule.SPREAD)
    for template, pods in context.templates_of(namespace):
        if not template.sample.spec.topology_spread_constraints:
            pod = next(iter(pods.values()))
            if answer_of(pod, SPREADING, _spreads, lambda each: each.gives_constraints, context):
                yield template, pods


def _spreads(plugin: object) -> SpreadsPods | None:
    return plugin if isinstance(plugin, SpreadsPods) else None


def _rules_of(pod: PodInfo, wanted: tuple[str, ...], context: StrategyContext) -> tuple[SpreadRule, ...]:
    """The constraints of the wanted kinds that the scheduler reads for the pod."""
    template, objects = pod.template, context.objects
    read = answer_of(pod, SPREADING, _spreads, lambda each: constraints_of(each, template, objects), context)
    if read is None:
        return ()
    kinds = {
        "DoNotSchedule": (read.hard, Gravity.RULE),
        "ScheduleAnyway": (read.soft, Gravity.PREFERENCE),
    }
    return tuple(
        SpreadRule.of(each, gravity)
        for kind, (some, gravity) in kinds.items()
        if kind in wanted
        for each in some
    )


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


def _domains(rule: SpreadRule, context: StrategyContext) -> tuple[Mapping[str, str], Counter[str]]:
    """The domain of each node that counts, and the scheduler's counts by domain, sorted.

    The domains are kept for the run, in which nodes do not change.
    """
    snapshot = context.snapshot
    counted = snapshot.index(PodCounts).of(rule.pods).sums(rule.topology_key, snapshot, rule.nodes)
    key = ("spread domains", rule.topology_key, rule.nodes)
    if key not in context.kept:
        values = snapshot.label(rule.topology_key).values
        context.kept[key] = (
            {
                node.name: values[domain]
                for node, domain in zip(
                    snapshot.nodes, counted.domain_of_row[: len(snapshot)].tolist(), strict=True
                )
                if domain != ABSENT
            },
            sorted(
                (values[domain], domain)
                for domain in np.flatnonzero(counted.exists).tolist()
                if domain < len(values)
            ),
        )
    domain_of, domains = context.kept[key]
    sizes = Counter({value: int(counted.sums[domain]) for value, domain in domains})
    if len(sizes) < rule.min_domains:
        sizes[MISSING] = 0
    return domain_of, sizes
