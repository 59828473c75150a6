"""RemovePodsViolatingTopologySpreadConstraint: pods of domains that hold more than their share.

Formula, per namespace and distinct constraint, over domains ordered by size, i the smallest, j the
largest::

    ideal = pods / domains
    skew  = size[j] - size[i]
    move  = min(ceil(size[j] - ideal), ceil(ideal - size[i]), ceil((skew - maxSkew) / 2))

moved from j to i while the skew is above ``maxSkew``. The victims are the last ``move`` pods of j: pods
that fit on a node of a domain below the ideal are last, before that pods without node selector or
affinity, before that those of the highest priority.

Edges: only evictable pods count; terminating ones do not; ``minDomains`` is not read; constraints are
solved one by one against the original placement and their victims add up; pods that fit nowhere count
as moved.
Source: descheduler v0.36, ``removepodsviolatingtopologyspreadconstraint``.
Differs: under the Proven planner all pods count and only evictable ones are proposed, those of the lowest
priority first, and each constraint is solved with the moves for the constraints before it made.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from plimsoll.framework.node_fit import fits_any_other_node, required_nodes
from plimsoll.framework.pod_scope import ScopedArgs
from plimsoll.framework.strategy import Candidate, Candidates, Strategy, StrategyKind, Verdict
from plimsoll.framework.strategy_context import StrategyContext
from plimsoll.model.node import Node
from plimsoll.model.pod import Toleration, TopologySpreadConstraint
from plimsoll.model.pod_info import PodInfo
from plimsoll.model.selectors import NodeMatcher, Selector, SelectorError, compile_selector
from plimsoll.model.taints import untolerated


class RemovePodsViolatingTopologySpreadConstraintArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = Field(
        default=("DoNotSchedule",), description="Which constraints are repaired."
    )
    topology_balance_node_fit: StrictBool = Field(
        default=True, description="Whether only pods that fit on a node of a smaller domain are evicted."
    )


@dataclass(frozen=True, slots=True)
class Constraint:
    """A spread constraint without what does not tell it from others; hashable.

    Attributes:
        max_skew: By how much the largest domain may exceed the smallest.
        topology_key: Label whose values are the domains.
        selector: The pods that count.
        nodes: Only nodes that match count; None when the constraint ignores node affinity.
        tolerations: Only nodes whose taints these tolerate count; None when it ignores taints.
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


class RemovePodsViolatingTopologySpreadConstraint(Strategy):
    """Move pods from crowded domains to empty ones."""

    name: ClassVar = "RemovePodsViolatingTopologySpreadConstraint"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = RemovePodsViolatingTopologySpreadConstraintArgs

    def __init__(self, args: RemovePodsViolatingTopologySpreadConstraintArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Exactly: all victims of all constraints; else constraint by constraint."""
        closed: set[str] = set()
        marked: dict[str, Candidate] = {}
        namespaces = self._population(context)
        for namespace in sorted(namespaces):
            for constraint in self._constraints(namespaces[namespace]):
                victims = self._victims(constraint, self._population(context, namespace)[namespace], context)
                if context.is_exact:
                    marked |= {each.pod.uid: each for each in victims if each.pod.uid not in marked}
                else:
                    yield from self._proposed(victims, closed, context)
        yield from self._proposed(marked.values(), closed, context)

    def _proposed(
        self, victims: Iterable[Candidate], closed: set[str], context: StrategyContext
    ) -> Candidates:
        for each in victims:
            if each.node in closed:
                continue
            if context.is_evictable(each.pod, each.reason) and context.is_movable(each.pod, each.reason):
                verdict = yield each
                if verdict is Verdict.NODE_CLOSED:
                    closed.add(each.node)

    def _population(
        self, context: StrategyContext, namespace: str | None = None
    ) -> dict[str, list[tuple[PodInfo, Node]]]:
        """The pods that count, with their nodes, by namespace."""
        found: dict[str, list[tuple[PodInfo, Node]]] = {} if namespace is None else {namespace: []}
        for name in context.nodes:
            node = context.node(name)
            for pod in context.pods(name):
                if namespace not in (None, pod.namespace) or not self.args.covers(pod):
                    continue
                if not context.is_exact or context.is_evictable(pod):
                    found.setdefault(pod.namespace, []).append((pod, node))
        return found

    def _constraints(self, population: list[tuple[PodInfo, Node]]) -> list[Constraint]:
        """The distinct constraints of the pods, in order of appearance."""
        wanted = self.args.constraints or ("DoNotSchedule",)
        return list(dict.fromkeys(each for pod, _ in population for each in _constraints_of(pod, wanted)))

    def _victims(
        self, constraint: Constraint, population: list[tuple[PodInfo, Node]], context: StrategyContext
    ) -> list[Candidate]:
        key = constraint.topology_key
        eligible = [
            node
            for node in map(context.node, context.nodes)
            if key in node.labels and constraint.admits(node)
        ]
        domains: dict[str, list[PodInfo]] = {node.labels[key]: [] for node in eligible}
        for pod, node in population:
            if pod.is_terminating or key not in node.labels or not constraint.selector.matches(pod.labels):
                continue
            domains.setdefault(node.labels[key], []).append(pod)
        if not domains:
            return []
        sizes = [len(pods) for pods in domains.values()]
        if max(sizes) - min(sizes) <= constraint.max_skew:
            return []
        for pods in domains.values():
            pods.sort(key=lambda pod: self._rank(pod, context))
        ideal = sum(sizes) / len(sizes)
        below = [node.name for node in eligible if len(domains[node.labels[key]]) < ideal]
        values = sorted(domains, key=lambda value: (len(domains[value]), value))
        ordered = [domains[value] for value in values]
        reason = f"its {key} holds more than its share of the pods: sizes {min(sizes)} to {max(sizes)}"
        reason += f", maxSkew {constraint.max_skew}"
        return [
            Candidate(pod, pod.pod.node_name, reason)
            for pod in self._moved(ordered, ideal, constraint.max_skew, below, context)
        ]

    def _moved(
        self,
        domains: list[list[PodInfo]],
        ideal: float,
        max_skew: int,
        below: list[str],
        context: StrategyContext,
    ) -> Iterator[PodInfo]:
        """The pods to move; ``domains`` (ascending by size) is used up."""
        i, j = 0, len(domains) - 1
        while i < j:
            if len(domains[j]) <= ideal:
                j -= 1
            skew = len(domains[j]) - len(domains[i])
            if skew <= max_skew:
                i += 1
                continue
            move = min(
                math.ceil(len(domains[j]) - ideal),
                math.ceil(ideal - len(domains[i])),
                math.ceil((skew - max_skew) / 2),
            )
            if move <= 0:
                i += 1
                continue
            fits = {pod.uid: fits_any_other_node(pod, below, context) for pod in domains[j]}
            domains[j].sort(key=lambda pod: fits[pod.uid])
            taken = domains[j][-move:]
            for pod in taken:
                if fits[pod.uid] or not self.args.topology_balance_node_fit:
                    yield pod
            del domains[j][-move:]
            domains[i] += taken

    def _rank(self, pod: PodInfo, context: StrategyContext) -> tuple[bool, bool, bool, int]:
        """Sort key; the last pods go first."""
        spec = pod.pod.spec
        bound = bool(spec.node_selector) or (
            spec.affinity is not None and spec.affinity.node_affinity is not None
        )
        if context.is_exact:
            return context.is_evictable(pod), not bound, spec.priority is not None, pod.priority
        return context.is_evictable(pod), not bound, spec.priority is None, -pod.priority


def _constraints_of(pod: PodInfo, wanted: tuple[str, ...]) -> tuple[Constraint, ...]:
    return pod.template.memo(("spread constraints", wanted), lambda: tuple(_compiled(pod, wanted)))


def _compiled(pod: PodInfo, wanted: tuple[str, ...]) -> Iterator[Constraint]:
    for each in pod.pod.spec.topology_spread_constraints:
        if each.when_unsatisfiable in wanted:
            selector = _selector(each, pod)
            if selector is not None:
                yield Constraint(
                    max_skew=each.max_skew,
                    topology_key=each.topology_key,
                    selector=selector,
                    nodes=required_nodes(pod) if each.node_affinity_policy == "Honor" else None,
                    tolerations=frozenset(pod.pod.spec.tolerations)
                    if each.node_taints_policy == "Honor"
                    else None,
                )


def _selector(constraint: TopologySpreadConstraint, pod: PodInfo) -> Selector | None:
    """The pods that count: the selector's, of the pod's own revision where the constraint asks for that."""
    try:
        selector = compile_selector(constraint.label_selector)
    except SelectorError:
        return None
    keys = constraint.match_label_keys
    return selector.and_equal({key: pod.labels[key] for key in keys if key in pod.labels})
