"""Victims of preemption on a node with members of groups: a group loses its spare members, or all of them.

The procedure is that of :mod:`plimsoll.toolkit.scheduling.victims`, with groups as units. All pods of lower
priority leave, as far as their groups can do without them or consist of such pods only. Then they are put
back: those that a disruption budget protects first, then by priority, groups before single pods, and the
smallest group first, so that few groups break. A group whose needed members cannot be put back loses its
members on all nodes.

Source: KEP-5710 (kube-scheduler v1.37, preemption of whole pod groups). Differs: spare members, above what
the group needs, may be victims by themselves.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from plimsoll.framework.extension_points import NodeTrial, WhatIf
from plimsoll.framework.status import Status
from plimsoll.model.columns.columns import BoolArray
from plimsoll.model.columns.pods_by_importance import importance
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.gang_members import GangMembers, GangUnit, GangUnits
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets
from plimsoll.toolkit.scheduling.victims import NO_VICTIMS, VictimsFound


def have_members(snapshot: Snapshot) -> BoolArray:
    """Which nodes have members of groups, shape (N,)."""
    if not len(snapshot.index(GangMembers)):
        return np.zeros(len(snapshot), dtype=np.bool_)
    found: BoolArray = snapshot.kept("members of groups", _have_members)
    return found


def _have_members(snapshot: Snapshot) -> BoolArray:
    members = snapshot.index(GangMembers)
    return np.array(
        [any(pod.uid in members for pod in snapshot.pods(node)) for node in range(len(snapshot))],
        dtype=np.bool_,
    )


class _Portion(Struct, frozen=True):
    """The pods of one group, or one single pod, that may leave the node.

    Attributes:
        here: The pods on the node that may leave, the most important first.
        spare: Number of these that may leave while the group goes on.
        whole: All members, on whatever nodes; empty if the group must not break.
        priority: The highest that a preemptor must exceed.
    """

    here: tuple[PodInfo, ...]
    spare: int
    whole: tuple[PodInfo, ...] = ()
    priority: int = 0

    @property
    def kept(self) -> tuple[PodInfo, ...]:
        """The pods that must stay on the node for the group to go on."""
        return self.here[: max(len(self.here) - self.spare, 0)]

    def rank(self) -> tuple[object, ...]:
        """A sort key: what is put back first."""
        size = sum(pod.requests.get("cpu", 0) for pod in self.kept)
        memory = sum(pod.requests.get("memory", 0) for pod in self.kept)
        return -self.priority, not self.kept, size, memory, importance(self.here[0])


def victims_in_gangs(
    pod: PodInfo,
    row: int,
    pods: Sequence[PodInfo],
    budgets: DisruptionBudgets,
    what_if: WhatIf,
    units: GangUnits,
) -> VictimsFound | Status:
    """The victims if a pod takes a node with members of groups, or why the node is not a candidate."""
    portions = sorted(_portions(pod, pods, units), key=_Portion.rank)
    concerned = sorted(
        {each.uid: each for portion in portions for each in portion.whole or portion.here}.values(),
        key=importance,
    )
    if not concerned:
        return NO_VICTIMS
    trial = what_if.on(row)
    try:
        for portion in portions:
            for each in portion.here:
                trial.remove(each)
        status = trial.status()
        if not status.is_success:
            return status
        violating = {
            each.uid
            for each, violates in zip(concerned, budgets.violating(concerned), strict=True)
            if violates
        }
        victims: dict[str, PodInfo] = {}
        broken = 0
        for protected in (True, False):
            for portion in portions:
                if any(each.uid in violating for each in portion.whole or portion.here) is not protected:
                    continue
                leaving = [each for each in portion.here if not _stays(each, trial)]
                if len(leaving) > portion.spare:
                    for each in portion.here:
                        if each not in leaving:
                            trial.remove(each)
                    leaving = list(portion.whole)
                    broken += 1
                victims |= {each.uid: each for each in leaving}
    finally:
        trial.close()
    violations = len(victims.keys() & violating)
    return VictimsFound(row, tuple(sorted(victims.values(), key=importance)), violations, broken)


def _portions(pod: PodInfo, pods: Sequence[PodInfo], units: GangUnits) -> Iterator[_Portion]:
    seen = set[str]()
    for other in pods:
        if other.priority >= pod.priority or other.uid in seen:
            continue
        unit = units.of(other)
        if unit is None:
            if units.priority_of(other) < pod.priority:
                yield _Portion((other,), spare=1, priority=other.priority)
            continue
        seen |= unit.members.keys()
        here = tuple(
            each for each in pods if each.uid in unit.members and unit.priority_of(each) < pod.priority
        )
        if _may_break(unit, pod, units.members):
            highest = max(map(unit.priority_of, unit.members.values()))
            yield _Portion(here, unit.surplus, tuple(unit.members.values()), highest)
        elif unit.surplus:
            here = here[-unit.surplus :]
            yield _Portion(here, unit.surplus, priority=max(each.priority for each in here))


def _may_break(unit: GangUnit, pod: PodInfo, members: GangMembers) -> bool:
    """Whether all members may be victims of the pod: of lower priority, and not of its own group."""
    return all(
        unit.priority_of(each) < pod.priority and not members.shares_gang(pod, each)
        for each in unit.members.values()
    )


def _stays(pod: PodInfo, trial: NodeTrial) -> bool:
    """Put a pod back if it fits together with the preemptor; whether it did."""
    trial.add(pod)
    if trial.status().is_success:
        return True
    trial.remove(pod)
    return False
