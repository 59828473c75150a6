"""Watches gangs: opens their gates, reserves room for members whose binding failed, ends late starts."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from plimsoll.cluster.changes import room_freed
from plimsoll.cluster.ingestion import PlacedPodsSubscriber
from plimsoll.cluster.pod_groups import Composite, Group, Groups, placed_members
from plimsoll.cluster.reservations import Reservation, ReservationBook, ReservationReason
from plimsoll.cluster.watch_events import (
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.engine.gangs.composite import Branch, Leaf
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.owned_group import title_of
from plimsoll.model.kinds.pod_group import DEFAULT_TIMEOUT_S, PodGroup
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.scheduling.binding.pipeline import BindingHook
from plimsoll.scheduling.gangs.gates import GangGate
from plimsoll.scheduling.gangs.release import Begun
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.timing.timer import Timer


@dataclass(eq=False)
class GangOversight(PlacedPodsSubscriber, BindingHook):
    """Keeps the groups' state between attempts; the groups observe an event before this does."""

    groups: Groups
    _queue: SchedulingQueue
    book: ReservationBook
    _gate: GangGate
    changed: Callable[[str], None]
    _recorder: EventRecorder
    _clock: Clock
    _timer: Timer
    _until: dict[str, float] = field(default_factory=dict, init=False)  #: when a start ends, steady seconds

    def observe(self, event: WatchEvent) -> None:
        """Handle an event that the cache has: open gates, and mark groups whose status may change."""
        match event:
            case PodAdded(pod):
                keys = {self.groups.key_of(pod)}
            case PodUpdated(before, pod):
                keys = {self.groups.key_of(before), self.groups.key_of(pod)}
            case PodDeleted(pod):
                self._gate.forget(self.groups.key_of(pod), pod.uid)
                keys = {self.groups.key_of(pod)}
            case ObjectDeleted(PodGroup() as group):
                keys = self.groups.keys_of(group)
            case ObjectAdded(CompositePodGroup() as found) | ObjectDeleted(CompositePodGroup() as found):
                keys = self._follow_tree(found.group_key)
            case ObjectUpdated(CompositePodGroup() as old, CompositePodGroup() as new):
                keys = self._follow_tree(new.group_key) if old.spec != new.spec else set()
            case ObjectAdded(PodGroup() as group):  # its members may have been rejected by one of that name
                keys = self.groups.keys_of(group)
                for key in keys:
                    self._try_again(key)
            case ObjectUpdated(PodGroup() as was, PodGroup() as group):
                keys = self.groups.keys_of(group)
                for key in keys if was.spec != group.spec else ():
                    self._try_again(key)
            case _:
                return
        for key in sorted(keys - {""}):
            self._follow(key)

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Handle added pods that have nodes; the cache has them already."""
        for pod in pods:
            key = self.groups.key_of(pod)
            if key:
                self._follow(key)

    def _try_again(self, key: str) -> None:
        """Activate the waiting members of a group with another spec, and of the groups that start with it."""
        if self.groups.find(key) is not None:
            waiting = [pod.uid for part in self.groups.parts(key) for pod in part.waiting()]
            self._queue.activate(waiting, self._clock.monotonic())

    def _follow(self, key: str) -> None:
        group = self.groups.find(key)
        if group is None:
            self._gate.forget(key)
        else:
            for part in self.groups.parts(key):
                gated = self._gate.gated(part.key)
                if gated and not part.obstacle():
                    self._queue.activate(gated, self._clock.monotonic())
        self.changed(key)

    def _follow_tree(self, key: str) -> set[str]:
        """A composite group has come, gone or changed: the members of its tree try again; these groups."""
        parts = self.groups.parts(key)
        for part in parts:
            self._queue.activate([pod.uid for pod in part.waiting()], self._clock.monotonic())
        self.changed(key)
        return {part.key for part in parts}

    def placed(self, group: Group) -> list[Pod]:
        """Members that have a node, bound or assumed, and members that have succeeded."""
        return placed_members(group, self.book.cache)

    def has_started(self, group: Group) -> bool:
        """Whether enough members have a node."""
        return group.object is not None and len(self.placed(group)) >= group.min_member

    def joins_alone(self, group: Group) -> bool:
        """Whether a member is tried by itself: all groups above it have started, and no label binds."""
        above = self.groups.above(group.key)
        if group.topology_key or any(each.object.topology_key for each in above):
            return False
        return self.has_started(group) and all(
            self.groups.is_met(each.key, self.has_started) for each in above
        )

    def not_bound(self, pod: PodInfo, node: str) -> None:
        """Handle a failed binding of a member: reserve its room while its group is short of members."""
        group = self.groups.of(pod.pod)
        if group is None:
            return
        self.changed(group.key)
        if (
            group.started_at is None
            or self.has_started(group)
            or self._clock.monotonic() >= self._until.get(group.key, -math.inf)
        ):
            return
        self.reserve(pod, node, group, keeps=True)

    def reserve(self, pod: PodInfo, node: str, group: Group, *, keeps: bool) -> None:
        """Nominate a member; ``keeps``: until its group releases the room, whatever an attempt decides."""
        reason = ReservationReason.GANG if keeps else ReservationReason.NOMINATED
        self.book.reserve(Reservation(Holder(HolderKind.POD, pod.uid), pod, node, reason, group.key))

    def keeps_room(self, uid: str) -> bool:
        """Whether a member whose binding failed keeps its room until the group releases it."""
        return self._gate.keeps_room(uid)

    def started(self, group: Group) -> None:
        """Record the decision to start a group; its start timeout begins."""
        started_at, patience_s = self._clock.now(), timeout_s(group)
        group.started_at, group.overdue = started_at, False
        self._until[group.key] = self._clock.monotonic() + patience_s
        self._timer.set(
            ("start of a gang", group.key),
            self._until[group.key],
            lambda: self._end_late_start(group.key, started_at, patience_s),
        )

    def _end_late_start(self, key: str, started_at: float, patience_s: float) -> None:
        """End a start that timed out: release its reserved room, and report the missing members."""
        self._until.pop(key, None)
        for held in self.book.release_owner(key, ReservationReason.GANG):
            freed = room_freed(held.pod, self.book.cache.cluster.objects, held.node)
            self._queue.move_all_to_active_or_backoff_queue(freed, self._clock.monotonic(), but=held.pod.uid)
        group = self.groups.find(key)
        if group is None or group.started_at != started_at:
            return
        census = group.census()
        placed = census.scheduled + census.succeeded
        if not 0 < placed < group.min_member:
            return
        group.overdue = True
        self.note(
            group,
            "StartTimedOut",
            f"{placed} of {group.min_member} members are placed after {patience_s:g} s; they stay, the "
            "others are tried again, and no room is held for them any more",
            is_warning=True,
        )
        self.changed(key)

    def refuse(self, key: str, message: str) -> tuple[Group | Composite, bool]:
        """Say why a group, and all that start with it, do not start; the root, and whether that is news."""
        parts, above = self.groups.parts(key), self.groups.above(key)
        root: Group | Composite = above[-1] if above else parts[0]
        is_news = message != root.refusal
        for part in parts:
            part.refusal = message
        for each in above:
            each.refusal = message
        return root, is_news

    def begins(self, members: Sequence[Begun], unit: Leaf | Branch) -> None:
        """Note that these members start: no refusal of their groups holds any longer."""
        count: Counter[str] = Counter(self.groups.key_of(queued.pod.pod) for queued, _ in members)
        placed = {leaf.key: len(leaf.placed) for leaf in unit.leaves}
        for key, number in count.items():
            group = self.groups.find(key)
            if group is None:
                continue
            group.refusal = ""
            for each in self.groups.above(key):
                each.refusal = ""
            said = f"{counted(number, 'member')} {agreeing(number, 'starts', 'start')} together"
            self.note(group, "Scheduled", said)
            if group.started_at is None or not placed[key]:
                # Later tries of members whose bindings failed do not extend the time.
                self.started(group)

    def note(self, group: Group | Composite, reason: str, text: str, *, is_warning: bool = False) -> None:
        """Record an event on a PodGroup, or on the owner that stands in its place."""
        if group.object is None or not group.object.uid:
            return
        metadata = group.object.metadata
        reference = {
            "apiVersion": self.groups.api_version_of(group.key),
            "kind": title_of(group.key).partition(" ")[0],
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
        }
        self._recorder.record(EventNote(reference, reason, "Scheduling", text[:1024], is_warning=is_warning))


def timeout_s(group: Group) -> float:
    """Maximum duration of a start, in seconds."""
    return float(group.object.spec.schedule_timeout_seconds if group.object else DEFAULT_TIMEOUT_S)
