"""Gates members of a PodGroup until it and enough siblings exist, and says so on each pod, once.

One sentence for all members, without numbers: these change with each arrival, and are in the status of the
PodGroup (:mod:`plimsoll.scheduling.gangs.status`).

Source: scheduler-plugins, Coscheduling (PreFilter). Differs: it rejects such pods; here they are gated, and
no attempt is spent on them.
"""

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.framework import SUCCESS, PodInfo, Status, unschedulable
from plimsoll.scheduling.conditions import Explain

PLUGIN = "Coscheduling"
"""What gates and rejects members where no plugin did; upstream's name for it."""


class GangGate:
    """Holds members back; the groups observe an event before the queue does."""

    def __init__(self, groups: Groups, cache: Cache, explain: Explain) -> None:
        self._groups = groups
        self._cache = cache
        self._explain = explain
        self._gated: dict[str, dict[str, str]] = {}  #: obstacle by pod, by group

    def gate(self, pod: PodInfo) -> Status:
        """Success for a pod that may be tried."""
        group = self._groups.of(pod.pod)
        if group is None:
            return SUCCESS
        obstacle = group.obstacle()
        gated = self._gated.setdefault(group.key, {})
        if not obstacle:
            gated.pop(pod.uid, None)
            return SUCCESS
        if gated.get(pod.uid) != obstacle:
            gated[pod.uid] = obstacle
            self._explain(pod.pod, "Unschedulable", sentence(self._cache, obstacle))
        return unschedulable(obstacle).by(PLUGIN)

    def gated(self, group: str) -> list[str]:
        """The gated members of a group, by uid."""
        return list(self._gated.get(group, ()))

    def forget(self, group: str, uid: str = "") -> None:
        """A member is gone, or, without a uid, the whole group."""
        if uid:
            self._gated.get(group, {}).pop(uid, None)
        else:
            self._gated.pop(group, None)


def sentence(cache: Cache, obstacle: str) -> str:
    """An obstacle in the words of a scheduler's message."""
    return f"0/{len(cache.cluster)} nodes are available: {obstacle}."
