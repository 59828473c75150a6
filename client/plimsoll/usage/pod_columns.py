"""Keeps the placed pods as columns for the keeper, updated when pods are added or removed.

Axis letters: P placed pods, in the order of the book's shares.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plimsoll.load.expectations import limits_of, workload_of
from plimsoll.load.readings import FloatArray
from plimsoll.load.shares import Settled
from plimsoll.load.usage_histograms import UsageHistograms
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.usage.smoothed_readings import SmoothedReadings


class PodColumns:
    """The placed pods.

    Attributes:
        pods: Each as of when it was added.
        places: Shape (P,): the index of its series of readings; -1: none.
        started: Shape (P,): when it began to run, or was first known.
        limits: Shape (P, 2).
        workloads: Shape (P,): the index of its workload's history; -1: none.
        rows: Shape (P,): its node's row.
        subtracted: Shape (P, 2): the unmeasured use of it that its node's reading is taken to include.
    """

    def __init__(self) -> None:
        self.pods: list[PodInfo] = []
        self.places: RowArray = np.zeros(0, dtype=np.intp)
        self.started: FloatArray = np.zeros(0)
        self.limits: FloatArray = np.zeros((0, 2))
        self.workloads: RowArray = np.zeros(0, dtype=np.intp)
        self.rows: RowArray = np.zeros(0, dtype=np.intp)
        self.subtracted: FloatArray = np.zeros((0, 2))
        self._epoch = -1

    def bring_up(self, settled: Settled, cluster: Cluster, habits: UsageHistograms, now: float) -> None:
        """Update after pods were added or removed, or nodes changed their rows."""
        sources, uids = settled.sources, settled.shares.uids
        came = np.flatnonzero(sources < 0)
        if len(came) or len(sources) != len(self.pods):
            # An added pod reads as the last one until its own columns are written.
            self.pods = [
                self.pods[source] if source >= 0 else cluster.pods[uid]
                for source, uid in zip(sources.tolist(), uids, strict=True)
            ]
            new = [self.pods[place] for place in came.tolist()]
            self.places = _written(self.places, sources, came, np.full(len(new), -1))
            self.subtracted = _written(self.subtracted, sources, came, np.zeros((len(new), 2)))
            self.started = _written(self.started, sources, came, [_started(pod, now) for pod in new])
            limits = np.array([limits_of(pod.template) for pod in new], dtype=np.float64).reshape(-1, 2)
            self.limits = _written(self.limits, sources, came, limits)
            workloads = [
                -1 if (key := workload_of(pod.template)) is None else habits.place(key) for pod in new
            ]
            self.workloads = _written(self.workloads, sources, came, workloads)
            rows = [-1 if (row := cluster.row_of_pod(pod.uid)) is None else row for pod in new]
            self.rows = _written(self.rows, sources, came, rows)
        if cluster.epoch != self._epoch:
            self.rows = np.array([cluster.row_of_pod(uid) for uid in uids], dtype=np.intp)
            self._epoch = cluster.epoch

    def find_series(self, levels: SmoothedReadings) -> None:
        """Find the readings of pods that have none yet."""
        for at in np.flatnonzero(self.places < 0).tolist():
            pod = self.pods[at]
            place = levels.places.get(pod.key)
            if place is not None:
                self.places[at] = place
                levels.begin(place, float(self.started[at]))

    def place_again(self, levels: SmoothedReadings, habits: UsageHistograms) -> None:
        """Update the indexes of series and histories after these have changed."""
        self.places = np.array([levels.places.get(pod.key, -1) for pod in self.pods], dtype=np.intp)
        workloads = (workload_of(pod.template) for pod in self.pods)
        self.workloads = np.array([habits.places.get(each, -1) for each in workloads], dtype=np.intp)


def _started(pod: PodInfo, now: float) -> float:
    start = pod.pod.status.start_time
    return now if start is None else start.timestamp()


def _written(column: NDArray[Any], sources: RowArray, came: RowArray, values: ArrayLike) -> NDArray[Any]:
    """The column in its new order, with the values of added pods."""
    found = column[sources] if len(column) else np.zeros((len(sources), *column.shape[1:]), column.dtype)
    found[came] = values
    return found
