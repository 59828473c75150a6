"""Small plugins for the tests of the engine."""

from typing import Any, ClassVar

import numpy as np

from plimsoll.framework import (
    SUCCESS,
    Declares,
    NoArgs,
    NodeFilter,
    NodeScore,
    Nomination,
    PluginArgs,
    PreFilterResult,
    Reads,
    unschedulable,
)
from plimsoll.framework.status import Status
from plimsoll.model.columns.snapshot import PODS


class Fifo:
    name: ClassVar = "Fifo"
    args_model: ClassVar = NoArgs

    def __init__(self, args: Any) -> None:
        self.args = args

    def sort_key(self, pod: Any, timestamp: Any) -> Any:
        return timestamp


class Binds:
    name: ClassVar = "Binds"
    args_model: ClassVar = NoArgs

    def __init__(self, args: Any) -> None:
        self.args = args

    def bind(self, state: Any, pod: Any, node: Any) -> None:
        raise AssertionError("decisions never bind")


class Room:
    """Filter and score by free cpu; counts how many nodes it was asked about."""

    name: ClassVar = "Room"
    args_model: ClassVar = NoArgs
    declares: ClassVar = Declares(reads=Reads.ROW)

    def __init__(self, args: Any) -> None:
        self.asked = 0

    def filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        self.asked += len(snapshot)
        want = snapshot.requests_row(pod.template.requests)
        free = snapshot.allocatable - snapshot.requested
        return ((want > free) & (want > 0)).any(axis=1).astype(np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Status:
        return unschedulable("Insufficient room")

    def score(self, state: Any, pod: Any, snapshot: Any) -> Any:
        free = snapshot.allocatable[:, 0] - snapshot.requested[:, 0]
        return np.clip(free * 100 // np.maximum(snapshot.allocatable[:, 0], 1), 0, 100)


class PoolArgs(PluginArgs):
    pool: str = "blue"


class Pool(NodeFilter):
    """A per-node plugin with arguments."""

    name: ClassVar = "Pool"
    args_model: ClassVar = PoolArgs

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        return (
            SUCCESS
            if node.labels.get("pool", self.args.pool) == self.args.pool  # type: ignore[attr-defined] # known to exist in this test
            else unschedulable("wrong pool")
        )


class Pinned:
    """Narrows the search to the node that a label of the pod names."""

    name: ClassVar = "Pinned"
    args_model: ClassVar = NoArgs
    declares: ClassVar = Declares(reads=Reads.NODE)

    def __init__(self, args: Any) -> None:
        self.args = args

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return PreFilterResult(frozenset({pod.labels["pin"]})) if "pin" in pod.labels else SUCCESS


class Refuses(Pinned):
    """Refuses pods that say so before any node is asked."""

    name: ClassVar = "Refuses"

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return unschedulable("not today") if "refused" in pod.labels else SUCCESS


class Breaks(NodeScore):
    """Raises for pods that say so."""

    name: ClassVar = "Breaks"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        if pod.labels.get("break"):
            raise ZeroDivisionError("as asked")
        return 0


class Crowd:
    """Sixty points a pod on the node: too many on the second."""

    name: ClassVar = "Crowd"
    args_model: ClassVar = NoArgs
    declares: ClassVar = Declares(reads=Reads.ROW)

    def __init__(self, args: Any) -> None:
        self.args = args

    def score(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return (60 * snapshot.requested[:, PODS]).astype(np.int32)


class Ineligible:
    """A PostFilter plugin that may nominate, and does not for the pod at hand."""

    name: ClassVar = "Ineligible"
    args_model: ClassVar = NoArgs

    def __init__(self, args: Any) -> None:
        self.args = args

    def post_filter(self, state: Any, pod: Any, snapshot: Any, rejections: Any) -> Nomination:
        return Nomination(unschedulable("no help"))


class ReleasesDevices(Ineligible):
    """A PostFilter plugin that never nominates."""

    name: ClassVar = "ReleasesDevices"
    names_no_node: ClassVar = True


ALL: tuple[Any, ...] = (Fifo, Binds, Room, Pool, Pinned, Refuses, Breaks, Crowd, Ineligible, ReleasesDevices)
