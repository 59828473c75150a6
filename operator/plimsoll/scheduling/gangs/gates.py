"""Members wait behind a gate until their PodGroup and enough siblings exist, and are told so once.

One sentence for all members, without numbers: these change with each arrival, and are in the status of the
PodGroup (:mod:`plimsoll.scheduling.gangs.status`).

Source: scheduler-plugins, Coscheduling (PreFilter). Differs: it rejects such pods; here they are gated, and
no attempt is spent on them.
"""

from collections.abc import Callable

from plimsoll.cluster.pod_groups import Groups
from plimsoll.framework import SUCCESS, PodInfo, Status, unschedulable
from plimsoll.model.kinds.pod_group import PodGroup, group_key
from plimsoll.model.kinds.watch_event import (
    ClusterEvent,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.conditions import Explain
from plimsoll.scheduling.queue.queue import SchedulingQueue

PLUGIN = "Coscheduling"
"""What gates and rejects members where no plugin did; upstream's name for it."""


class GangGates:
    """Holds members back, and lets them go.

    Args:
        groups: Who belongs together; it has seen an event before this is told.
        queue: Where members wait.
        explain: Tells a pod why it waits.
        sentence: Words an obstacle as a scheduler's message.
        clock: Time.

    Attributes:
        changed: Told groups, by key, of which something new is to be reported.
    """

    def __init__(
        self,
        groups: Groups,
        queue: SchedulingQueue,
        explain: Explain,
        sentence: Callable[[str], str],
        clock: Clock,
    ) -> None:
        self.changed: Callable[[str], None] = lambda _: None
        self._groups = groups
        self._queue = queue
        self._explain = explain
        self._sentence = sentence
        self._clock = clock
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
            self._explain(pod.pod, "Unschedulable", self._sentence(obstacle))
        return unschedulable(obstacle).by(PLUGIN)

    def observe(self, event: ClusterEvent) -> None:
        """Something happened, and was applied: gates may open, and there may be news to report."""
        match event:
            case PodAdded(pod):
                keys = {group_key(pod)}
            case PodUpdated(old, pod):
                keys = {group_key(old), group_key(pod)}
            case PodDeleted(pod):
                self._gated.get(group_key(pod), {}).pop(pod.uid, None)
                keys = {group_key(pod)}
            case ObjectAdded(PodGroup() as group) | ObjectDeleted(PodGroup() as group):
                keys = {group.key}
            case ObjectUpdated(PodGroup() as before, PodGroup() as group):
                keys = {group.key}
                known = self._groups.find(group.key)
                if before.spec != group.spec and known is not None:
                    self._queue.activate([pod.uid for pod in known.waiting()], self._clock.monotonic())
            case _:
                return
        for key in keys - {""}:
            self._follow(key)

    def _follow(self, key: str) -> None:
        group = self._groups.find(key)
        gated = self._gated.get(key)
        if group is None:
            self._gated.pop(key, None)
        elif gated and not group.obstacle():
            self._queue.activate(list(gated), self._clock.monotonic())
        self.changed(key)
