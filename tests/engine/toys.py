"""Small plugins for the tests of the engine."""

from typing import ClassVar

import numpy as np

from plimsoll.framework import (
    SUCCESS,
    Narrowing,
    NoArgs,
    NodeFilter,
    NodeScore,
    PluginArgs,
    Reads,
    unschedulable,
)
from plimsoll.model.columns.snapshot import PODS


class Fifo:
    name: ClassVar = "Fifo"
    args_model: ClassVar = NoArgs

    def __init__(self, args):
        self.args = args

    def sort_key(self, pod, timestamp):
        return timestamp


class Binds:
    name: ClassVar = "Binds"
    args_model: ClassVar = NoArgs

    def __init__(self, args):
        self.args = args

    def bind(self, state, pod, node):
        raise AssertionError("decisions never bind")


class Room:
    """Filter and score by free cpu; counts how many nodes it was asked about."""

    name: ClassVar = "Room"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.ROW

    def __init__(self, args):
        self.asked = 0

    def filter(self, state, pod, snapshot):
        self.asked += len(snapshot)
        want = snapshot.requests_row(pod.template.requests)
        free = snapshot.allocatable - snapshot.requested
        return ((want > free) & (want > 0)).any(axis=1).astype(np.int64)

    def refusal(self, code, state, pod):
        return unschedulable("Insufficient room")

    def score(self, state, pod, snapshot):
        free = snapshot.allocatable[:, 0] - snapshot.requested[:, 0]
        return np.clip(free * 100 // np.maximum(snapshot.allocatable[:, 0], 1), 0, 100)


class PoolArgs(PluginArgs):
    pool: str = "blue"


class Pool(NodeFilter):
    """A per-node plugin with arguments."""

    name: ClassVar = "Pool"
    args_model: ClassVar = PoolArgs

    def filter_node(self, state, pod, node):
        return (
            SUCCESS
            if node.labels.get("pool", self.args.pool) == self.args.pool
            else unschedulable("wrong pool")
        )


class Pinned:
    """Narrows the search to the node that a label of the pod names."""

    name: ClassVar = "Pinned"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.NODE

    def __init__(self, args):
        self.args = args

    def pre_filter(self, state, pod, snapshot):
        return Narrowing(frozenset({pod.labels["pin"]})) if "pin" in pod.labels else SUCCESS


class Breaks(NodeScore):
    """Raises for pods that say so."""

    name: ClassVar = "Breaks"

    def score_node(self, state, pod, node):
        if pod.labels.get("break"):
            raise ZeroDivisionError("as asked")
        return 0


class Crowd:
    """Sixty points a pod on the node: too many on the second."""

    name: ClassVar = "Crowd"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.ROW

    def __init__(self, args):
        self.args = args

    def score(self, state, pod, snapshot):
        return (60 * snapshot.requested[:, PODS]).astype(np.int32)


ALL = (Fifo, Binds, Room, Pool, Pinned, Breaks, Crowd)
