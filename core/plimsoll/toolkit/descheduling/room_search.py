"""Finds the fewest and cheapest pods to move off a node so that a given amount becomes free there.

The deficit of a node is the wanted amount minus the free amount. Nodes whose movable pods cannot cover it are
left out. The others are ranked in one step by a lower bound on the number of pods. Each pod is worth the sum
of the shares of the deficit that it covers; the bound is how many of the largest values add up to the whole.
On the most promising nodes, pods are then chosen one by one and moved to their best fits.

Axis letters: N nodes, K places (of :class:`PodsByImportance`), R resources.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.model.columns.columns import IntArray, RowArray
from plimsoll.model.columns.pods_by_importance import PodsByImportance
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.names import PodUid
from plimsoll.toolkit.descheduling.best_fit import BestFit
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost


def promising(
    rows: RowArray, deficits: IntArray, snapshot: Snapshot, most: int, highest: int
) -> tuple[RowArray, IntArray]:
    """The rows where at most ``most`` pods might cover the deficit, the fewest first, and their deficits.

    Args:
        rows: Shape (N,).
        deficits: Shape (N, R); rows without a deficit are left out.
        snapshot: The whole cluster.
        most: Maximum number of pods that may leave one node.
        highest: The highest priority of pods that may leave.
    """
    pods = snapshot.index(PodsByImportance)
    pods.refresh(snapshot)
    lacking = deficits.any(axis=1)
    rows, deficits = rows[lacking], deficits[lacking]
    if not len(rows):
        return rows, deficits
    movable = pods.below(highest + 1, rows)
    taken = pods.requests[: len(movable), rows, : deficits.shape[1]] * movable[:, :, None]
    covered = (taken.sum(axis=0) >= deficits).all(axis=1)
    rows, deficits, taken = rows[covered], deficits[covered], taken[:, covered]
    if not len(rows):
        return rows, deficits
    worth: NDArray[np.float64] = (np.minimum(taken, deficits) / np.maximum(deficits, 1)).sum(axis=2)
    sums = np.sort(worth, axis=0)[::-1].cumsum(axis=0)
    needed = (deficits > 0).sum(axis=1)
    count = 1 + (sums < needed - 1e-9).sum(axis=0)
    largest = np.maximum(snapshot.allocatable.max(axis=0), 1)
    names = np.array([snapshot.node(row).name for row in rows.tolist()])
    order = np.lexsort((names, (deficits / largest).sum(axis=1), count))
    order = order[count[order] <= most]
    return rows[order], deficits[order]


def moves_off(
    row: int,
    deficit: IntArray,
    context: StrategyContext,
    fit: BestFit,
    *,
    most: int,
    highest: int,
    reason: str,
    stays: str = "",
) -> tuple[Candidate, ...]:
    """Moves of at most ``most`` pods of one node, none above a priority, that cover the deficit, shape (R,).

    Empty if impossible. ``fit`` finds the targets and is not changed; the pod ``stays``, by uid, stays.
    """
    snapshot = context.snapshot
    node = snapshot.node(row).name
    # A nominated or assumed pod counts as placed but does not run there yet.
    pods = [each for each in context.pods(node) if each.pod.node_name == node and not each.is_terminating]
    movable = [each for each in pods if each.priority <= highest and each.uid != stays]
    amounts = {each.uid: snapshot.requests_row(each.requests) for each in movable}
    left = {each.uid: each for each in pods if each.uid in amounts and not fit.knows_no_place_for(each)}
    fit, missing, chosen = fit.copy(), deficit, list[Candidate]()
    while missing.any():
        worth = {
            uid: float((np.minimum(amounts[uid], missing) / np.maximum(missing, 1)).sum()) for uid in left
        }
        move = None
        for pod in sorted(left.values(), key=lambda each: (-worth[each.uid], eviction_cost(each))):
            if not worth[pod.uid] or len(chosen) == most:
                return ()
            del left[pod.uid]
            if context.may_go(pod):
                move = fit.move(pod, row, reason)
            if move is not None:
                break
        if move is None:
            return ()
        chosen.append(move)
        missing = np.maximum(missing - amounts[move.pod.uid], 0)
    return _needed(chosen, amounts, deficit)


def _needed(
    chosen: list[Candidate], amounts: Mapping[PodUid, IntArray], deficit: IntArray
) -> tuple[Candidate, ...]:
    """The moves without those that later ones made superfluous; the most expensive is checked first."""
    kept = list(chosen)
    for each in sorted(chosen, key=lambda move: eviction_cost(move.pod), reverse=True):
        rest = [amounts[other.pod.uid] for other in kept if other is not each]
        if rest and (np.sum(rest, axis=0) >= deficit).all():
            kept.remove(each)
    return tuple(kept)
