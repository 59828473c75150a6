"""Asks filters of a pod's scheduler about nodes, for strategies that move pods off nodes that it refuses.

A strategy has no reading of its own of what such a filter reads: what the scheduler accepts is no violation,
and what it refuses is one.
"""

from typing import Any

from plimsoll.framework import (
    BoolArray,
    CycleState,
    FilterPlugin,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Snapshot,
)
from plimsoll.framework.descheduling.context import StrategyContext


def refused_nodes(pod: PodInfo, plugin: str, context: StrategyContext) -> BoolArray | None:
    """The nodes that a filter which reads nodes only refuses to pods like this one, shape (N,) by row.

    None if it refuses none, or no profile with that filter places the pod. Kept for the run, in which nodes
    do not change.
    """
    filters = context.prospects.filters(pod)
    asked = None if filters is None else filters.get(plugin)
    if asked is None:
        return None
    key = (refused_nodes, id(asked), pod.template)
    if key not in context.kept:
        context.kept[key] = _refused(asked, pod, context.snapshot)
    found: BoolArray | None = context.kept[key]
    return found


def is_refused(pod: PodInfo, node: str, plugin: str, context: StrategyContext) -> bool:
    """Whether the filter refuses the node to pods like this one."""
    refused = refused_nodes(pod, plugin, context)
    return refused is not None and bool(refused[context.cluster.rows[node]])


def _refused(plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot) -> BoolArray | None:
    state = CycleState()
    allowed: frozenset[str] | None = None
    if isinstance(plugin, PreFilterPlugin):
        answer: Any = plugin.pre_filter(state, pod, snapshot)
        if isinstance(answer, PreFilterResult):
            allowed = answer.nodes
        elif answer.is_rejected:
            allowed = frozenset()
        elif not answer.is_success:
            return None
    refused: BoolArray = plugin.filter(state, pod, snapshot) != 0
    if allowed is not None:
        for row, node in enumerate(snapshot.nodes):
            refused[row] |= node.name not in allowed
    return refused if refused.any() else None
