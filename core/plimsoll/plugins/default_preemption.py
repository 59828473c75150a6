"""DefaultPreemption: make room for an unschedulable pod on the node that loses the least by it.

Formula, per node that refused the pod with UNSCHEDULABLE::

    remove every pod of lower priority; the pod must fit then
    put them back one by one, those that their disruption budget protects first, then by importance
    (priority, then earlier start); those that cannot be put back are the victims

and among these nodes the one with, in this order, the fewest victims against their budget, the lowest
highest priority among the victims, the lowest sum of (priority + 2^31), the fewest victims, the latest of
the earliest starts among the victims of the highest priority.

Units: priorities and pods, int64; starts in seconds since the epoch.
Edges: pods of equal priority are never victims; a pod whose victims are still terminating on its
nominated node waits; a pod that has not started is the least important of its priority; if
preemption helps on no node, the pod's nomination is cleared.
Source: kube-scheduler v1.36, ``defaultpreemption/default_preemption.go`` and ``framework/preemption``.
Differs: where a policy sets ``preemption.viaEviction``, a node whose victims are protected by their budget is
no candidate, and the pod also waits for victims that terminate after a call of the Eviction API. Nodes where
only the pods' requests matter are all tried simultaneously. The others follow in row order, instead of from a
random one, until minCandidateNodes* are found. Pods of lower priority that are nominated to the node lose
their nomination also where all victims are terminating already; kube-scheduler leaves it to them until their
next attempt. This plugin only names victims (``toolkit.scheduling.victims``).
"""

from collections.abc import Collection
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Struct, field
from pydantic import Field, NonNegativeInt, model_validator

from plimsoll import framework as fwk
from plimsoll.framework.columns import GangMembers, GangUnits, PodsByImportance, RowArray
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets, is_behind
from plimsoll.toolkit.scheduling.gang_victims import have_members, victims_in_gangs
from plimsoll.toolkit.scheduling.victims import (
    CANDIDATE,
    NO_VICTIMS,
    NONE_LOWER,
    KeptVictims,
    VictimsFound,
    refusals_before_trial,
    victims_by_trial,
)

#: Refusal of a node whose victims cannot be evicted.
PROTECTED = fwk.unresolvable("node(s) whose victims a PodDisruptionBudget protects")
#: Reasons of the DisruptionTarget condition of pods that were deleted or evicted to make room.
LEAVING = ("PreemptionByScheduler", "EvictionByEvictionAPI")
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class DefaultPreemptionArgs(fwk.PluginArgs):
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


class PreemptionSearch(Struct):
    """The tried nodes and their outcomes.

    Attributes:
        rows: Nodes that were tried simultaneously; ``kept`` has the outcome.
        found: Candidates among the nodes that were tried one by one; ``refused`` has the others.
        is_walled: Whether a budget excludes some of them.
    """

    snapshot: fwk.Snapshot
    what_if: fwk.WhatIf
    rows: RowArray
    kept: KeptVictims
    found: list[VictimsFound] = field(default_factory=list)
    refused: dict[int, fwk.Status] = field(default_factory=dict)
    is_walled: bool = False

    def leave_protected(self) -> None:
        """Drop nodes with victims whose eviction the Eviction API would refuse because of a budget.

        Deletion knows fewer rules: pods that are not ready may be evicted although their budget is used up.
        """
        budgets = DisruptionBudgets(self.snapshot.objects)
        if not budgets.protect_anybody:
            return
        candidates = self.rows[self.kept.kinds[self.rows] == CANDIDATE]
        violating = [
            *map(self._kept_at, candidates[self.kept.costs[0][candidates] > 0].tolist()),
            *(each for each in self.found if each.violations),
        ]
        self._leave([each.row for each in violating if budgets.refuse(each.victims)])
        while (best := self.best()) is not None and budgets.refuse(best.victims):
            self._leave([best.row])

    def _kept_at(self, row: int) -> VictimsFound:
        return self.kept.at(row, self.snapshot)

    def _leave(self, rows: list[int]) -> None:
        self.rows = self.rows[~np.isin(self.rows, rows)]
        self.found = [each for each in self.found if each.row not in rows]
        self.refused |= dict.fromkeys(rows, PROTECTED)
        self.is_walled |= bool(rows)

    def best(self) -> VictimsFound | None:
        """The best candidate; the first by row among equals."""
        equal = self.kept.best(self.rows)
        best = [self.kept.at(int(equal[0]), self.snapshot)] if len(equal) else []
        if not self.found:
            return best[0] if best else None
        return min([*best, *self.found], key=lambda each: (each.cost(), each.row))

    def candidates(self) -> dict[str, fwk.PreemptionCandidate]:
        """Candidates keyed by node name."""
        together = self.rows[self.kept.kinds[self.rows] == CANDIDATE].tolist()
        every = [*(self.kept.at(row, self.snapshot) for row in together), *self.found]
        return {
            self.snapshot.node(each.row).name: fwk.PreemptionCandidate(each.victims, each.violations)
            for each in every
        }

    def selected(self) -> tuple[str, ...]:
        """The best candidate, keyed by node name."""
        best = self.best()
        if best is None:
            return ()
        together = self.kept.best(self.rows).tolist()
        equal = [*(self.kept.at(row, self.snapshot) for row in together), *self.found]
        return tuple(self.snapshot.node(each.row).name for each in equal if each.cost() == best.cost())

    def statuses(self) -> dict[str, fwk.Status]:
        """The statuses, keyed by node name, of tried nodes that are no candidates."""
        kinds = self.kept.kinds[self.rows]
        statuses = dict(self.refused)
        for kind in np.unique(kinds[kinds != CANDIDATE]).tolist():
            statuses |= dict.fromkeys(self.rows[kinds == kind].tolist(), self._refusal(kind))
        return {self.snapshot.node(row).name: status for row, status in statuses.items()}

    def message(self) -> str:
        """The refusals of all nodes in counts."""
        kinds, counts = np.unique(self.kept.kinds[self.rows], return_counts=True)
        counted = [
            *(zip(map(self._refusal, kinds.tolist()), counts.tolist(), strict=True)),
            *((status, 1) for status in self.refused.values()),
        ]
        reasons: dict[str, int] = {}
        for status, count in counted:
            for reason in status.reasons:
                reasons[reason] = reasons.get(reason, 0) + count
        rest = len(self.snapshot) - len(self.rows) - len(self.refused)
        if rest:
            reasons[NOT_HELPFUL] = rest
        return str(fwk.Diagnosis(len(self.snapshot), reasons))

    def _refusal(self, kind: int) -> fwk.Status:
        return NO_VICTIMS if kind == NONE_LOWER else self.what_if.refusal(kind)


class DefaultPreemption(fwk.PostFilterPlugin, fwk.EnqueueExtensions):
    """Make room by removing pods of lower priority from one node."""

    name: ClassVar = "DefaultPreemption"
    args_model: ClassVar = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs) -> None:
        self.args = args

    def post_filter(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot, rejections: fwk.Rejections
    ) -> fwk.Nomination:
        """Name a node and its victims, or the reason for which no node helps."""
        obstacle = _ineligible(pod, snapshot, rejections)
        if obstacle:
            return fwk.Nomination(fwk.unschedulable(f"preemption: {obstacle}"))
        what_if = rejections.what_if
        if what_if is None:
            return fwk.Nomination(fwk.unschedulable("preemption: the effect of removing pods is unknown"))
        helpful = what_if.helpful()
        if not len(helpful):
            diagnosis = fwk.Diagnosis(len(snapshot), {NOT_HELPFUL: len(snapshot)})
            return fwk.Nomination(fwk.unschedulable(f"preemption: {diagnosis}"), node="")
        search = self._searched(state, pod, snapshot, what_if, helpful)
        if rejections.via_eviction:
            search.leave_protected()
        chosen = search.best()
        if chosen is None:
            return fwk.Nomination(
                fwk.unschedulable(f"preemption: {search.message()}"),
                node="",
                search=search,
                waits_for=frozenset({self.name}) if search.is_walled else frozenset(),
            )
        return fwk.Nomination(
            node=snapshot.node(chosen.row).name,
            victims=chosen.victims,
            outranked=tuple(
                other for other in what_if.nominated(chosen.row) if other.priority < pod.priority
            ),
            search=search,
        )

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Budgets that allow more disruptions; ``waits_for`` names them for the waiting pod."""
        changes = fwk.ActionType.UPDATE | fwk.ActionType.DELETE
        return (fwk.EventWithHint("PodDisruptionBudget", changes, _allows_more, by_template=True),)

    def _searched(
        self,
        state: fwk.CycleState,
        pod: fwk.PodInfo,
        snapshot: fwk.Snapshot,
        what_if: fwk.WhatIf,
        rows: RowArray,
    ) -> PreemptionSearch:
        pods = snapshot.index(PodsByImportance)
        pods.refresh(snapshot)
        kept = state.find(KeptVictims)
        if kept is None or not kept.is_current(snapshot, what_if):
            kept = KeptVictims(snapshot)
        state.write(kept)
        gangs, by_sums = have_members(snapshot), what_if.by_sums(rows)
        if gangs.any():
            by_sums &= ~gangs[rows]
        together = rows[by_sums]
        kept.complete(pod, together, snapshot, what_if)
        search = PreemptionSearch(snapshot, what_if, together, kept)
        if len(together) == len(rows):
            return search
        share = len(rows) * self.args.min_candidate_nodes_percentage // 100
        wanted = min(len(rows), max(share, self.args.min_candidate_nodes_absolute))
        budgets = DisruptionBudgets(snapshot.objects)
        units = GangUnits(snapshot.index(GangMembers), snapshot.placed_pod, snapshot.objects)
        candidates, unviolated = kept.count(together)
        alone = rows[~by_sums]
        is_enough = candidates >= wanted and unviolated
        known = {} if is_enough else refusals_before_trial(pod, alone[~gangs[alone]], snapshot, what_if)
        for row in alone.tolist():
            if candidates >= wanted and unviolated:
                break
            if row in known:
                search.refused[row] = known[row]
                continue
            outcome = (
                victims_in_gangs(pod, row, pods.pods[row], budgets, what_if, units)
                if gangs[row]
                else victims_by_trial(pod, row, pods.pods[row], budgets, what_if)
            )
            if isinstance(outcome, VictimsFound):
                search.found.append(outcome)
                candidates += 1
                unviolated += not outcome.violations
            else:
                search.refused[row] = outcome
        return search


def _allows_more(_: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The budget allows more disruptions than before, protects other pods, or was deleted."""
    if change.new is None:
        return fwk.QueueingHint.QUEUE
    old, new = change.old, change.new
    return fwk.QueueingHint.of(
        new.status.disruptions_allowed > old.status.disruptions_allowed
        or new.spec != old.spec
        or (is_behind(old) and not is_behind(new))
    )


def _ineligible(pod: fwk.PodInfo, snapshot: fwk.Snapshot, rejections: fwk.Rejections) -> str:
    """Why the pod may not preempt now; empty if it may."""
    if pod.pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    row = snapshot.row_of(rejections.nominated_node or pod.pod.nominated_node_name)
    if row is None:
        return ""
    status = rejections.statuses.get(row, rejections.absent)
    reasons = LEAVING if rejections.via_eviction else LEAVING[:1]
    if status.code is not fwk.Code.UNRESOLVABLE and any(
        other.priority < pod.priority and _leaves(other, reasons) for other in snapshot.pods(row)
    ):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _leaves(pod: fwk.PodInfo, reasons: Collection[str]) -> bool:
    condition = pod.pod.condition("DisruptionTarget")
    return (
        pod.is_terminating
        and condition is not None
        and condition.status == "True"
        and condition.reason in reasons
    )
