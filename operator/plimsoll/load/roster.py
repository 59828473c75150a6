"""Roster: the placed pods as columns for the keeper, brought up when pods come or leave.

Axis letters: P placed pods, in the order of the book's shares.
"""

from collections.abc import Sequence

import numpy as np

from plimsoll.load.expectations import limits_of, workload_of
from plimsoll.load.habits import Habits
from plimsoll.load.levels import Levels
from plimsoll.load.readings import FloatArray
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.pod_info import PodInfo


class Roster:
    """The placed pods.

    Attributes:
        pods: Each as it was when it came.
        places: Shape (P,): the place of its series of readings; -1: none.
        started: Shape (P,): since when it has been running, or known.
        limits: Shape (P, 2).
        workloads: Shape (P,): the place of its workload's habit; -1: none.
        subtracted: Shape (P, 2): what of it is taken to be in its node's reading although it is not measured.
    """

    def __init__(self) -> None:
        self.pods: list[PodInfo] = []
        self.places: RowArray = np.zeros(0, dtype=np.intp)
        self.started: FloatArray = np.zeros(0)
        self.limits: FloatArray = np.zeros((0, 2))
        self.workloads: RowArray = np.zeros(0, dtype=np.intp)
        self.subtracted: FloatArray = np.zeros((0, 2))

    def bring_up(self, stay: RowArray, came: Sequence[PodInfo], habits: Habits, now: float) -> None:
        """Pods came and left: those at ``stay`` remain, in that order."""
        if len(stay) != len(self.pods):
            self.pods = [self.pods[place] for place in stay.tolist()]
            self.places, self.started = self.places[stay], self.started[stay]
            self.limits, self.workloads = self.limits[stay], self.workloads[stay]
            self.subtracted = self.subtracted[stay]
        if not came:
            return
        self.pods = [*self.pods, *came]
        started = [_started(pod, now) for pod in came]
        limits = np.array([limits_of(pod.template) for pod in came], dtype=np.float64)
        workloads = [
            -1 if (workload := workload_of(pod.template)) is None else habits.place(workload) for pod in came
        ]
        none = np.full(len(came), -1, dtype=np.intp)
        self.places = np.concatenate([self.places, none])
        self.started = np.concatenate([self.started, started])
        self.limits = np.concatenate([self.limits, limits])
        self.workloads = np.concatenate([self.workloads, np.array(workloads, dtype=np.intp)])
        self.subtracted = np.concatenate([self.subtracted, np.zeros((len(came), 2))])

    def find_series(self, levels: Levels) -> None:
        """Look for the readings of those that have none yet."""
        for at in np.flatnonzero(self.places < 0).tolist():
            pod = self.pods[at]
            place = levels.places.get(pod.key)
            if place is not None:
                self.places[at] = place
                levels.begin(place, float(self.started[at]))

    def place_again(self, levels: Levels, habits: Habits) -> None:
        """The places of series and habits have changed."""
        self.places = np.array([levels.places.get(pod.key, -1) for pod in self.pods], dtype=np.intp)
        workloads = (workload_of(pod.template) for pod in self.pods)
        self.workloads = np.array([habits.places.get(each, -1) for each in workloads], dtype=np.intp)


def _started(pod: PodInfo, now: float) -> float:
    start = pod.pod.status.start_time
    return now if start is None else start.timestamp()
