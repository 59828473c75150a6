"""Victims of reclaim: pods of queues above their deserved share.

Greedy, twice: the least important first, which disturbs little; where that fails because a
queue may give up no more, the largest first. Then those whose going was not needed are put back.

Source: kube-batch, action reclaim. Differs: within one node, and only if the pod fits afterwards.
"""

from collections.abc import Callable, Sequence

from plimsoll.framework.extension_points import NodeTrial
from plimsoll.model.columns.pods_by_importance import started
from plimsoll.model.columns.queue_usage import added
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from plimsoll.toolkit.scheduling.fair_shares import EPSILON, Division, dominant_share


def victims_to_reclaim(
    candidates: Sequence[PodInfo],
    queue_of: Callable[[PodInfo], str],
    division: Division,
    budgets: DisruptionBudgets,
    trial: NodeTrial,
) -> tuple[PodInfo, ...]:
    """The victims on one node, most important first; empty when nothing helps.

    Candidates may go, but for their budgets and for what their queues deserve. The caller closes the trial.
    """
    orders = (
        sorted(candidates, key=lambda each: (each.priority, -started(each))),
        sorted(candidates, key=lambda each: -dominant_share(each.requests, division.total)),
    )
    for order in orders:
        victims = _fewest_needed(order, queue_of, division, budgets, trial)
        if victims:
            return victims
    return ()


def _fewest_needed(
    order: Sequence[PodInfo],
    queue_of: Callable[[PodInfo], str],
    division: Division,
    budgets: DisruptionBudgets,
    trial: NodeTrial,
) -> tuple[PodInfo, ...]:
    left = {queue: dict(amounts) for queue, amounts in division.usage.items()}
    victims: list[PodInfo] = []
    for each, violates in zip(order, budgets.violating(order), strict=True):
        queue = queue_of(each)
        added(left[queue], each.requests, -1)
        if violates or dominant_share(left[queue], division.total) < division.deserved(queue) - EPSILON:
            added(left[queue], each.requests)
            continue
        trial.remove(each)
        victims.append(each)
        if trial.status().is_success:
            return _without_needless(victims, trial)
    for each in victims:
        trial.add(each)
    return ()


def _without_needless(victims: Sequence[PodInfo], trial: NodeTrial) -> tuple[PodInfo, ...]:
    """The last one was needed; of the others the most important are put back first, if they may stay."""
    needed = [victims[-1]]
    for each in sorted(victims[:-1], key=lambda each: (-each.priority, started(each))):
        trial.add(each)
        if not trial.status().is_success:
            trial.remove(each)
            needed.append(each)
    return tuple(sorted(needed, key=lambda each: (-each.priority, started(each))))
