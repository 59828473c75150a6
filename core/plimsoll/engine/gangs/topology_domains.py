"""Orders topology domains, the nodes with one value of a label: a group tries or fills them in this order.

A group is placed in one domain. Domains with room for all of its members go first, the smallest room first,
so that large domains stay whole for large groups, and of equal rooms the fullest domain; then those with room
for the most members. Room is counted by requests and the filters of each member by itself: there may be less,
never more.

A group that only prefers to be in one domain, and fits in none, fills few of them: each time the one that
takes the most of the members that are left, and for the last of them the smallest one that takes them all.

Formula::

    room[t, d] = sum over the feasible nodes n of domain d of min over r of floor(free[n, r] / wanted[t, r])
    most[d]    = sum over templates t of min(room[t, d], members of t)
    size[d]    = sum over templates t of room[t, d]
    parts[d]   = the fewest domains of a narrower label within d whose most add up to all members

Units: pods.
Edges: a node without the label is in no domain. Devices limit the room by number alone.
Source: kube-scheduler v1.36, ``topologyaware/topology_placement.go`` and the placement scores of
``podgrouppodscount`` and ``noderesources`` (the most allocated domain). Differs: it tries every domain before
it chooses.
Axis letters: N nodes, D domains, R resources.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import ClassVar

import numpy as np

from plimsoll.devices.device_places import device_places, own_requests
from plimsoll.framework.capabilities import Declares
from plimsoll.framework.cycle_state import CycleState
from plimsoll.framework.extension_points import FilterPlugin, Reads
from plimsoll.framework.status import Status, unresolvable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import ABSENT, BoolArray, IdArray, IntArray, RowArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.counted import counted
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate

OUTSIDE = "node(s) were outside the topology domain of the pod group"


class TopologyPlacement(FilterPlugin):
    """Confines the members of one group to one domain, or to one in another; exists during one attempt.

    One filter for all domains, because results are kept under the name of the filter.
    """

    name: ClassVar = "TopologyPlacement"
    declares: ClassVar = Declares(reads=Reads.NODE, only_constraints=True)

    def __init__(self, *domains: tuple[str, str]) -> None:
        self.domains = domains

    def inside(self, snapshot: Snapshot) -> BoolArray:
        """Which nodes are in all domains, shape (N,)."""
        found: BoolArray = np.ones(len(snapshot), dtype=np.bool_)
        for key, value in self.domains:
            found &= snapshot.label_ids(key) == snapshot.label(key).find(value)
        return found

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """1 where the label has another value or is absent, shape (N,)."""
        outside: IntArray = (~self.inside(snapshot)).astype(np.int64)
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
        self.values = snapshot.label(key).values
        count = len(self.values)
        self.exists: BoolArray = np.zeros(count, dtype=np.bool_)
        self.exists[self._ids[self._ids != ABSENT]] = True
        self.most: IntArray = np.zeros(count, dtype=np.int64)
        self.size: IntArray = np.zeros(count, dtype=np.int64)
        self.rooms: dict[Hashable, IntArray] = {}
        self._wanted: list[IntArray] = []  #: by shape
        self._rows: dict[str, RowArray] = {}  #: of the nodes of domains that were asked about
        alike: dict[Hashable, list[PodInfo]] = {}
        for pod in members:
            alike.setdefault(shape_of(pod), []).append(pod)
        for shape, pods in alike.items():
            room = self.rooms[shape] = self._room(pods[0], feasible(pods[0]))
            self.most += np.minimum(room, len(pods))
            self.size += room

    def _room(self, pod: PodInfo, rows: RowArray) -> IntArray:
        """Number of pods like this one that each domain has room for, shape (D,)."""
        snapshot, ids = self._snapshot, self._ids[rows]
        rows, ids = rows[ids != ABSENT], ids[ids != ABSENT]
        (wanted,) = own_requests([pod], snapshot)
        self._wanted.append(wanted)
        axes = np.flatnonzero(wanted > 0)
        free = snapshot.allocatable[rows][:, axes] - snapshot.requested[rows][:, axes]
        room = (free // wanted[axes]).min(axis=1).clip(0)
        places = device_places(pod, snapshot, rows)
        room = room if places is None else np.minimum(room, np.floor(places)).astype(np.int64)
        found: IntArray = np.zeros(len(self.values), dtype=np.int64)
        np.add.at(found, ids, room)
        return found

    def has(self, value: str) -> bool:
        """Whether a node is in the domain."""
        return value in self.values

    def rows_in(self, value: str) -> RowArray:
        """The rows of the nodes in a domain, ascending."""
        inside = self._rows.get(value)
        if inside is None:
            number = self._snapshot.label(self.key).find(value)
            inside = self._rows[value] = np.flatnonzero(self._ids == number)
        return inside

    def of(self, rows: Sequence[int]) -> list[str] | None:
        """The domains of these nodes, once each; None if one of them is in no domain."""
        ids = dict.fromkeys(self._ids[list(rows)].tolist())
        return None if ABSENT in ids else [self.values[each] for each in ids]

    def by_fit(self, members: int, needed: int, within: "TopologyDomains | None" = None) -> list[str]:
        """The domains that may have room for ``needed`` of so many members, in the order of trial.

        At least one, with the most room, as long as any exists.

        Args:
            members: The number of members.
            needed: Number of members that must fit.
            within: The domains of a narrower label: those go first in which the fewest of these suffice.
        """
        most, size = self.most, self.size
        parts = np.zeros(len(size), dtype=np.int64) if within is None else self._parts(within, members)
        known = np.flatnonzero(self.exists).tolist()

        def fit(each: int) -> tuple[int, ...]:
            return -min(int(most[each]), members), int(parts[each]), int(size[each])

        if len({fit(each) for each in known}) < len(known):
            empty = self._when_empty()
            known.sort(key=lambda each: (*fit(each), -int(empty[each]), self.values[each]))
        else:
            known.sort(key=fit)
        return [self.values[each] for each in known if most[each] >= needed] or [
            self.values[each] for each in known[:1]
        ]

    def _when_empty(self) -> IntArray:
        """Number of members that each domain would hold without any pod, shape (D,)."""
        found: IntArray = np.zeros(len(self.values), dtype=np.int64)
        rows = np.flatnonzero(self._ids != ABSENT)
        for wanted in self._wanted:
            axes = np.flatnonzero(wanted > 0)
            rooms = (self._snapshot.allocatable[rows][:, axes] // wanted[axes]).min(axis=1)
            np.add.at(found, self._ids[rows], rooms)
        return found

    def _parts(self, narrower: "TopologyDomains", members: int) -> IntArray:
        """The fewest narrower domains in each domain that take all members by count, shape (D,)."""
        ids, inner = self._ids, narrower._ids  # noqa: SLF001 - of the same class
        is_in_both = (ids != ABSENT) & (inner != ABSENT)
        pairs = np.unique(np.stack((ids[is_in_both], inner[is_in_both]), axis=1), axis=0)
        rooms: dict[int, list[int]] = {}
        for outer, part in pairs.tolist():
            rooms.setdefault(outer, []).append(int(narrower.most[part]))
        found: IntArray = np.zeros(len(self.values), dtype=np.int64)
        for outer in np.flatnonzero(self.exists).tolist():
            sums = np.cumsum(sorted(rooms.get(outer, ()), reverse=True))
            found[outer] = int(np.searchsorted(sums, members)) + 1
        return found

    def holding(self, members: int, within: "TopologyDomains | None" = None) -> list[str]:
        """The domains that may have room for all of so many members, in the order of trial."""
        return self.by_fit(members, members, within) if (self.most >= members).any() else []

    def by_room(self) -> list[str]:
        """All domains, the most room first."""
        known = np.flatnonzero(self.exists).tolist()
        known.sort(key=lambda each: (-int(self.most[each]), -int(self.size[each]), self.values[each]))
        return [self.values[each] for each in known]


def never_fits(members: Sequence[PodInfo], cluster: Cluster, needed: int, key: str = "") -> str:
    """Why so many members fit on the present nodes not even if these were empty, as a clause; "" if they may.

    Args:
        members: The members without a node.
        cluster: It is only read.
        needed: Number of members that must fit.
        key: The node label whose value all members share, "" for none.
    """
    snapshot = Snapshot(cluster)
    ids: IdArray = snapshot.label_ids(key) if key else np.zeros(len(cluster), dtype=np.intp)
    values: Sequence[str] = snapshot.label(key).values if key else ("",)
    most: IntArray = np.zeros(len(values), dtype=np.int64)
    rows = np.flatnonzero(ids != ABSENT)
    if len(members) < needed or not len(rows):
        return ""
    counts = Counter(map(shape_of, members))
    for shape, pod in {shape_of(each): each for each in members}.items():
        (wanted,) = own_requests([pod], snapshot)
        axes = np.flatnonzero(wanted > 0)
        room: IntArray = np.zeros(len(values), dtype=np.int64)
        np.add.at(room, ids[rows], (snapshot.allocatable[rows][:, axes] // wanted[axes]).min(axis=1))
        most += np.minimum(room, counts[shape])
    largest = int(most.argmax())
    if most[largest] >= needed:
        return ""
    place = f"the largest {key}, {values[largest]}," if key else "the nodes together"
    verb, them = ("holds", "it is") if key else ("hold", "they are")
    asked = sorted({_asked(each) for each in members})
    each_of = f" of {asked[0]} each" if len(asked) == 1 else ""
    who = counted(needed, "member")
    return f"{who}{each_of} must fit, and {place} {verb} {most[largest]} when {them} empty"


def _asked(pod: PodInfo) -> str:
    """The requests of a pod, for people: extended resources if it has any, else cpu."""
    devices = {name: amount for name, amount in pod.requests.items() if "/" in name}
    if devices:
        return " and ".join(f"{amount} {name}" for name, amount in sorted(devices.items()))
    return f"{pod.requests.get('cpu', 0)}m cpu"


class Filling:
    """The few domains that a group fills one after the other.

    Args:
        domains: The domains, as they were before the first member was placed.
        members: The members, in the order in which they are placed.
        begun: Domains that have members already.
    """

    def __init__(self, domains: TopologyDomains, members: Sequence[PodInfo], begun: Iterable[str]) -> None:
        self.domains, self.begun = domains, [each for each in begun if domains.has(each)]
        self._ids = {value: number for number, value in enumerate(domains.values)}
        self._left = Counter(map(shape_of, members))
        self._full: dict[Hashable, set[str]] = {}  #: domains that refused a shape

    def open_to(self, pod: PodInfo) -> list[str]:
        """The domains that are in use and have not refused a pod of this shape."""
        full = self._full.get(shape_of(pod))
        return [each for each in self.begun if each not in full] if full else [*self.begun]

    def refuses(self, pod: PodInfo, value: str) -> None:
        """Note that a domain refused a pod; with terms about other pods the next one may do."""
        if not looks_at_pods(pod):
            self._full.setdefault(shape_of(pod), set()).add(value)

    def begin(self, pod: PodInfo) -> str:
        """Take a further domain into use for a pod and those after it; "" if none has room by count."""
        values, rooms = self.domains.values, self.domains.rooms
        most: IntArray = np.zeros(len(values), dtype=np.int64)
        size = most.copy()
        for shape, count in self._left.items():
            most += np.minimum(rooms[shape], count)
            size += rooms[shape]
        shape = shape_of(pod)
        is_free = rooms[shape] > 0
        is_free[[self._ids[each] for each in (*self.begun, *self._full.get(shape, ()))]] = False
        free = np.flatnonzero(is_free)
        if not len(free):
            return ""
        free = free[most[free] == most[free].max()]
        free = free[size[free] == size[free].min()]
        found: str = min(values[each] for each in free.tolist())
        self.begun.append(found)
        return found

    def done(self, pod: PodInfo) -> None:
        """Note that a pod has been tried."""
        self._left[shape_of(pod)] -= 1


def shape_of(pod: PodInfo) -> Hashable:
    """What pods have in common that have room on the same nodes; labels, as of an index, may differ."""
    template = pod.template
    return template.memo("shape on nodes", lambda: _shape_of(template))


def _shape_of(template: PodTemplate) -> Hashable:
    constraints = None if _looks_at_pods(template) else template.constraints
    return template if constraints is None else (constraints, tuple(sorted(template.requests.items())))


def looks_at_pods(pod: PodInfo) -> bool:
    """Whether a pod's place depends on other pods."""
    return pod.template.memo("looks at pods", lambda: _looks_at_pods(pod.template))


def _looks_at_pods(template: PodTemplate) -> bool:
    spec = template.sample.spec
    return bool(template.terms or template.terms_error or spec.topology_spread_constraints)
