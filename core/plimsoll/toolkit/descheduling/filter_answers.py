"""Asks filters of a pod's scheduler about nodes, for strategies that move pods off nodes that it refuses.

A strategy has no reading of its own of what such a filter reads: what the scheduler accepts is no violation,
and what it refuses is one.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from plimsoll.framework import (
    BoolArray,
    CycleState,
    FilterPlugin,
    Plugin,
    PluginError,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Snapshot,
)
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.plugin_answers import checked, judged, pre_filter_answer

PluginT = TypeVar("PluginT", bound=Plugin)
AnswerT = TypeVar("AnswerT")


def answer_of(
    pod: PodInfo,
    plugin: str,
    kind: Callable[[FilterPlugin], PluginT | None],
    question: Callable[[PluginT], AnswerT],
    context: StrategyContext,
) -> AnswerT | None:
    """What a filter plugin of the profile that places the pod answers; None if the profile has none.

    Also None from a plugin that fails: it is named among the failures of the plan, and not asked again in it.
    ``kind`` returns the plugin if it can be asked.
    """
    filters = context.prospects.filters(pod)
    found = None if filters is None else filters.get(plugin)
    known = None if found is None else kind(found)
    if known is None or (answer_of, id(found)) in context.kept:
        return None
    try:
        return judged(plugin, "filter", question, known)
    except PluginError as exc:
        context.kept[answer_of, id(found)] = exc
        context.failures.append(exc)
        return None


def refused_nodes(pod: PodInfo, plugin: str, context: StrategyContext) -> BoolArray | None:
    """The nodes that a filter which reads nodes only refuses to pods like this one, shape (N,) by row.

    None if it refuses none, or no profile with that filter places the pod. Kept for the run, in which nodes
    do not change.
    """
    asked = _filter_of(pod, plugin, context)
    if asked is None:
        return None
    key = (refused_nodes, id(asked), pod.template)
    if key not in context.kept:
        context.kept[key] = _refused(asked, pod, context.snapshot, context)
    found: BoolArray | None = context.kept[key]
    return found


def is_refused(pod: PodInfo, node: str, plugin: str, context: StrategyContext) -> bool:
    """Whether the filter refuses the node to pods like this one.

    Only nodes with pods of its template are looked at, and kept: each pod of a DaemonSet has a template of
    its own, so all nodes for each of them would be the square of their number.
    """
    asked = _filter_of(pod, plugin, context)
    if asked is None:
        return False
    row = context.cluster.rows[node]
    known: dict[int, bool] = context.kept.setdefault((is_refused, id(asked), pod.template), {})
    if row not in known:
        like_it = map(context.cluster.row_of_pod, context.pods_of(pod.namespace, pod.template))
        rows = list({row, *(each for each in like_it if each is not None and each not in known)})
        refused = _refused(asked, pod, context.snapshot.at(np.array(rows, dtype=np.intp)), context)
        known.update(
            dict.fromkeys(rows, False) if refused is None else zip(rows, refused.tolist(), strict=True)
        )
    return known[row]


def _filter_of(pod: PodInfo, plugin: str, context: StrategyContext) -> FilterPlugin | None:
    filters = context.prospects.filters(pod)
    return None if filters is None else filters.get(plugin)


def _refused(
    plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot, context: StrategyContext
) -> BoolArray | None:
    """The nodes of a snapshot that it refuses, shape (N,); None if it refuses none, or fails."""
    return answer_of(pod, plugin.name, lambda each: each, lambda each: _answer(each, pod, snapshot), context)


def _answer(plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot) -> BoolArray | None:
    state = CycleState()
    allowed: frozenset[str] | None = None
    if isinstance(plugin, PreFilterPlugin):
        answer = judged(plugin.name, "preFilter", plugin.pre_filter, state, pod, snapshot)
        answer = pre_filter_answer(plugin.name, answer)
        if isinstance(answer, PreFilterResult):
            allowed = answer.nodes
        elif answer.is_rejected:
            allowed = frozenset()
        elif not answer.is_success:
            return None
    codes = judged(plugin.name, "filter", plugin.filter, state, pod, snapshot)
    refused: BoolArray = checked(codes, len(snapshot), plugin.name, "filter") != 0
    if allowed is not None:
        refused |= ~np.isin(snapshot.rows, [row for row in map(snapshot.row_of, allowed) if row is not None])
    return refused if refused.any() else None
