"""Finds moves that make room for a resize in place that a kubelet has deferred.

A kubelet tries a Deferred resize again until its node has room for what the pod asks for. Schedulers count
that amount from the start: no other pod takes what is freed, so nothing is reserved. ::

    deficit = asked by all pods of the node - allocatable
              - requests of pods that are leaving
              - what deferred resizes of a lower priority ask for beyond what was granted

Units: as requests.
Source: KEP 1287; kubelet v1.36, ``pkg/kubelet/allocation`` (deferred resizes are tried by priority).
"""

import numpy as np

from plimsoll.framework import IntArray
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.proposals import Beneficiary, Bundle
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.requests import DEFERRED, INFEASIBLE, bounded, granted, pending_resize
from plimsoll.toolkit.descheduling.best_fit import BestFit
from plimsoll.toolkit.descheduling.room_search import moves_off


def resizing(context: StrategyContext) -> tuple[list[PodInfo], list[PodInfo]]:
    """The pods whose resizes are Deferred, and those whose resizes are Infeasible, sorted by name."""
    placed = (pod for node in context.nodes for pod in context.placed(node) if not pod.is_terminating)
    found = sorted((pod for pod in placed if pending_resize(pod.pod)), key=lambda pod: pod.key)
    deferred, infeasible = (
        [pod for pod in found if pending_resize(pod.pod) == why] for why in (DEFERRED, INFEASIBLE)
    )
    return deferred, infeasible


def awaited_row(pod: PodInfo, cluster: Cluster) -> IntArray:
    """What a pod whose resize waits asks for beyond what was granted, shape (R,)."""
    row: IntArray = cluster.requests_row(pod.requests) - cluster.requests_row(bounded(granted(pod.pod)))
    return row


def resize_deficit(pod: PodInfo, context: StrategyContext) -> IntArray:
    """What the node of a pod lacks so that its resize is granted, shape (R,); 0 where nothing is lacking."""
    snapshot, node = context.snapshot, context.node_of(pod)
    row = context.cluster.rows[node]
    asked = snapshot.requested[row].copy()
    for each in context.placed(node):
        if each.is_terminating:
            asked -= snapshot.requests_row(each.requests)
        elif each.priority < pod.priority and pending_resize(each.pod) == DEFERRED:
            asked -= awaited_row(each, context.cluster)
    lacking: IntArray = np.maximum(asked - snapshot.allocatable[row], 0)
    lacking[snapshot.requests_row(pod.requests) == 0] = 0
    return lacking


def room_for_resize(pod: PodInfo, context: StrategyContext, most: int) -> Bundle | None:
    """The moves of at most ``most`` neighbours after which the resize fits, or None."""
    node = context.node_of(pod)
    moves = moves_off(
        context.cluster.rows[node],
        resize_deficit(pod, context),
        context,
        BestFit(context),
        most=most,
        highest=pod.priority,
        reason=f"makes room on its node for the resize of pod {pod.key}",
        stays=pod.uid,
    )
    return Bundle(moves, Beneficiary(pod, node)) if moves else None
