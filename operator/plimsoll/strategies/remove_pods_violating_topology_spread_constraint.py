"""RemovePodsViolatingTopologySpreadConstraint: pods of domains that hold more than their share.

Formula, per namespace and distinct constraint, over domains ordered by size, i the smallest, j the
largest::

    ideal = pods / domains
    skew  = size[j] - size[i]
    move  = min(ceil(size[j] - ideal), ceil(ideal - size[i]), ceil((skew - maxSkew) / 2))

moved from j to i while the skew is above ``maxSkew``. The victims are the last ``move`` pods of j: pods
that fit on a node of a domain below the ideal are last, before that pods without node selector or
affinity, before that those of the highest priority.

Units: counts of pods by domain.
Edges: only evictable pods count; terminating ones do not; ``minDomains`` is not read; constraints are
solved one by one against the original placement and their victims add up; pods that fit nowhere count
as moved.
Source: descheduler v0.36, ``removepodsviolatingtopologyspreadconstraint``.
Differs: under the Proven planner all pods count and only evictable ones are proposed, those that cost least
to move first (priority, deletion cost, not serving, restarts, age), and each constraint is solved with the
moves for the constraints before it made.
"""

import math
from collections.abc import Generator, Iterable, Iterator
from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from plimsoll.framework import (
    PodInfo,
    PodTemplate,
    ScopedArgs,
    Strategy,
    StrategyContext,
    StrategyKind,
    Verdict,
)
from plimsoll.framework.eviction_cost import eviction_cost
from plimsoll.framework.node_fit import fits_any_other_node
from plimsoll.framework.spread_constraints import SpreadConstraint, spread_constraints_of
from plimsoll.framework.strategy import Candidate, Candidates
from plimsoll.framework.turns import in_turn

Population = list[tuple[PodTemplate, list[PodInfo]]]
"""The pods of one namespace that count, template by template."""


class RemovePodsViolatingTopologySpreadConstraintArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = Field(
        default=("DoNotSchedule",), description="Which constraints are repaired."
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
        """The kinds of constraints that are repaired; a planner that knows them all needs no candidates."""
        return self.args.constraints or ("DoNotSchedule",)

    def candidates(self, context: StrategyContext) -> Candidates:
        """Exactly: all victims of all constraints; else constraint by constraint."""
        closed: set[str] = set()
        marked: dict[str, Candidate] = {}
        for namespace in context.namespaces():
            population = self._population(namespace, context)
            for constraint in self._constraints(population):
                if context.is_exact:
                    victims = self._victims(constraint, population, context)
                    marked |= {each.pod.uid: each for each in victims if each.pod.uid not in marked}
                    continue
                victims = self._victims(constraint, population, context)
                if (yield from self._proposed(victims, closed, context)):
                    population = self._population(namespace, context)
        yield from self._proposed(marked.values(), closed, context)

    def _proposed(
        self, victims: Iterable[Candidate], closed: set[str], context: StrategyContext
    ) -> Generator[Candidate, Verdict, bool]:
        """Propose them; whether one was accepted."""
        accepted = False
        for each in victims:
            if each.node in closed:
                continue
            if context.is_evictable(each.pod, each.reason) and context.is_movable(each.pod, each.reason):
                verdict = yield each
                accepted = accepted or verdict is Verdict.ACCEPTED
                if verdict is Verdict.NODE_CLOSED:
                    closed.add(each.node)
        return accepted

    def _population(self, namespace: str, context: StrategyContext) -> Population:
        """The pods that count, template by template."""
        found = []
        for template, pods in context.siblings(namespace):
            if self.args.covers(pods[0]):
                counted = [pod for pod in pods if not context.is_exact or context.is_evictable(pod)]
                if counted:
                    found.append((template, counted))
        return found

    def _constraints(self, population: Population) -> list[SpreadConstraint]:
        """The distinct constraints of the pods, in order of appearance."""
        found = (spread_constraints_of(pods[0], self.mends_spread) for _, pods in population)
        return list(dict.fromkeys(each for some in found for each in some))

    def _victims(
        self, constraint: SpreadConstraint, population: Population, context: StrategyContext
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

    def _rank(self, pod: PodInfo, context: StrategyContext) -> tuple[float, ...]:
        """Sort key; the last pods go first."""
        spec = pod.pod.spec
        bound = bool(spec.node_selector) or (
            spec.affinity is not None and spec.affinity.node_affinity is not None
        )
        if context.is_exact:
            return context.is_evictable(pod), not bound, spec.priority is not None, pod.priority
        return context.is_evictable(pod), not bound, *(-part for part in eviction_cost(pod))
