"""Victims of preemption, found on one node by trial or on many nodes with arrays.

Both ways follow the same procedure: remove every pod of lower priority; if the pod then fits, put them back
one by one, those that a disruption budget protects first, then by importance. A pod that does not fit any
more is a victim.

Axis letters: N nodes, K places of :class:`PodsByImportance`, R resources.
Source: kube-scheduler v1.36, ``defaultpreemption`` (SelectVictimsOnNode) and ``framework/preemption``.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from plimsoll.framework.extension_points import VictimArrays, WhatIf
from plimsoll.framework.status import Status, unresolvable
from plimsoll.model.columns.columns import BoolArray, IntArray, RowArray
from plimsoll.model.columns.pods_by_importance import PodsByImportance, importance, started
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets, disruptions_taken

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
PRIORITY_OFFSET = 2**31
#: Values of ``KeptVictims.kinds``, in addition to WhatIf's kinds of refusal, which are positive.
CANDIDATE, UNKNOWN, NONE_LOWER = 0, -1, -2


class VictimsFound(Struct, frozen=True):
    """One candidate: a row, its victims (the most important first), and how many violate a budget.

    Attributes:
        broken: Number of groups of which all members are victims, on whatever nodes they are.
    """

    row: int
    victims: tuple[PodInfo, ...]
    violations: int
    broken: int = 0

    def cost(self) -> tuple[int, int, int, int, int, float]:
        """A sort key: the candidate with the lowest cost is picked.

        It consists of: the violations; the highest priority; the broken groups; the sum of
        (priority + 2^31); the number of victims; and minus the earliest start among the victims of the
        highest priority.
        """
        highest = max((victim.priority for victim in self.victims), default=-PRIORITY_OFFSET)
        starts = [started(victim) for victim in self.victims if victim.priority == highest]
        return (
            self.violations,
            highest,
            self.broken,
            sum(victim.priority + PRIORITY_OFFSET for victim in self.victims),
            len(self.victims),
            -min(starts, default=np.inf),
        )


def victims_by_trial(
    pod: PodInfo, row: int, pods: Sequence[PodInfo], budgets: DisruptionBudgets, what_if: WhatIf
) -> VictimsFound | Status:
    """The victims among a node's pods (the most important first), or why the node is not a candidate."""
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
                    violations += int(protected)
    finally:
        trial.close()
    return VictimsFound(row, tuple(sorted(victims, key=importance)), violations)


def refusals_before_trial(
    pod: PodInfo, rows: RowArray, snapshot: Snapshot, what_if: WhatIf
) -> dict[int, Status]:
    """What ``victims_by_trial`` would return, by row, where sums show already that no victims help."""
    pods = snapshot.index(PodsByImportance)
    lower = pods.below(pod.priority, rows)
    preemptible = lower.any(axis=0)
    rows, lower = rows[preemptible], lower[:, preemptible]
    _, requested = _without(lower, rows, pods, snapshot)
    kinds = what_if.refusals_before_trial(rows, requested)
    statuses = {kind: what_if.refusal(kind) for kind in np.unique(kinds[kinds != 0]).tolist()}
    refused = zip(rows.tolist(), kinds.tolist(), strict=True)
    return {row: statuses[kind] for row, kind in refused if kind}


def _without(
    lower: BoolArray, rows: RowArray, pods: PodsByImportance, snapshot: Snapshot
) -> tuple[IntArray, IntArray]:
    """The requests of the pods at the places, shape (K, N, R), and of the others on the rows, (N, R)."""
    # Slices are views; an array of all rows would be a copy.
    whole = len(rows) == len(snapshot)
    taken = pods.requests[: len(lower), : len(snapshot)] if whole else pods.requests[: len(lower), rows]
    taken = taken[:, :, : len(snapshot.resources)]
    requested = snapshot.requested[rows]
    for place, there in enumerate(lower):
        requested -= taken[place] if there.all() else taken[place] * there[:, None]
    return taken, requested


class KeptVictims:
    """The victims on every node, for filters that depend on pods only through the sums of their requests.

    Cached between the attempts of one template; only changed nodes are searched again. Shapes are (N,), and
    (K, N) for ``victims``; the values of a node are valid where ``kinds`` is CANDIDATE.

    Args:
        snapshot: A snapshot of the cluster.

    Attributes:
        kinds: CANDIDATE, NONE_LOWER, UNKNOWN, or the kind of refusal that remains without lower pods.
        victims: The places of the victims.
        costs: The criteria of ``VictimsFound.cost``, in order.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        count = len(snapshot)
        self.kinds: IntArray = np.full(count, UNKNOWN, dtype=np.int64)
        self.victims: BoolArray = np.zeros((0, count), dtype=np.bool_)
        self.costs: tuple[NDArray[np.float64] | IntArray, ...] = (
            *(np.empty(count, dtype=np.int64) for _ in range(4)),
            np.empty(count, dtype=np.float64),
        )
        self._mark = _mark(snapshot)
        self._tick = snapshot.tick
        self._sorted = _sorted(snapshot)
        self._ahead = np.zeros(count, dtype=np.int64)  #: WhatIf.ahead_marks

    def is_current(self, snapshot: Snapshot, what_if: WhatIf) -> bool:
        """Whether nodes and budgets are unchanged.

        Invalidates the rows whose pods, their order, or whose nominated pods, changed.
        """
        changed = snapshot.changed_since(self._tick)
        if changed is None or self._mark != _mark(snapshot):
            return False
        self.kinds[changed] = UNKNOWN
        self._tick = snapshot.tick
        were, self._sorted = self._sorted, _sorted(snapshot)
        self.kinds[self._sorted != were] = UNKNOWN
        before, self._ahead = self._ahead, what_if.ahead_marks
        if self._ahead is not before:
            self.kinds[self._ahead != before] = UNKNOWN
        return True

    def complete(self, pod: PodInfo, rows: RowArray, snapshot: Snapshot, what_if: WhatIf) -> None:
        """Find the victims on those of the rows where they are unknown."""
        self._ahead = what_if.ahead_marks
        rows = rows[self.kinds[rows] == UNKNOWN]
        if not len(rows):
            return
        pods = snapshot.index(PodsByImportance)
        budgets = DisruptionBudgets(snapshot.objects)
        if not budgets.protect_anybody:
            self._widen(len(pods.priorities))
            costs = self.costs
            arrays = VictimArrays(pod.priority, pods, NONE_LOWER, self.kinds, self.victims, costs)
            rows = what_if.find_victims(rows, arrays)
            if not len(rows):
                return
        lower = pods.below(pod.priority, rows)
        preemptible = lower.any(axis=0)
        if not preemptible.all():
            self.kinds[rows[~preemptible]] = NONE_LOWER
            rows, lower = rows[preemptible], lower[:, preemptible]
        taken, requested = _without(lower, rows, pods, snapshot)
        kinds = what_if.refusals_if(rows, requested)
        self.kinds[rows] = kinds
        fits = kinds == CANDIDATE
        if not fits.all():
            rows, lower, taken, requested = rows[fits], lower[:, fits], taken[:, fits], requested[fits]
            if not len(rows):
                return

        def still_fits(some: RowArray | slice, amounts: IntArray) -> BoolArray:
            fitting: BoolArray = what_if.refusals_if(rows[some], amounts) == CANDIDATE
            return fitting

        victims = np.zeros_like(lower)
        violations = np.zeros(len(rows), dtype=np.int64)
        if budgets.protect_anybody:
            violating = _violating(rows, lower, pods, budgets)
            _reprieve(violating, taken, requested, victims, still_fits)
            violations = victims.sum(axis=0)
            lower = lower & ~violating
        _reprieve(lower, taken, requested, victims, still_fits)
        self._note(rows, victims, violations, pods)

    def at(self, row: int, snapshot: Snapshot) -> VictimsFound:
        """The candidate of one row."""
        pods = snapshot.index(PodsByImportance).pods[row]
        victims = tuple(pods[place] for place in np.flatnonzero(self.victims[:, row]).tolist())
        return VictimsFound(row, victims, int(self.costs[0][row]))

    def count(self, rows: RowArray) -> tuple[int, int]:
        """The number of rows that are candidates, and how many of these have no violation."""
        costs = self.costs[0][rows[self.kinds[rows] == CANDIDATE]]
        return len(costs), len(costs) - int(np.count_nonzero(costs))

    def best(self, rows: RowArray) -> RowArray:
        """The best candidates among the rows: equal to each other by every criterion."""
        rows = rows[self.kinds[rows] == CANDIDATE]
        for cost in self.costs:
            if len(rows) > 1:
                costs = cost[rows]
                rows = rows[costs == costs.min()]
        return rows

    def _widen(self, places: int) -> None:
        if places > len(self.victims):
            wider = np.zeros((places, len(self.kinds)), dtype=np.bool_)
            wider[: len(self.victims)] = self.victims
            self.victims = wider

    def _note(self, rows: RowArray, victims: BoolArray, violations: IntArray, pods: PodsByImportance) -> None:
        places = len(victims)
        self._widen(places)
        self.victims[:, rows] = False
        self.victims[:places, rows] = victims
        priorities = pods.priorities[:places, rows]
        highest = np.where(victims, priorities, -PRIORITY_OFFSET).max(axis=0, initial=-PRIORITY_OFFSET)
        starts = np.where(victims & (priorities == highest), pods.starts[:places, rows], np.inf)
        self.costs[0][rows] = violations
        self.costs[1][rows] = highest
        self.costs[2][rows] = np.where(victims, priorities + PRIORITY_OFFSET, 0).sum(axis=0)
        self.costs[3][rows] = victims.sum(axis=0)
        self.costs[4][rows] = -starts.min(axis=0, initial=np.inf)


def _mark(snapshot: Snapshot) -> tuple[tuple[int, int], int, int, int]:
    """The versions of nodes and budgets."""
    objects = snapshot.objects
    return snapshot.node_mark, objects.version, objects.budget_version, disruptions_taken(objects)


def _sorted(snapshot: Snapshot) -> IntArray:
    """By row, how often its pods have been sorted."""
    return snapshot.index(PodsByImportance).sorted_at[: len(snapshot)].copy()


def _reprieve(
    lower: BoolArray,
    taken: IntArray,
    requested: IntArray,
    victims: BoolArray,
    fits: Callable[[RowArray | slice, IntArray], BoolArray],
) -> None:
    """Put back pods, place by place, on all nodes; mark in ``victims``, shape (K, N), those that cannot stay.

    ``lower``, (K, N), are the pods; ``taken``, (K, N, R), their requests; ``requested``, (N, R), is changed.
    """
    for place, there in enumerate(lower):
        if there.all():
            again = requested + taken[place]
            stays = fits(slice(None), again)
            requested[stays] = again[stays]
            victims[place] = ~stays
        elif there.any():
            here = np.flatnonzero(there)
            again = requested[here] + taken[place][here]
            stays = fits(here, again)
            requested[here[stays]] = again[stays]
            victims[place, here[~stays]] = True


def _violating(
    rows: RowArray, lower: BoolArray, pods: PodsByImportance, budgets: DisruptionBudgets
) -> BoolArray:
    """Which of the places ``lower`` violate a budget, shape (K, N)."""
    violating = np.zeros_like(lower)
    if budgets.protect_anybody:
        for position, row in enumerate(rows.tolist()):
            places = np.flatnonzero(lower[:, position]).tolist()
            violating[places, position] = budgets.violating([pods.pods[row][place] for place in places])
    return violating
