"""RemovePodsViolatingTopologySpreadConstraint: evict pods from domains that exceed their share.

Formula, per namespace and distinct constraint, over domains ordered by size, i the smallest, j the largest::

    ideal = pods / domains
    skew  = size[j] - size[i]
    move  = min(ceil(size[j] - ideal), ceil(ideal - size[i]), ceil((skew - maxSkew) / 2))

moved from j to i while the skew is above ``maxSkew``. The victims are the last ``move`` pods of j. Pods that
fit a node of a domain below the ideal are last, preceded by pods without node selector or affinity, and these
by pods of the highest priority.

Units: counts of pods by domain.
Edges: the constraints and the counts are those of the scheduler's PodTopologySpread, with ``minDomains``, the
inclusion policies and the profile's ``defaultConstraints``, but not the built-in ones; terminating pods do
not count.
Source: descheduler v0.36, ``removepodsviolatingtopologyspreadconstraint``.
Differs: under planner Upstream only evictable pods of nodes under consideration count, ``minDomains`` and
defaults are not read, and constraints are solved one by one against the original placement; their victims
add up, and pods that fit no node count as moved. The other planners propose evictable pods only. Constraints
that share pods are planned together: one pod at a time goes from the fullest domains to nodes that reduce the
excess of all constraints and increase that of none; among equal pods, the cheapest goes (priority, deletion
cost, readiness, restarts, age). If no single move helps any more, a mixed-integer program is solved for them.
"""

import math
from collections import Counter
from collections.abc import Generator, Iterator
from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from plimsoll.framework import PodInfo, PodTemplate
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind, Verdict
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Vicinity
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost, in_turn
from plimsoll.toolkit.descheduling.node_fit import fits_any_other_node
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs
from plimsoll.toolkit.descheduling.spread_populations import (
    Population,
    SpreadConstraint,
    SpreadRule,
    populations,
    sizes_of,
    spread_constraints_of,
)

Counted = list[tuple[PodTemplate, list[PodInfo]]]
"""The counted pods of one namespace, by template."""


class RemovePodsViolatingTopologySpreadConstraintArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = Field(
        default=("DoNotSchedule",),
        description="Kinds of constraints that are repaired: DoNotSchedule, ScheduleAnyway.",
    )
    topology_balance_node_fit: StrictBool = Field(
        default=True, description="Whether only pods that fit on a node of a smaller domain are evicted."
    )


class RemovePodsViolatingTopologySpreadConstraint(Strategy):
    """Move pods from crowded domains to empty ones."""

    name: ClassVar = "RemovePodsViolatingTopologySpreadConstraint"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = RemovePodsViolatingTopologySpreadConstraintArgs

    def __init__(self, args: RemovePodsViolatingTopologySpreadConstraintArgs) -> None:
        self.args = args

    @property
    def mends_spread(self) -> tuple[str, ...]:
        """The repaired kinds of constraints; a planner that supports them all needs no candidates."""
        return self.args.constraints or ("DoNotSchedule",)

    def candidates(self, context: StrategyContext) -> Candidates:
        """In exact mode, all victims of all constraints; else victims by population."""
        if not context.is_exact:
            yield from self._mending(context)
            return
        marked: dict[str, Candidate] = {}
        for namespace in context.namespaces():
            population = self._population(namespace, context)
            for constraint in self._constraints(population):
                victims = self._victims(constraint, population, context)
                marked |= {each.pod.uid: each for each in victims if each.pod.uid not in marked}
        closed: set[str] = set()
        for each in marked.values():
            if each.node not in closed and context.may_go(each.pod, each.reason):
                verdict = yield each
                if verdict is Verdict.NODE_CLOSED:
                    closed.add(each.node)

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods in excess of the smallest domain plus maxSkew, by constraint."""
        found: Counter[Complaint] = Counter()
        seen: set[tuple[str, SpreadRule]] = set()
        concerned = (
            [(namespace, None) for namespace in context.namespaces()]
            if near is None
            else [(pod.namespace, pod) for pod in near.pods]
        )
        for namespace, pod in concerned:
            for each in sizes_of(namespace, self.mends_spread, self.args.covers, context, pod):
                if (namespace, each.constraint) not in seen:
                    seen.add((namespace, each.constraint))
                    if each.excess:
                        sentence = f"in namespace {namespace} {each.sentence}"
                        found[Complaint(sentence, each.constraint.gravity)] += each.excess
        return {complaint: float(amount) for complaint, amount in found.items()}

    def _mending(self, context: StrategyContext) -> Candidates:
        """Pods to move from the fullest domains to the emptiest, for all of a population's constraints."""
        closed: set[str] = set()
        for namespace in context.namespaces():
            refused: set[tuple[PodTemplate, str]] = set()
            again = True
            while again:
                again = False
                for population in populations(namespace, self.mends_spread, self.args.covers, context):
                    verdict = yield from self._one_move(population, refused, closed, context)
                    again = again or verdict is Verdict.ACCEPTED
                if again:
                    refused.clear()

    def _one_move(
        self,
        population: Population,
        refused: set[tuple[PodTemplate, str]],
        closed: set[str],
        context: StrategyContext,
    ) -> Generator[Candidate, Verdict, Verdict]:
        """Propose pods until one is accepted; its siblings on the same node share a refusal."""
        for pod, node in self._by_gain(population, refused, closed, context):
            if (pod.template, node) in refused or node in closed:
                continue
            reason = _unevenness(pod, node, population)
            if not context.may_go(pod, reason):
                continue
            verdict = yield Candidate(
                pod, node, reason, destinations=self._destinations(pod, node, population, context)
            )
            if verdict is Verdict.ACCEPTED:
                return verdict
            if verdict is Verdict.NODE_CLOSED:
                closed.add(node)
            refused.add((pod.template, node))
        return Verdict.REFUSED

    def _by_gain(
        self,
        population: Population,
        refused: set[tuple[PodTemplate, str]],
        closed: set[str],
        context: StrategyContext,
    ) -> list[tuple[PodInfo, str]]:
        """Pods in excess of some constraint, those in the largest domains first.

        The sum of the squared sizes falls most when a pod moves from the largest to the smallest domains. It
        also distinguishes crowded nodes that have the same excess.
        """
        found = []
        for pod in population.pods.values():
            node = context.node_of(pod)
            if node not in context.considered or node in closed or (pod.template, node) in refused:
                continue
            if pod.is_terminating or pod.pod.is_terminal or pod.stands_in_for is not None:
                continue
            sizes = [
                (size, each.line)
                for each in population.counting(pod.template)
                if (size := each.size_at(node)) is not None
            ]
            if any(size > line for size, line in sizes):
                found.append(((-sum(size for size, _ in sizes), eviction_cost(pod), pod.key), pod, node))
        found.sort(key=lambda each: each[0])
        return [(pod, node) for _, pod, node in found]

    def _destinations(
        self, pod: PodInfo, source: str, population: Population, context: StrategyContext
    ) -> Destinations:
        """Nodes that reduce the excess and increase that of no constraint, the emptiest domains first."""
        counting = population.counting(pod.template)
        before = [each.excess for each in counting]
        known: dict[tuple[str | None, ...], bool] = {}

        def admits(name: str) -> bool:
            place = tuple(each.domain_of.get(name) for each in counting)
            if place not in known:
                after = [each.excess_after(source, name) for each in counting]
                known[place] = sum(after) < sum(before) and all(
                    new <= old for new, old in zip(after, before, strict=True)
                )
            return known[place] and name in context.considered

        def emptiness(name: str) -> float:
            return -float(sum(each.size_at(name) or 0 for each in counting))

        return Destinations(admits, emptiness)

    def _population(self, namespace: str, context: StrategyContext) -> Counted:
        """The counted pods, by template."""
        found = []
        for template, pods in context.siblings(namespace):
            if self.args.covers(pods[0]):
                counted = [pod for pod in pods if context.is_evictable(pod)]
                if counted:
                    found.append((template, counted))
        return found

    def _constraints(self, population: Counted) -> list[SpreadConstraint]:
        """The distinct constraints of the pods, in order of appearance."""
        found = (spread_constraints_of(pods[0], self.mends_spread) for _, pods in population)
        return list(dict.fromkeys(each for some in found for each in some))

    def _victims(
        self, constraint: SpreadConstraint, population: Counted, context: StrategyContext
    ) -> list[Candidate]:
        key = constraint.topology_key
        eligible = [
            node
            for node in map(context.node, context.nodes)
            if key in node.labels and constraint.admits(node)
        ]
        domains: dict[str, list[PodInfo]] = {node.labels[key]: [] for node in eligible}
        for template, pods in population:
            if not constraint.selector.matches(template.labels):
                continue
            for pod in pods:
                value = context.node(context.node_of(pod)).labels.get(key)
                if value is not None and not pod.is_terminating:
                    domains.setdefault(value, []).append(pod)
        if not domains:
            return []
        sizes = [len(pods) for pods in domains.values()]
        if max(sizes) - min(sizes) <= constraint.max_skew:
            return []
        for value, pods in domains.items():
            domains[value] = in_turn(((self._rank(pod, context), pod) for pod in pods), context)
        ideal = sum(sizes) / len(sizes)
        below = [node.name for node in eligible if len(domains[node.labels[key]]) < ideal]
        values = sorted(domains, key=lambda value: (len(domains[value]), value))
        ordered = [domains[value] for value in values]
        reason = f"its {key} holds more than its share of the pods: sizes {min(sizes)} to {max(sizes)}"
        reason += f", maxSkew {constraint.max_skew}"
        return [
            Candidate(pod, context.node_of(pod), reason)
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
        """The pods to move; consumes ``domains`` (ascending by size)."""
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

    def _rank(self, pod: PodInfo, context: StrategyContext) -> tuple[float, ...]:
        """Sort key; the last pods are moved first."""
        spec = pod.pod.spec
        bound = bool(spec.node_selector) or (
            spec.affinity is not None and spec.affinity.node_affinity is not None
        )
        return context.is_evictable(pod), not bound, spec.priority is not None, pod.priority


def _unevenness(pod: PodInfo, node: str, population: Population) -> str:
    """A sentence about why the pod should move."""
    worst = max(
        (each for each in population.counting(pod.template) if (each.size_at(node) or 0) > each.line),
        key=lambda each: (each.size_at(node) or 0) - each.line,
    )
    sizes = worst.sizes.values()
    return (
        f"its {worst.constraint.topology_key} holds more than its share of the pods: sizes {min(sizes)} to"
        f" {max(sizes)}, maxSkew {worst.constraint.max_skew}"
    )
