"""Runs one scheduling attempt in order: filter, score, choose, or PostFilter.

:mod:`plimsoll.engine.scheduler` has the steps themselves, and the choice among the best nodes. Attempts with
HTTP extenders repeat some of them between requests (:mod:`plimsoll.scheduling.extenders.steps`).

The decision changes nothing: the caller assumes and binds the pod, or writes why not. The same cluster, pod
and tie-break yield the same decision.

Source: kube-scheduler v1.36, ``schedule_one.go``. Differs: all feasible nodes are scored, none sampled.
"""

import numpy as np

from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Code, Diagnosis, Nomination, PluginError, PodInfo, Status
from plimsoll.model.columns.columns import BoolArray


def schedule(scheduler: ProfileScheduler, pod: PodInfo, home: BoolArray | None = None) -> Decision:
    """Choose a node for a pod without interested extenders; never raises because of a plugin.

    ``home``, shape (N,), marks nodes that are preferred to all others; None for no preference.
    """
    if not len(scheduler.cluster):
        return without_nodes(pod)
    try:
        row, cache = scheduler.nominated_row(pod), None
        if row is not None:
            # Most pods fit on their nominated node: nominations to other nodes do not matter yet.
            cache = scheduler.refreshed(pod)
            found = scheduler.filtered(pod, cache, only=row)
            if scheduler.holds(found, pod, row):
                return scheduler.placed(pod, found, np.array([row]))
        found = scheduler.filtered(pod, cache)
        if not len(found.rows):
            return scheduler.reject(pod, found)
        rows = found.rows if home is None else found.rows[home[found.rows]]
        if not len(rows):
            rows = found.rows
        best, total = found.cache.best(pod, rows)
        return scheduler.placed(pod, found, best, total, len(found.rows))
    except PluginError as exc:
        return scheduler.broken(pod, exc)


def without_nodes(pod: PodInfo) -> Decision:
    """The decision in a cluster that has no node."""
    return Decision(
        pod,
        AttemptOutcome.UNSCHEDULABLE,
        message="no nodes available to schedule pods",
        diagnosis=Diagnosis(0),
        nomination=Nomination(Status(Code.UNRESOLVABLE), node=""),
    )
