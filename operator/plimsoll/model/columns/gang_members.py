"""Indexes placed pods by the groups that they name, and finds the pods that may only leave together."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.kinds.gang_marks import OURS, Gang, gangs_of
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo

_GangKey = tuple[str, str]
"""Kind and key of a gang."""


class GangUnit(NamedTuple):
    """The pods that need one another: the members of one gang, or of several that share members.

    Attributes:
        gangs: The gangs, the first one named by the pod asked about.
        members: Placed members that have not ended and are not being deleted, by uid.
        spare: Number of members that may leave while the others go on.
        least: Number of members that must stay, for messages; None if all must.
    """

    gangs: tuple[Gang, ...]
    members: Mapping[str, PodInfo]
    spare: int
    least: int | None

    @property
    def is_bound(self) -> bool:
        """Whether no member may leave without the others."""
        return self.spare < 1 and len(self.members) > 1

    def others(self, pod: PodInfo) -> tuple[PodInfo, ...]:
        """All members but this pod."""
        return tuple(each for uid, each in self.members.items() if uid != pod.uid)


class GangMembers(PodIndex):
    """The placed pods that name a gang, by gang; a pod index. Stand-ins of pods count nowhere."""

    def __init__(self, _cluster: object = None) -> None:
        self._members: dict[_GangKey, tuple[str, ...]] = {}
        self._gangs: dict[str, tuple[Gang, ...]] = {}

    def __len__(self) -> int:
        return len(self._gangs)

    def __contains__(self, uid: str) -> bool:
        return uid in self._gangs

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Add a placed pod."""
        gangs = gangs_of(pod.pod) if pod.stands_in_for is None else ()
        if not gangs:
            return
        self._gangs[pod.uid] = gangs
        for gang in gangs:
            key = gang[:2]
            self._members[key] = (*self._members.get(key, ()), pod.uid)

    def remove(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - the index's signature
        """Remove a pod."""
        for gang in self._gangs.pop(pod.uid, ()):
            key = gang[:2]
            left = tuple(uid for uid in self._members[key] if uid != pod.uid)
            if left:
                self._members[key] = left
            else:
                del self._members[key]

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin._members, twin._gangs = dict(self._members), dict(self._gangs)
        return twin

    def unit_of(
        self, pod: PodInfo, pods: Mapping[str, PodInfo], objects: ClusterObjects
    ) -> GangUnit | None:
        """The unit of a placed pod; None if it names no gang, has ended or is being deleted.

        Args:
            pod: The pod.
            pods: The placed pods by uid.
            objects: Has the PodGroups with their ``minMember``.
        """
        if pod.uid not in self._gangs or not _is_member(pod):
            return None
        members, gangs = {pod.uid: pod}, dict[_GangKey, Gang]()
        found = [pod.uid]
        while found:
            for gang in self._gangs[found.pop()]:
                if gang[:2] in gangs:
                    continue
                gangs[gang[:2]] = gang
                for uid in self._members[gang[:2]]:
                    other = pods.get(uid)
                    if uid not in members and other is not None and _is_member(other):
                        members[uid] = other
                        found.append(uid)
        named = tuple(gangs.values())
        least = _least(named[0], objects) if len(named) == 1 else None
        running = sum(each.pod.status.phase != "Pending" for each in members.values())
        return GangUnit(named, members, 0 if least is None else max(running - least, 0), least)

    def breaking(
        self, leaving: Iterable[PodInfo], pods: Mapping[str, PodInfo], objects: ClusterObjects
    ) -> PodInfo | None:
        """The first of these pods that would leave members of its gang behind that need it; None if none."""
        leaving = tuple(leaving)
        uids = {each.uid for each in leaving}
        for each in leaving:
            unit = self.unit_of(each, pods, objects)
            if unit is not None and unit.spare < len(uids & unit.members.keys()) < len(unit.members):
                return each
        return None

    def shares_gang(self, one: PodInfo, other: PodInfo) -> bool:
        """Whether a pod, placed or not, names a gang of this placed pod."""
        named = {gang[:2] for gang in gangs_of(one.pod)}
        return not named.isdisjoint(gang[:2] for gang in self._gangs.get(other.uid, ()))


def _is_member(pod: PodInfo) -> bool:
    return not pod.pod.is_terminal and not pod.is_terminating


def _least(gang: Gang, objects: ClusterObjects) -> int | None:
    """Number of members that a gang needs; None if it is not known, so that all are needed."""
    if gang.kind != OURS:
        return gang.least
    known = objects.pod_groups.get(gang.key)
    return None if known is None else max(1, known.spec.min_member)
