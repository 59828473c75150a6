"""Runs an attempt with HTTP extenders as a generator that yields requests and receives their responses.

::

    nominated node ─▶ filter ─▶ [extenders: filter] ─▶ score ─▶ [extenders: prioritize] ─▶ choose
                        └▶ no node is feasible: PostFilter ─▶ [extenders: preempt] ─▶ nominate

Steps in brackets yield a tuple of requests that may be sent simultaneously, and receive the tuple of their
responses. The cluster changes while an extender responds, so no result from before a yield is used after it:
the filters run again, and only a node that passed the filters *now* and the extenders *then* is chosen.
Between the last response and the decision only memory is touched.

:mod:`plimsoll.engine.attempt` is the attempt without extenders.

Source: kube-scheduler v1.36, ``schedule_one.go``. Differs: other pods are scheduled while extenders respond,
so the filters run a second time (docs/adr/0010).
"""

from collections.abc import Generator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from plimsoll.engine.attempt import without_nodes
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.extender import Extender
from plimsoll.engine.scheduler import Filtered, ProfileScheduler
from plimsoll.framework import PluginError, PodInfo
from plimsoll.model.columns.columns import RowArray
from plimsoll.scheduling.extenders.asks import Failure, NodeDocuments
from plimsoll.scheduling.extenders.consultation import Answers, Asks, Consultation
from plimsoll.scheduling.extenders.wire import FilterAnswer

#: Rounds of an attempt; a round repeats when other pods took its nodes while extenders responded.
ROUNDS = 3

Steps: TypeAlias = Generator[Asks, Answers, Decision]
"""An attempt: asks out, their answers in, the decision returned."""


def schedule_steps(
    scheduler: ProfileScheduler, pod: PodInfo, extenders: Sequence[Extender], documents: NodeDocuments
) -> Steps:
    """Choose a node for a pod with interested extenders; never raises because of a plugin.

    ``extenders`` are the interested ones, the ignorable ones last; at least one.
    """
    cluster = scheduler.cluster
    if not len(cluster):
        return without_nodes(pod)
    extended = Consultation(cluster, extenders, documents)
    try:
        for _ in range(ROUNDS):
            decision = yield from _round(scheduler, pod, extended)
            if decision is not None:
                return decision
    except PluginError as exc:
        return scheduler.broken(pod, exc)
    why = f"the nodes were taken by others {ROUNDS} times while extenders were asked; trying again"
    return Decision(pod, AttemptOutcome.ERROR, message=why)


def _round(
    scheduler: ProfileScheduler, pod: PodInfo, extended: Consultation
) -> Generator[Asks, Answers, Decision | None]:
    """One decision, or None when the cluster changed too much while extenders responded."""
    row, cache = scheduler.nominated_row(pod), None
    if row is not None:
        cache = scheduler.refreshed(pod)
        if scheduler.holds(scheduler.filtered(pod, cache, only=row), pod, row):
            node = scheduler.cluster.nodes[row].name
            answer = yield from extended.filter((node,))
            if not isinstance(answer, Failure) and node in answer.passed:
                return _still_placed(scheduler, pod, node)
            cache = None
    found = scheduler.filtered(pod, cache)
    if not len(found.rows):
        return (yield from _spared(scheduler, extended, scheduler.reject(pod, found)))
    asked = scheduler.names(found.rows)
    answer = yield from extended.filter(asked)
    if isinstance(answer, Failure):
        return Decision(pod, AttemptOutcome.ERROR, message=answer.message)
    found, rows = _passed(scheduler, pod, answer)
    if not len(rows):
        names = scheduler.names(found.rows)
        if not set(names) <= set(asked):
            return None  # a node is feasible that was not sent to the extenders
        decision = scheduler.reject(pod, found, extended.refused(found.rows, answer))
        return (yield from _spared(scheduler, extended, decision, names))
    points: Mapping[str, int] = {}
    if len(rows) > 1:
        points = yield from extended.prioritize(scheduler.names(rows))
        found, rows = _passed(scheduler, pod, answer)
    if not len(rows):
        return None
    best, total = _best(scheduler, pod, found, rows, points)
    return scheduler.placed(pod, found, best, total, len(rows))


def _best(
    scheduler: ProfileScheduler, pod: PodInfo, found: Filtered, rows: RowArray, points: Mapping[str, int]
) -> tuple[Sequence[int] | RowArray, int | None]:
    """The rows with the highest total, and that total, including the extenders' scores by node name."""
    if not points:
        return found.cache.best(pod, rows)
    own = found.cache.totals(pod, rows)
    # Python's integers do not overflow, however large an extender's score times its weight is.
    totals = [
        int(total) + points.get(name, 0) for name, total in zip(scheduler.names(rows), own, strict=True)
    ]
    highest = max(totals)
    return rows[[position for position, total in enumerate(totals) if total == highest]], highest


def _still_placed(scheduler: ProfileScheduler, pod: PodInfo, node: str) -> Decision | None:
    """Place the pod on its nominated node, which the extenders passed, if the filters still pass it."""
    row = scheduler.cluster.rows.get(node)
    if row is None:
        return None
    found = scheduler.filtered(pod, only=row)
    return scheduler.placed(pod, found, np.array([row])) if scheduler.holds(found, pod, row) else None


def _passed(scheduler: ProfileScheduler, pod: PodInfo, answer: FilterAnswer) -> tuple[Filtered, RowArray]:
    """The filters' present results, and the feasible rows that the extenders passed."""
    found = scheduler.filtered(pod)
    nodes = scheduler.cluster.nodes
    rows = [row for row in found.rows.tolist() if nodes[row].name in answer.passed]
    return found, np.array(rows, dtype=np.intp)


def _spared(
    scheduler: ProfileScheduler, extended: Consultation, decision: Decision, refused: Sequence[str] = ()
) -> Generator[Asks, Answers, Decision | None]:
    """Let extenders reduce candidates and victims; None when a node that they did not reject is feasible."""
    nomination = decision.nomination
    if nomination is None or not extended.preempts(nomination):
        return decision
    answer = yield from extended.preempt(decision.pod, nomination)
    if not isinstance(answer, Failure):
        again = scheduler.filtered(decision.pod)
        if set(scheduler.names(again.rows)) - set(refused):
            return None  # a node is feasible now: no victim is needed
    return extended.nominated(decision, answer, scheduler.nominator.by_node)
