"""Topology domains: the nodes with one value of a label, in the order in which a group tries them.

A group is placed in one domain. Domains with room for all of its members go first, the smallest room first,
so that large domains stay whole for large groups; then those with room for the most members. Room is counted
by requests and the filters of each member by itself: there may be less, never more.

Formula::

    room[t, d] = sum over the feasible nodes n of domain d of min over r of floor(free[n, r] / wanted[t, r])
    most[d]    = sum over templates t of min(room[t, d], members of t)
    size[d]    = sum over templates t of room[t, d]

Units: pods.
Edges: a node without the label is in no domain. Resources that devices serve are not counted.
Source: kube-scheduler v1.36, ``topologyaware/topology_placement.go`` and the placement scores of
``podgrouppodscount`` and ``noderesources`` (the most allocated domain). Differs: it tries every domain before
it chooses.
Axis letters: N nodes, D domains, R resources.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from plimsoll.devices.book import DeviceBook
from plimsoll.framework.capabilities import Declares
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.extension_points import FilterPlugin, Reads
from plimsoll.framework.status import Status, unresolvable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import ABSENT, BoolArray, IdArray, IntArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo

OUTSIDE = "node(s) were outside the topology domain of the pod group"


class TopologyPlacement(FilterPlugin):
    """Confines the members of one group to one domain; exists during one attempt."""

    name: ClassVar = "TopologyPlacement"
    declares: ClassVar = Declares(reads=Reads.NODE)

    def __init__(self, key: str, value: str) -> None:
        self.key, self.value = key, value

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """1 where the label has another value or is absent, shape (N,)."""
        outside: IntArray = (
            snapshot.label_ids(self.key) != snapshot.label(self.key).find(self.value)
        ).astype(np.int64)
        return outside

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The only refusal: no victim brings the node into the domain."""
        return unresolvable(OUTSIDE)


class TopologyDomains:
    """The domains of one label for the members of one group.

    Args:
        key: The label.
        members: The members without a node.
        cluster: It is only read.
        feasible: The rows of the nodes that a member may take; all that others may make feasible are among
            them.
    """

    def __init__(
        self,
        key: str,
        members: Sequence[PodInfo],
        cluster: Cluster,
        feasible: Callable[[PodInfo], RowArray],
    ) -> None:
        snapshot = Snapshot(cluster)
        self.key, self._snapshot = key, snapshot
        self._ids: IdArray = snapshot.label_ids(key)
        self._values = snapshot.label(key).values
        count = len(self._values)
        self.exists: BoolArray = np.zeros(count, dtype=np.bool_)
        self.exists[self._ids[self._ids != ABSENT]] = True
        self.most: IntArray = np.zeros(count, dtype=np.int64)
        self.size: IntArray = np.zeros(count, dtype=np.int64)
        alike: dict[object, list[PodInfo]] = {}
        for pod in members:
            alike.setdefault(pod.template, []).append(pod)
        for pods in alike.values():
            room = self._room(pods[0], feasible(pods[0]))
            self.most += np.minimum(room, len(pods))
            self.size += room

    def _room(self, pod: PodInfo, rows: RowArray) -> IntArray:
        """Number of pods like this one that each domain has room for, shape (D,)."""
        snapshot, ids = self._snapshot, self._ids[rows]
        rows, ids = rows[ids != ABSENT], ids[ids != ABSENT]
        book = snapshot.objects.known_ledger(DeviceBook)
        own = {
            name: amount
            for name, amount in pod.requests.items()
            if book is None or book.class_of_resource(name) is None
        }
        wanted = snapshot.requests_row(own)
        axes = np.flatnonzero(wanted > 0)
        free = snapshot.allocatable[rows][:, axes] - snapshot.requested[rows][:, axes]
        room = (free // wanted[axes]).min(axis=1).clip(0)
        found: IntArray = np.zeros(len(self._values), dtype=np.int64)
        np.add.at(found, ids, room)
        return found

    def has(self, value: str) -> bool:
        """Whether a node is in the domain."""
        return value in self._values

    def of(self, rows: Sequence[int]) -> list[str] | None:
        """The domains of these nodes, once each; None if one of them is in no domain."""
        ids = dict.fromkeys(self._ids[list(rows)].tolist())
        return None if ABSENT in ids else [self._values[each] for each in ids]

    def by_fit(self, members: int, needed: int) -> list[str]:
        """The domains that may have room for ``needed`` of so many members, in the order of trial.

        At least one, with the most room, as long as any exists.
        """
        most, size = self.most, self.size
        known = np.flatnonzero(self.exists).tolist()
        known.sort(key=lambda each: (-min(int(most[each]), members), int(size[each]), self._values[each]))
        return [self._values[each] for each in known if most[each] >= needed] or [
            self._values[each] for each in known[:1]
        ]

    def by_room(self) -> list[str]:
        """All domains, the most room first."""
        known = np.flatnonzero(self.exists).tolist()
        known.sort(key=lambda each: (-int(self.most[each]), -int(self.size[each]), self._values[each]))
        return [self._values[each] for each in known]
