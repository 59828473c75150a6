"""DefaultPreemption: when a pod fits nowhere, find the node where the least has to go to make room for it.

Formula, per node that refused the pod with UNSCHEDULABLE::

    remove every pod of lower priority; the pod must fit then
    put them back one by one, those that their disruption budget protects first, then by importance
    (priority, then earlier start); who cannot stay is a victim

and of these nodes the one with, in this order, the fewest victims against their budget, the lowest
highest priority among the victims, the lowest sum of (priority + 2^31), the fewest victims, the latest of
the earliest starts among the victims of the highest priority.

Units: priorities and pods, int64; starts in seconds since the epoch.
Edges: pods of equal priority are never victims; a pod whose victims are still terminating on its
nominated node waits; a pod that has not started is the least important of its priority; a nomination that
leads nowhere is cleared.
Source: kube-scheduler v1.36, ``defaultpreemption/default_preemption.go`` and ``framework/preemption``.
Differs: where pods only matter by what they request, all nodes are tried, at once; else nodes are tried
in row order instead of from a random one, until minCandidateNodes* are found. Victims are named, not
deleted, here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, NonNegativeInt, model_validator

from plimsoll.framework import (
    BoolArray,
    Candidate,
    Code,
    CycleState,
    Diagnosis,
    IntArray,
    Nomination,
    PluginArgs,
    PodDisruptionBudget,
    PodInfo,
    PodsByImportance,
    PodTemplate,
    PostFilterPlugin,
    Refusals,
    Rejections,
    RowArray,
    Selector,
    SelectorError,
    Snapshot,
    Status,
    WhatIf,
    compile_selector,
    importance,
    started,
    unresolvable,
    unschedulable,
)

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL = "Preemption is not helpful for scheduling"
PRIORITY_OFFSET = 2**31


class DefaultPreemptionArgs(PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    min_candidate_nodes_percentage: Annotated[int, Field(ge=0, le=100)] = Field(
        default=10, description="Share of the nodes to find candidates among, in percent."
    )
    min_candidate_nodes_absolute: NonNegativeInt = Field(
        default=100, description="Candidates to find at least, if there are that many."
    )

    @model_validator(mode="after")
    def _some(self) -> "DefaultPreemptionArgs":
        if not self.min_candidate_nodes_percentage and not self.min_candidate_nodes_absolute:
            raise ValueError("minCandidateNodesPercentage and minCandidateNodesAbsolute: one must be above 0")
        return self


@dataclass(frozen=True, slots=True)
class Found:
    """One candidate, by row."""

    row: int
    victims: tuple[PodInfo, ...]
    violations: int

    def cost(self) -> tuple[int, int, int, int, float]:
        """The lowest is picked."""
        if not self.victims:
            return self.violations, -PRIORITY_OFFSET, 0, 0, -np.inf
        highest = max(victim.priority for victim in self.victims)
        return (
            self.violations,
            highest,
            sum(victim.priority + PRIORITY_OFFSET for victim in self.victims),
            len(self.victims),
            -min(started(victim) for victim in self.victims if victim.priority == highest),
        )


@dataclass(slots=True)
class Batch:
    """Nodes that were tried at once: who would have to go.

    Attributes:
        rows: Shape (C,): the candidates.
        victims: Shape (C, K): which places of PodsByImportance.
        violations: Shape (C,): victims against their budget.
        untenable: Rows without pods of lower priority.
        refused: Rows where even an empty place does not help, and the filters' verdicts.
    """

    rows: RowArray
    victims: BoolArray
    violations: IntArray
    untenable: RowArray
    refused: tuple[RowArray, Refusals] | None


@dataclass(slots=True)
class Search:
    """What was tried, and what came of it."""

    snapshot: Snapshot
    pods: PodsByImportance
    batch: Batch | None = None
    found: list[Found] = field(default_factory=list)
    refused: dict[int, Status] = field(default_factory=dict)

    def best(self) -> list[Found]:
        """The candidates that are equal by every rule and better than all others."""
        best = [*self.found, *self._best_of_batch()]
        if not best:
            return []
        lowest = min(each.cost() for each in best)
        return [each for each in best if each.cost() == lowest]

    def candidates(self) -> dict[str, Candidate]:
        """By node name."""
        every = list(self.found)
        if self.batch is not None:
            every += [self._at(position) for position in range(len(self.batch.rows))]
        return {self.snapshot.node(each.row).name: Candidate(each.victims, each.violations) for each in every}

    def selected(self) -> tuple[str, ...]:
        """The best, by node name."""
        return tuple(self.snapshot.node(each.row).name for each in self.best())

    def statuses(self) -> dict[str, Status]:
        """By node name, of nodes that were tried and are no candidates."""
        statuses = dict(self.refused)
        if self.batch is not None:
            statuses |= dict.fromkeys(self.batch.untenable.tolist(), NO_VICTIMS)
            if self.batch.refused is not None:
                rows, verdicts = self.batch.refused
                statuses |= {int(row): verdicts.status(at) for at, row in enumerate(rows)}
        return {self.snapshot.node(row).name: status for row, status in statuses.items()}

    def message(self) -> str:
        """The refusals of all nodes in counts."""
        statuses = self.statuses()
        reasons: dict[str, int] = {}
        for status in statuses.values():
            for reason in status.reasons:
                reasons[reason] = reasons.get(reason, 0) + 1
        rest = len(self.snapshot) - len(statuses)
        if rest:
            reasons[NOT_HELPFUL] = reasons.get(NOT_HELPFUL, 0) + rest
        return str(Diagnosis(len(self.snapshot), reasons))

    def _at(self, position: int) -> Found:
        assert self.batch is not None
        row = int(self.batch.rows[position])
        pods = self.pods.pods[row]
        victims = tuple(pods[place] for place in np.flatnonzero(self.batch.victims[position]).tolist())
        return Found(row, victims, int(self.batch.violations[position]))

    def _best_of_batch(self) -> list[Found]:
        """Narrow the batch down criterion by criterion."""
        if self.batch is None or not len(self.batch.rows):
            return []
        batch, places = self.batch, self.batch.victims.shape[1]
        left = np.flatnonzero(batch.violations == batch.violations.min())
        victims = batch.victims[left]
        priorities = self.pods.priorities[batch.rows[left], :places]
        highest = np.where(victims, priorities, -PRIORITY_OFFSET).max(axis=1, initial=-PRIORITY_OFFSET)
        keep = highest == highest.min()
        left, victims, priorities, highest = left[keep], victims[keep], priorities[keep], highest[keep]
        sums = np.where(victims, priorities + PRIORITY_OFFSET, 0).sum(axis=1)
        keep = sums == sums.min()
        left, victims, priorities, highest = left[keep], victims[keep], priorities[keep], highest[keep]
        counts = victims.sum(axis=1)
        keep = counts == counts.min()
        left, victims, priorities, highest = left[keep], victims[keep], priorities[keep], highest[keep]
        starts = self.pods.starts[batch.rows[left], :places]
        earliest = np.where(victims & (priorities == highest[:, None]), starts, np.inf).min(
            axis=1, initial=np.inf
        )
        return [self._at(int(position)) for position in left[earliest == earliest.max()]]


class DefaultPreemption(PostFilterPlugin):
    """Make room by removing pods of lower priority from one node."""

    name: ClassVar = "DefaultPreemption"
    args_model: ClassVar = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs) -> None:
        self.args = args

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rejections: Rejections
    ) -> Nomination:
        """Name a node and its victims, or say why there is none."""
        obstacle = _ineligible(pod, snapshot, rejections)
        if obstacle:
            return Nomination(unschedulable(f"preemption: {obstacle}"))
        what_if = rejections.what_if
        if what_if is None:
            return Nomination(unschedulable("preemption: nobody can tell what removing pods would do"))
        search = self._searched(pod, snapshot, what_if)
        best = search.best()
        if not best:
            return Nomination(unschedulable(f"preemption: {search.message()}"), node="", search=search)
        chosen = best[0]
        return Nomination(
            node=snapshot.node(chosen.row).name,
            victims=chosen.victims,
            outranked=tuple(
                other for other in what_if.nominated(chosen.row) if other.priority < pod.priority
            ),
            search=search,
        )

    def _searched(self, pod: PodInfo, snapshot: Snapshot, what_if: WhatIf) -> Search:
        pods = snapshot.index(PodsByImportance)
        pods.refresh(snapshot)
        search = Search(snapshot, pods)
        rows = what_if.helpful()
        one_by_one = rows
        if what_if.is_additive:
            # Nominated pods are filtered with and without: those few nodes are tried one by one.
            nominated = np.isin(rows, what_if.nominated_rows())
            one_by_one = rows[nominated]
            search.batch = _at_once(pod, rows[~nominated], search, what_if)
        share = len(rows) * self.args.min_candidate_nodes_percentage // 100
        wanted = min(len(rows), max(share, self.args.min_candidate_nodes_absolute))
        budgets = _Budgets(snapshot)
        for row in one_by_one.tolist():
            if len(search.found) >= wanted and any(not each.violations for each in search.found):
                break
            outcome = _one(pod, row, pods.pods[row], budgets, what_if)
            if isinstance(outcome, Found):
                search.found.append(outcome)
            else:
                search.refused[row] = outcome
        return search


def _ineligible(pod: PodInfo, snapshot: Snapshot, rejections: Rejections) -> str:
    """Why the pod may not preempt now; empty when it may."""
    if pod.pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    row = snapshot.row_of(pod.pod.nominated_node_name)
    if row is None:
        return ""
    status = rejections.statuses.get(row, rejections.absent)
    if status.code is not Code.UNRESOLVABLE and any(
        other.priority < pod.priority and _leaves_for_preemption(other) for other in snapshot.pods(row)
    ):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _leaves_for_preemption(pod: PodInfo) -> bool:
    condition = pod.pod.condition("DisruptionTarget")
    return (
        pod.is_terminating
        and condition is not None
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
    )


# -- one node ----------------------------------------------------------------------------------------


def _one(
    pod: PodInfo, row: int, pods: Sequence[PodInfo], budgets: "_Budgets", what_if: WhatIf
) -> Found | Status:
    """The victims on one node, pod by pod; or why it is no candidate."""
    lower = [other for other in pods if other.priority < pod.priority]
    if not lower:
        return NO_VICTIMS
    trial = what_if.on(row)
    try:
        for other in lower:
            trial.remove(other)
        status = trial.status()
        if not status.is_success:
            return status
        violating = budgets.violating(lower)
        victims: list[PodInfo] = []
        violations = 0
        for protected in (True, False):
            for other, violates in zip(lower, violating, strict=True):
                if violates is not protected:
                    continue
                trial.add(other)
                if not trial.status().is_success:
                    trial.remove(other)
                    victims.append(other)
                    violations += protected
    finally:
        trial.close()
    return Found(row, tuple(sorted(victims, key=importance)), violations)


# -- many nodes at once ------------------------------------------------------------------------------


def _at_once(pod: PodInfo, rows: RowArray, search: Search, what_if: WhatIf) -> Batch:
    """The victims on each node, for filters that know pods only by the sums of their requests."""
    pods = search.pods
    if not len(rows):
        return Batch(rows, np.zeros((0, 0), dtype=np.bool_), np.zeros(0, dtype=np.int64), rows, None)
    places, lower = pods.places(rows, pod.priority)
    preemptible = lower.any(axis=1)
    untenable = rows[~preemptible]
    rows, lower = rows[preemptible], lower[preemptible]
    resources = len(search.snapshot.resources)
    taken = pods.requests[rows, :places, :resources]
    requested = search.snapshot.requested[rows] - np.einsum("nkr,nk->nr", taken, lower)
    verdicts = what_if.refusals_if(rows, requested)
    refused = None
    if not verdicts.fits.all():
        fits = verdicts.fits
        positions = np.flatnonzero(~fits)
        refused = (
            rows[~fits],
            Refusals(fits[~fits], lambda position: verdicts.status(int(positions[position]))),
        )
        rows, lower, taken, requested = rows[fits], lower[fits], taken[fits], requested[fits]
    violating = _Budgets(search.snapshot).violating_places(rows, lower, pods)
    victims = np.zeros_like(lower)
    for protected in (violating, lower & ~violating):
        for place in np.flatnonzero(protected.any(axis=0)):
            here = np.flatnonzero(protected[:, place])
            again = requested[here] + taken[here, place]
            stays = what_if.refusals_if(rows[here], again).fits
            requested[here[stays]] = again[stays]
            victims[here[~stays], place] = True
    return Batch(rows, victims, (victims & violating).sum(axis=1), untenable, refused)


# -- disruption budgets ------------------------------------------------------------------------------


class _Budgets:
    """Which pods their disruption budget would not let go."""

    def __init__(self, snapshot: Snapshot) -> None:
        objects = snapshot.objects
        self._by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = objects.derived(
            "budgets by namespace", lambda: _selecting(objects.budgets.values())
        )

    def violating(self, pods: Sequence[PodInfo]) -> list[bool]:
        """For each of the pods, in order of importance, whether a budget is used up before or by it."""
        allowed: dict[str, int] = {}
        violating = []
        for pod in pods:
            violates = False
            for budget in self._of(pod):
                left = allowed.get(budget.key, budget.status.disruptions_allowed) - 1
                allowed[budget.key] = left
                violates |= left < 0
            violating.append(violates)
        return violating

    def violating_places(self, rows: RowArray, lower: BoolArray, pods: PodsByImportance) -> BoolArray:
        """The same for the places ``lower`` of many nodes, shape (C, K)."""
        violating = np.zeros_like(lower)
        if not self._by_namespace:
            return violating
        protected: dict[PodTemplate, bool] = {}
        for position, row in enumerate(rows.tolist()):
            there = pods.pods[row]
            places = np.flatnonzero(lower[position])
            concerned = False
            for place in places:
                template = there[place].template
                known = protected.get(template)
                if known is None:
                    known = protected[template] = any(True for _ in self._of(there[place]))
                concerned |= known
            if concerned:
                violating[position, places] = self.violating([there[place] for place in places])
        return violating

    def _of(self, pod: PodInfo) -> Iterable[PodDisruptionBudget]:
        """Budgets that the pod's disruption counts against."""
        if not pod.labels:
            return
        for budget, selector in self._by_namespace.get(pod.namespace, ()):
            if selector.matches(pod.labels) and pod.name not in budget.status.disrupted_pods:
                yield budget


def _selecting(
    budgets: Iterable[PodDisruptionBudget],
) -> dict[str, list[tuple[PodDisruptionBudget, Selector]]]:
    """Budgets by namespace; one whose selector is empty or malformed protects nobody here."""
    by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
    for budget in budgets:
        try:
            selector = compile_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not selector.is_empty and not selector.matches_nothing:
            by_namespace.setdefault(budget.metadata.namespace, []).append((budget, selector))
    return by_namespace
