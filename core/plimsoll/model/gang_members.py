"""Indexes placed pods by the groups that they name, and finds the pods that may only leave together."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.group_trees import trees_of
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.gang_marks import ANNOTATION_KEYS, CORES, OURS, OWNED, Gang, gangs_of
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_group import PodGroup, PodGroupSpec
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.names import PodUid

FindPod = Callable[[str], PodInfo | None]
"""Finds a placed pod by uid."""

_GangKey = tuple[str, str]
"""Kind and key of a gang."""


class GangUnit(NamedTuple):
    """The pods that need one another: the members of one gang, or of several that share members.

    Attributes:
        gangs: The gangs.
        members: Placed members that have not ended and are not being deleted, by uid.
        spare: Number of members that may leave while enough others run.
        surplus: The same while enough others have a node, running or not: what preemption may take.
        least: Number of members that must stay, for messages; None if all must.
        priority: The priority of the group, if it has one and its members leave together.
        topology: The node label whose value all members' nodes must share, "" for none.
    """

    gangs: tuple[Gang, ...]
    members: Mapping[PodUid, PodInfo]
    spare: int
    surplus: int
    least: int | None
    priority: int | None = None
    topology: str = ""

    def priority_of(self, member: PodInfo) -> int:
        """The priority that a preemptor must exceed: the member's own or the group's, whichever is higher."""
        return member.priority if self.priority is None else max(member.priority, self.priority)


class GangMembers(PodIndex):
    """The placed pods that name a gang, by gang; a pod index. Stand-ins of pods count nowhere.

    Attributes:
        version: Increases with each change of a gang's placed members; a pod's phase is not among them.
    """

    def __init__(self, _cluster: object = None) -> None:
        self.version = 0
        self.members: dict[_GangKey, tuple[PodUid, ...]] = {}
        self.gangs: dict[PodUid, tuple[Gang, ...]] = {}
        self.condemned: set[PodUid] = set()

    def __len__(self) -> int:
        return len(self.gangs)

    def __contains__(self, uid: str) -> bool:
        return uid in self.gangs

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Add a placed pod."""
        gangs = _gangs_of(pod) if pod.stands_in_for is None else ()
        if not gangs:
            return
        self.version += 1
        self.gangs[pod.uid] = gangs
        for gang in gangs:
            key = gang[:2]
            self.members[key] = (*self.members.get(key, ()), pod.uid)

    def remove(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Remove a pod."""
        self.condemned.discard(pod.uid)
        for gang in self.gangs.pop(pod.uid, ()):
            self.version += 1
            key = gang[:2]
            left = tuple(uid for uid in self.members[key] if uid != pod.uid)
            if left:
                self.members[key] = left
            else:
                del self.members[key]

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.members, twin.gangs = dict(self.members), dict(self.gangs)
        twin.condemned = set(self.condemned)
        return twin

    def condemn(self, victims: Iterable[PodInfo]) -> None:
        """Note that placed pods are about to be deleted: their gangs have them no more."""
        self.version += 1
        self.condemned.update(each.uid for each in victims if each.uid in self.gangs)

    def pardon(self, victims: Iterable[PodInfo]) -> None:
        """Note that pods stay after all, or that this is not known."""
        self.version += 1
        self.condemned.difference_update(each.uid for each in victims)

    def unit_of(self, pod: PodInfo, find: FindPod, objects: ClusterObjects) -> GangUnit | None:
        """The unit of a placed pod; None if it needs no other, has ended or is being deleted.

        Args:
            pod: The pod.
            find: Finds placed pods.
            objects: Has the PodGroups with their ``minMember``.
        """
        if pod.uid not in self.gangs or not self._is_member(pod):
            return None
        members, gangs, trees = {pod.uid: pod}, dict[_GangKey, Gang](), set[str]()
        found = [pod.uid]
        while found:
            for gang in self.gangs[found.pop()]:
                if gang[:2] in gangs or _is_loose(gang, objects):
                    continue
                gangs[gang[:2]] = gang
                for key in (gang[:2], *_siblings(gang, objects, trees)):
                    for uid in self.members.get(key, ()):
                        other = find(uid)
                        if uid not in members and other is not None and self._is_member(other):
                            members[uid] = other
                            found.append(uid)
        if not gangs:
            return None
        named = tuple(gangs.values())
        least = _least(named[0], objects) if len(named) == 1 else None  # of several all are needed
        # Without a node in the API server a member is only about to be bound, which may fail.
        bound = [each for each in members.values() if each.pod.node_name]
        running = sum(each.pod.status.phase != "Pending" for each in members.values())
        specs = [each.spec for each in (objects.pod_groups.get(gang.key) for gang in named) if each]
        above = [composite for gang in named for composite in _above_of(gang, objects)]
        return GangUnit(
            named,
            members,
            _above(least, running, members),
            _above(least, len(bound), members),
            least,
            max((each for each in _priorities(specs, above) if each is not None), default=None),
            next(
                filter(None, (*(one.topology_key for one in specs), *(one.topology_key for one in above))), ""
            ),
        )

    def breaking(self, leaving: Iterable[PodInfo], find: FindPod, objects: ClusterObjects) -> PodInfo | None:
        """The first of these victims that would leave members of its gang that need it; None if none."""
        leaving = tuple(leaving)
        uids = {each.uid for each in leaving}
        for each in leaving:
            unit = self.unit_of(each, find, objects)
            if unit is not None and unit.surplus < len(uids & unit.members.keys()) < len(unit.members):
                return each
        return None

    def _is_member(self, pod: PodInfo) -> bool:
        return not pod.pod.is_terminal and not pod.is_terminating and pod.uid not in self.condemned

    def shares_gang(self, one: PodInfo, other: PodInfo) -> bool:
        """Whether a pod, placed or not, names a gang of this placed pod."""
        named = {gang[:2] for gang in gangs_of(one.pod)}
        return not named.isdisjoint(gang[:2] for gang in self.gangs.get(other.uid, ()))


def _gangs_of(pod: PodInfo) -> tuple[Gang, ...]:
    """The gangs that a pod names, found once for siblings without an annotation that names one."""
    metadata = pod.pod.metadata
    if not ANNOTATION_KEYS.isdisjoint(metadata.annotations):
        return gangs_of(pod.pod)
    owner = metadata.controller  # of which the template has kind and name
    version = "" if owner is None else owner.api_version
    return pod.template.memo(("gangs", version), lambda: gangs_of(pod.pod))


class GangUnits:
    """The units of one cluster, each found once while no placed member changes; for one decision or run.

    Args:
        members: The index of the cluster.
        find: Finds placed pods.
        objects: Has the PodGroups.
    """

    def __init__(self, members: GangMembers, find: FindPod, objects: ClusterObjects) -> None:
        self.members = members
        self._find, self._objects = find, objects
        self._version = members.version
        self._known: dict[str, GangUnit] = {}

    def of(self, pod: PodInfo) -> GangUnit | None:
        """The unit of a placed pod that has other members; None if the pod may leave without others."""
        unit = self._unit(pod)
        return None if unit is None or len(unit.members) < 2 else unit

    def priority_of(self, pod: PodInfo) -> int:
        """The priority that a preemptor of a placed pod must exceed, also if it is the last of its group."""
        unit = self._unit(pod)
        return pod.priority if unit is None else unit.priority_of(pod)

    def _unit(self, pod: PodInfo) -> GangUnit | None:
        if pod.uid not in self.members:
            return None
        if self._version != self.members.version:
            self._version = self.members.version
            self._known.clear()
        unit = self._known.get(pod.uid)
        if unit is None:
            unit = self.members.unit_of(pod, self._find, self._objects)
            if unit is not None:
                self._known |= dict.fromkeys(unit.members, unit)
        return unit


def _least(gang: Gang, objects: ClusterObjects) -> int | None:
    """Number of members that a gang needs; None if all are needed, or if it is not known."""
    if gang.kind not in (OURS, CORES, OWNED):
        return gang.least
    known = objects.pod_groups.get(gang.key)
    if known is None or known.spec.leaves_whole or _binding(known, objects):
        return None
    return 0 if known.spec.are_independent else max(1, known.spec.min_member)


def _above(least: int | None, count: int, members: Mapping[PodUid, PodInfo]) -> int:
    """Number of members beyond those that a gang needs, of so many that count."""
    return 0 if least is None else len(members) if not least else max(count - least, 0)


def _is_loose(gang: Gang, objects: ClusterObjects) -> bool:
    """Whether no member of a gang needs another, nor its place; so if its owner is not read."""
    known = objects.pod_groups.get(gang.key) if gang.kind in (CORES, OWNED) else None
    if known is None and gang.kind == OWNED:
        return True
    if known is None or _binding(known, objects):
        return False
    is_confined = known.spec.topology_key or any(each.topology_key for each in _above_of(gang, objects))
    return known.spec.are_independent and not is_confined


def _siblings(gang: Gang, objects: ClusterObjects, seen: set[str]) -> Iterator[_GangKey]:
    """All groups below the highest CompositePodGroup whose groups need one another: they leave together.

    None if that one is ``seen``; each group of a tree names the others.
    """
    known = objects.pod_groups.get(gang.key)
    top = "" if known is None else _binding(known, objects)
    if top and top not in seen:
        seen.add(top)
        for key in trees_of(objects).leaves(top):
            yield CORES, key


def _binding(group: PodGroup, objects: ClusterObjects) -> str:
    """The key of the highest CompositePodGroup above a group whose groups need one another, "" for none."""
    if not group.spec.parent:
        return ""
    return trees_of(objects).binding(group)


def _above_of(gang: Gang, objects: ClusterObjects) -> tuple[CompositePodGroup, ...]:
    """The CompositePodGroups above a group."""
    known = objects.pod_groups.get(gang.key)
    if known is None or not known.spec.parent:
        return ()
    return trees_of(objects).above(known).path


def _priorities(specs: Iterable[PodGroupSpec], above: Iterable[CompositePodGroup]) -> Iterator[int | None]:
    """The priorities of groups whose members leave together."""
    yield from (each.own_priority for each in specs if each.leaves_whole)
    yield from (each.spec.priority for each in above if each.leaves_whole)
