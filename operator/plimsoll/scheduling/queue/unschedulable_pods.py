"""Holds unschedulable or gated pods, grouped by template and by the plugins that rejected them.

All pods of a group get the same result from most hints, so an event costs one call per group, not per pod.
Groups of which a hint reads an equal value cost one comparison together.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeAlias

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


ReadsValue: TypeAlias = Callable[[PodTemplate], Hashable]


class GroupsByValue:
    """Groups by the value that a hint reads of their template.

    Attributes:
        groups: By value, never empty.
        unread: Those whose value cannot be read, or is not hashable.
    """

    def __init__(self, reads: ReadsValue) -> None:
        self._reads = reads
        self._values: dict[Rejection, Hashable] = {}
        self.groups: dict[Hashable, dict[Rejection, None]] = {}
        self.unread: dict[Rejection, None] = {}

    def add(self, why: Rejection) -> None:
        """Add a group."""
        try:
            value = self._reads(why.template)
            self.groups.setdefault(value, {})[why] = None
            self._values[why] = value
        except BaseException:  # noqa: BLE001 - the hint is asked about its pods, and its failure reported
            self.unread[why] = None

    def remove(self, why: Rejection) -> None:
        """Remove a group."""
        if why in self.unread:
            del self.unread[why]
            return
        value = self._values.pop(why)
        del self.groups[value][why]
        if not self.groups[value]:
            del self.groups[value]


class RejectedGroups:
    """The groups that one plugin rejected, numbered in the order of arrival, also by values."""

    def __init__(self) -> None:
        self.numbers: dict[Rejection, int] = {}
        self._next = 0
        self.values: dict[ReadsValue, GroupsByValue] = {}

    def by_value(self, reads: ReadsValue) -> GroupsByValue:
        """The groups by the value that a hint reads; kept from the first time on."""
        found = self.values.get(reads)
        if found is None:
            found = self.values[reads] = GroupsByValue(reads)
            for why in self.numbers:
                found.add(why)
        return found

    def add(self, why: Rejection) -> None:
        """Add a group."""
        self.numbers[why] = self._next
        self._next += 1
        for found in self.values.values():
            found.add(why)

    def remove(self, why: Rejection) -> None:
        """Remove a group that is empty."""
        del self.numbers[why]
        for found in self.values.values():
            found.remove(why)


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
        self.by_plugin: dict[tuple[str, str], RejectedGroups] = {}

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
                self.by_plugin.setdefault((why.scheduler, plugin), RejectedGroups()).add(why)
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
            rejected = self.by_plugin[why.scheduler, plugin]
            rejected.remove(why)
            if not rejected.numbers:
                del self.by_plugin[why.scheduler, plugin]
