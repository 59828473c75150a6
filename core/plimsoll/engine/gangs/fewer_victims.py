"""Fewer victims for a group that preempts: one gang in place of several, none whose room is not needed.

The members of the group take victims one after the other, each the node that costs least, without regard to
the next. What they take together may be more than the group needs. Two steps mend that: other gangs are
tried as the only one that breaks; then victims are put back as long as all members still fit, anywhere.

Source: KEP-5710 (kube-scheduler v1.37), which removes all pods of lower priority from the cluster, places
the group, and puts back victims for these places. Differs: the members' choice of nodes knows the victims.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from plimsoll.devices.device_places import own_requests
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.gangs.topology_domains import shape_of
from plimsoll.framework import Nomination, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import BoolArray
from plimsoll.model.columns.pods_by_importance import importance
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.gang_members import GangMembers, GangUnit, GangUnits
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

#: Maximum number of gangs that are tried as the only one that breaks.
MOST_GANGS = 16

#: Maximum number of times that victims are put back and the group is placed again.
MOST_SPARED = 16


class Place(Protocol):
    """Places the members on a fork, of which this many must fit; says whether they may name victims."""

    def __call__(self, fork: Cluster, needed: int, *, is_preempting: bool) -> GangDecision:
        """The placements."""


def displace(victims: Iterable[PodInfo], fork: Cluster) -> None:
    """Let pods leave a copy of the cluster, with the disruptions that they take from budgets."""
    victims = tuple(victims)
    DisruptionBudgets(fork.objects).take(victims)
    for victim in victims:
        fork.displace(victim.uid)


def with_fewer_victims(
    found: GangDecision,
    members: Sequence[PodInfo],
    cluster: Cluster,
    ours: Collection[str],
    inside: BoolArray,
    place: Place,
) -> GangDecision:
    """The placements, or others for which fewer groups break and fewer pods leave.

    Args:
        found: A feasible decision with victims.
        members: The members without a node.
        cluster: It is only read.
        ours: The uids of all members, which cannot be victims.
        inside: The nodes that the members may take, shape (N,).
        place: Places the members.
    """
    found = _breaking_fewer(found, members, cluster, ours, place)
    sparing = _Sparing(found, members, cluster, inside, place)
    for portion, least in _portions(list(sparing.leaving.values()), cluster):
        if not sparing.may_stay(portion) and 0 < least < len(portion):
            portion.sort(key=lambda each: (each.requests.get("cpu", 0), each.requests.get("memory", 0)))
            if sparing.may_stay(portion[:least]):
                for each in portion[least:]:
                    sparing.may_stay([each])
    return sparing.found


def _breaking_fewer(
    found: GangDecision, members: Sequence[PodInfo], cluster: Cluster, ours: Collection[str], place: Place
) -> GangDecision:
    """The placements, or others for which fewer gangs break: one whole gang may make room for all members."""
    units = GangUnits(cluster.index(GangMembers), cluster.pods.get, cluster.objects)
    fewest = _broken(found, units)
    if fewest < 2:
        return found
    best, lowest = found, min(pod.priority for pod in members)
    for unit in _breakable(units, cluster, lowest, ours):
        fork = cluster.fork()
        displace(unit.members.values(), fork)
        other = place(fork, found.needed, is_preempting=True)
        if not other.is_feasible:
            continue
        first, *rest = other.placements
        first = replace(first, victims=(*unit.members.values(), *first.victims))
        other = replace(other, placements=(first, *rest))
        broken = _broken(other, units)
        if broken < fewest:
            best, fewest = other, broken
        if fewest < 2:
            break
    return best


def _breakable(units: GangUnits, cluster: Cluster, priority: int, ours: Collection[str]) -> list[GangUnit]:
    """Gangs that may all be victims of pods of that priority, the least important and smallest first."""
    budgets = DisruptionBudgets(cluster.objects)
    found = {
        min(unit.members): unit
        for uid in units.members.gangs
        if uid in cluster.pods and (unit := units.of(cluster.pods[uid])) is not None
    }
    lower = [
        unit
        for unit in found.values()
        if all(
            unit.priority_of(each) < priority and uid not in ours and not budgets.cover(each)
            for uid, each in unit.members.items()
        )
    ]
    lower.sort(key=lambda unit: (max(map(unit.priority_of, unit.members.values())), len(unit.members)))
    return lower[:MOST_GANGS]


def _broken(decision: GangDecision, units: GangUnits) -> int:
    """The number of gangs that lose more members than they can spare."""
    lost: Counter[str] = Counter()
    surplus: dict[str, int] = {}
    for victim in (each for placement in decision.placements for each in placement.victims):
        unit = units.of(victim)
        if unit is not None:
            key = min(unit.members)
            lost[key] += 1
            surplus[key] = unit.surplus
    return sum(count > surplus[key] for key, count in lost.items())


class _Sparing:
    """The placements of a group that preempts, as more and more victims stay.

    Attributes:
        found: The placements.
        leaving: The victims by uid.
    """

    def __init__(
        self,
        found: GangDecision,
        members: Sequence[PodInfo],
        cluster: Cluster,
        inside: BoolArray,
        place: Place,
    ) -> None:
        self.found, self._cluster, self._place = found, cluster, place
        self.leaving = {victim.uid: victim for each in found.placements for victim in each.victims}
        nominations = [each.decision.nomination for each in found.placements]
        held = [each.priority for each in nominations if each is not None and each.priority is not None]
        self._held = max(held, default=None)
        self._outranked = {each.node: each.outranked for each in nominations if each is not None}
        self._room = _Room(members, cluster, inside, len(found.placements))
        self._room.put_back(self.leaving.values(), -1)
        self._tried = 0

    def may_stay(self, portion: Sequence[PodInfo]) -> bool:
        """Let these victims stay if as many members fit all the same."""
        if len(self.leaving) < 2 or self._tried == MOST_SPARED or not self._room.suffices_with(portion):
            return False
        self._tried += 1
        spared = {each.uid for each in portion}
        rest = {uid: each for uid, each in self.leaving.items() if uid not in spared}
        fork = self._cluster.fork()
        displace(rest.values(), fork)
        other = self._place(fork, len(self.found.placements), is_preempting=False)
        if not other.is_feasible:
            return False
        self.leaving = rest
        self._room.put_back(portion)
        other = replace(other, needed=self.found.needed)
        self.found = self._with_victims(other, rest.values())
        return True

    def _with_victims(self, found: GangDecision, victims: Iterable[PodInfo]) -> GangDecision:
        """The placements with nominations: a victim leaves for a member on its node, else for the first."""
        takers: dict[int | None, int] = {}
        for at, each in enumerate(found.placements):
            takers.setdefault(self._cluster.rows[each.node], at)
        shares: dict[int, list[PodInfo]] = {}
        for victim in sorted(victims, key=importance):
            shares.setdefault(takers.get(self._cluster.row_of_pod(victim.uid), 0), []).append(victim)
        placements = list(found.placements)
        for at, share in shares.items():
            each = placements[at]
            nomination = Nomination(
                node=each.node,
                victims=tuple(share),
                outranked=self._outranked.get(each.node, ()),
                priority=self._held,
            )
            decision = replace(each.decision, nomination=nomination)
            placements[at] = replace(each, decision=decision, victims=nomination.victims)
        return replace(found, placements=tuple(placements))


class _Room:
    """How many members have room by amounts: an upper bound.

    Args:
        members: The members.
        cluster: It is only read.
        inside: The nodes that the members may take, shape (N,).
        needed: Number of members that must fit.
    """

    def __init__(self, members: Sequence[PodInfo], cluster: Cluster, inside: BoolArray, needed: int) -> None:
        self._cluster, self._needed = cluster, needed
        snapshot = Snapshot(cluster)
        counts = Counter(map(shape_of, members))
        alike = {shape_of(pod): pod for pod in members}
        wanted = own_requests(alike.values(), snapshot)
        self._free = snapshot.allocatable - snapshot.requested
        self._inside = inside
        self._shapes = [(each, counts[shape]) for each, shape in zip(wanted, alike, strict=True)]

    def put_back(self, pods: Iterable[PodInfo], sign: int = 1) -> None:
        """Count pods as placed again, or as gone with sign -1."""
        for each in pods:
            row = self._cluster.row_of_pod(each.uid)
            if row is not None:  # its node may have gone
                self._free[row] -= sign * self._cluster.requests_row(each.requests)

    def suffices_with(self, pods: Sequence[PodInfo]) -> bool:
        """Whether enough members may fit if these pods stay."""
        self.put_back(pods)
        room = 0
        for wanted, count in self._shapes:
            axes = wanted > 0
            places = (self._free[self._inside][:, axes] // wanted[axes]).min(axis=1).clip(0)
            room += min(int(places.sum()), count)
        self.put_back(pods, -1)
        return room >= self._needed


def _portions(victims: Sequence[PodInfo], cluster: Cluster) -> list[tuple[list[PodInfo], int]]:
    """The victims that may only stay together, in the order in which they are spared.

    Those that budgets protect come first, then the most important, groups before single pods. With each goes
    the number of pods that suffices for their group; 0 if it needs all.
    """
    units = GangUnits(cluster.index(GangMembers), cluster.pods.get, cluster.objects)
    ordered = sorted(victims, key=importance)
    violating = DisruptionBudgets(cluster.objects).violating(ordered)
    protected = {each.uid for each, violates in zip(ordered, violating, strict=True) if violates}
    uids = {each.uid for each in victims}
    portions: dict[str, tuple[list[PodInfo], int]] = {}
    for each in ordered:
        unit = units.of(each)
        leaves_whole = unit is not None and unit.members.keys() <= uids
        key, least = (min(unit.members), unit.least or 0) if unit and leaves_whole else (each.uid, 0)
        portions.setdefault(key, ([], least))[0].append(each)

    def first(portion: tuple[list[PodInfo], int]) -> tuple[object, ...]:
        pods, _ = portion
        is_free = protected.isdisjoint(each.uid for each in pods)
        return is_free, -max(map(units.priority_of, pods)), -len(pods), importance(pods[0])

    return sorted(portions.values(), key=first)
