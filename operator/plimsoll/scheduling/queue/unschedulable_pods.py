"""Holds unschedulable or gated pods, grouped by template and by the plugins that rejected them.

All pods of a group get the same result from most hints, so an event costs one call per group, not per pod.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from plimsoll.framework import PodTemplate
from plimsoll.scheduling.queue.queued_pod import QueuedPod


class Rejection(Struct, frozen=True):
    """Why pods of one template, compared by identity, wait; some plugins wait for outside events."""

    template: PodTemplate
    plugins: frozenset[str]
    pending_on: frozenset[str] = frozenset()

    @property
    def scheduler(self) -> str:
        """The scheduler name whose profile tried them."""
        return self.template.sample.spec.scheduler_name


def rejection_of(queued: QueuedPod) -> Rejection:
    """Why a pod waits; its gate alone while it is gated."""
    if queued.gated_by:
        return Rejection(queued.pod.template, frozenset((queued.gated_by,)))
    return Rejection(queued.pod.template, queued.rejected_by | queued.pending_on, queued.pending_on)


class UnschedulablePods:
    """Pods by uid in the order of arrival, and their groups by scheduler name and plugin."""

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPod] = {}
        self._why: dict[str, Rejection] = {}
        self._groups: dict[Rejection, dict[str, QueuedPod]] = {}
        self.by_plugin: dict[tuple[str, str], dict[Rejection, None]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    @property
    def oldest(self) -> QueuedPod | None:
        """The pod that was added first."""
        return next(iter(self._pods.values()), None)

    def group(self, why: Rejection) -> Mapping[str, QueuedPod]:
        """The pods of a group, by uid."""
        return self._groups.get(why, {})

    def find(self, uid: str) -> QueuedPod | None:
        """The pod with this uid; it stays."""
        return self._pods.get(uid)

    def add(self, queued: QueuedPod) -> None:
        """Add a pod; a pod that is present keeps its position and moves to its present group."""
        uid, why = queued.pod.uid, rejection_of(queued)
        self._pods[uid] = queued
        known = self._why.get(uid)
        if known == why:
            return
        if known is not None:
            self._leave(uid, known)
        self._why[uid] = why
        group = self._groups.get(why)
        if group is None:
            group = self._groups[why] = {}
            for plugin in why.plugins:
                self.by_plugin.setdefault((why.scheduler, plugin), {})[why] = None
        group[uid] = queued

    def take(self, uid: str) -> QueuedPod | None:
        """Remove a pod."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._leave(uid, self._why.pop(uid))
        return queued

    def _leave(self, uid: str, why: Rejection) -> None:
        group = self._groups[why]
        del group[uid]
        if group:
            return
        del self._groups[why]
        for plugin in why.plugins:
            groups = self.by_plugin[why.scheduler, plugin]
            del groups[why]
            if not groups:
                del self.by_plugin[why.scheduler, plugin]
