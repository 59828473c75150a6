"""Decides when a PodGroup is tried: its members are gated until enough exist, and each says so once.

All members get the same sentence, without numbers. Numbers change with each arrival; the status of the
PodGroup has them (:mod:`plimsoll.scheduling.gangs.status`).

A gated member waits for no room, so its nomination ends. An unwritten explanation of a member is withdrawn
when its gate opens; otherwise the next leader would write it although it is outdated.

Source: scheduler-plugins, Coscheduling (PreFilter). Differs: it rejects such pods; here they are gated, which
costs no attempt.
"""

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook, ReservationReason
from plimsoll.framework import SUCCESS, Pod, PodInfo, Status, unschedulable
from plimsoll.ports.pod_writes import NOT_READY
from plimsoll.scheduling.conditions import Explanations

PLUGIN = "Coscheduling"
"""What gates and rejects members where no plugin did; upstream's name for it."""


class GangGate:
    """Gates members; the groups observe an event before the queue does."""

    def __init__(self, groups: Groups, book: ReservationBook, explanations: Explanations) -> None:
        self._groups = groups
        self._book = book
        self._explanations = explanations
        self._gated: dict[str, dict[str, str]] = {}  #: obstacle by pod, by group

    def gate(self, pod: PodInfo) -> Status:
        """Success for a pod that may be tried."""
        group = self._groups.of(pod.pod)
        if group is None:
            return SUCCESS
        obstacle = group.obstacle()
        gated = self._gated.setdefault(group.key, {})
        if not obstacle:
            if gated.pop(pod.uid, None) is not None:
                self._explanations.withdraw(pod.uid)
            return SUCCESS
        keeps = self.keeps_room(pod.uid)
        if not keeps:
            self._book.release_uid(pod.uid)
        if gated.get(pod.uid) != obstacle or (pod.pod.nominated_node_name and not keeps):
            gated[pod.uid] = obstacle
            text = sentence(self._book.cache, obstacle)
            self._explanations.explain(pod.pod, NOT_READY, text, None if keeps else "")
        return unschedulable(obstacle).by(PLUGIN)

    def release(self, pod: Pod) -> None:
        """Forget a pod that is no longer served."""
        self.forget(self._groups.key_of(pod), pod.uid)

    def keeps_room(self, uid: str) -> bool:
        """Whether a member whose binding failed keeps its room until the group releases it."""
        held = self._book.held_by_uid(uid)
        return held is not None and held.reason is ReservationReason.GANG

    def gated(self, group: str) -> list[str]:
        """The gated members of a group, by uid."""
        return list(self._gated.get(group, ()))

    def forget(self, group: str, uid: str = "") -> None:
        """Forget a deleted member or, without a uid, the whole group."""
        if uid:
            self._gated.get(group, {}).pop(uid, None)
        else:
            self._gated.pop(group, None)


def sentence(cache: Cache, obstacle: str) -> str:
    """An obstacle in the words of a scheduler's message."""
    return f"0/{len(cache.cluster)} nodes are available: {obstacle}."
