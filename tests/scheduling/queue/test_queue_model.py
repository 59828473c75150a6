"""The queue against a simple model: no pod is lost, duplicated, or requeued too late.

In the world there are rooms of some size and keys of some colour. ``Fits`` rejects pods larger than every
room, ``Unlocks`` leaves pods pending that have no key, and ``Gate`` holds back pods of closed colours. All
three register for what changes their answer; after any history, a pod that sleeps, or is gated, must still
be refused by each plugin that refused it.
"""

from collections.abc import Collection
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plimsoll.framework import (
    ActionType,
    ClusterEvent,
    EventResource,
    EventWithHint,
    HintByValue,
    PodInfo,
    QueueingHint,
    Status,
    unresolvable,
)
from plimsoll.scheduling.queue.queue import FLUSH_AFTER_S, FLUSH_EVERY_S
from plimsoll.scheduling.queue.queued_pod import MAX_ASIDE_S, MAX_BACKOFF_S
from plimsoll.scheduling.queue.queueing_hints import QueueingHints
from scheduling.queue.invariants import check_queue
from scheduling.queue.queueing import a_queue, uid_of, waiting

NAMES = ["a", "b", "c", "d"]
COLOURS = ["red", "blue"]
SCALE_DOWN = ActionType.UPDATE_POD_SCALE_DOWN
LABEL = ActionType.UPDATE_POD_LABEL


def size_of(pod: PodInfo) -> int:
    """What it asks for."""
    return pod.requests["cpu"] // 1000


def colour_of(pod: PodInfo) -> str:
    """Which key it needs, and which gate it passes."""
    return pod.labels["colour"]


def fitting(sizes: Collection[int], change: ClusterEvent) -> Collection[int]:
    """A room that is large enough."""
    return [size for size in sizes if change.new >= size]


def same_colour(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """A key, or a gate, of the pod's colour."""
    return QueueingHint.of(change.new == colour_of(pod))


DECLARED = {
    "Fits": (
        EventWithHint(
            "Room", ActionType.ADD, HintByValue(lambda template: template.requests["cpu"] // 1000, fitting)
        ),
        EventWithHint(EventResource.UNSCHEDULABLE_POD, SCALE_DOWN),
    ),
    "Unlocks": (
        EventWithHint("Key", ActionType.ADD, same_colour, by_template=True),
        EventWithHint(EventResource.UNSCHEDULABLE_POD, LABEL),
    ),
    "Gate": (
        EventWithHint("Gate", ActionType.UPDATE, same_colour),
        EventWithHint(EventResource.UNSCHEDULABLE_POD, LABEL),
    ),
}


class QueueMachine(RuleBasedStateMachine):
    """Any order of watch events, attempts and time."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = a_queue(gate=self._gate)
        self.queue.use({"default-scheduler": QueueingHints(DECLARED)}, (), 0.0)
        self.now = 0.0
        self.largest_room = 0
        self.keys: set[Any] = set()
        self.closed: set[Any] = set()
        self.flying: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self.known: set[str] = set()
        self.settled: set[str] = set()
        self.popped_at = 0.0
        self.enabled = set(DECLARED)
        self.latest: ClusterEvent | None = None

    def _gate(self, pod: Any, first: str) -> Status:
        closed = colour_of(pod) in self.closed and "Gate" in self.enabled
        return unresolvable("closed").by("Gate") if closed else Status()

    def _refused_by(self, pod: Any) -> tuple[frozenset[str], ...]:
        fits_nowhere = {"Fits"} if size_of(pod) > self.largest_room else set()
        has_no_key = set() if colour_of(pod) in self.keys else {"Unlocks"}
        return frozenset(fits_nowhere & self.enabled), frozenset(has_no_key & self.enabled)

    def _happened(self, change: ClusterEvent) -> None:
        self.latest = change
        self.queue.move_all_to_active_or_backoff_queue(change, self.now)

    @initialize(sizes=st.lists(st.integers(1, 4), min_size=len(NAMES), max_size=len(NAMES)))
    def pods_wait(self, sizes: Any) -> None:
        """Most of what can happen needs some pods."""
        for name, size, colour in zip(NAMES, sizes, COLOURS * 2, strict=True):
            self.seen(name, size, colour, condition=False, priority=0)

    # -- what happens --------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        size=st.integers(1, 4),
        colour=st.sampled_from(COLOURS),
        condition=st.booleans(),
        priority=st.sampled_from([0, 10]),
    )
    def seen(self, name: str, size: int, colour: str, condition: bool, priority: int) -> None:
        """The watch shows a pod."""
        status = {"conditions": [{"type": "PodScheduled", "status": "False"}]} if condition else {}
        pod = waiting(name, cpu=str(size), labels={"colour": colour}, status=status, priority=priority)
        self.queue.add_or_update(pod, self.now)
        self.known.add(pod.uid)

    @rule(name=st.sampled_from(NAMES))
    def gone(self, name: str) -> None:
        """The watch tells that a pod is gone."""
        self.queue.remove(uid_of(name))
        self.flying.pop(uid_of(name), None)
        self.settled.discard(uid_of(name))
        self.known.discard(uid_of(name))

    @rule(size=st.integers(1, 4))
    def room_added(self, size: int) -> None:
        """There is a room of that size now."""
        self.largest_room = max(self.largest_room, size)
        self._happened(ClusterEvent("Room", ActionType.ADD, None, size))

    @rule()
    def rooms_gone(self) -> None:
        """Nothing that helps anybody: not even told."""
        self.largest_room = 0

    @rule(colour=st.sampled_from(COLOURS))
    def key_added(self, colour: str) -> None:
        """There is a key of that colour now."""
        self.keys.add(colour)
        self._happened(ClusterEvent("Key", ActionType.ADD, None, colour))

    @rule(colour=st.sampled_from(COLOURS))
    def key_lost(self, colour: str) -> None:
        """Likewise."""
        self.keys.discard(colour)

    @rule(colour=st.sampled_from(COLOURS))
    def gate_moved(self, colour: str) -> None:
        """It closes, which helps no pod, or opens."""
        if colour in self.closed:
            self.closed.discard(colour)
            self._happened(ClusterEvent("Gate", ActionType.UPDATE, colour, colour))
        else:
            self.closed.add(colour)

    @precondition(lambda self: self.latest)
    @rule()
    def seen_again(self) -> None:
        """The watch tells the latest event a second time, perhaps late."""
        self._happened(self.latest)  # type: ignore[arg-type] # by the precondition

    @rule(enabled=st.sets(st.sampled_from(sorted(DECLARED))))
    def profile_changed(self, enabled: Any) -> None:
        """Some plugins go and others come: pods in flight were tried by the old ones."""
        self.enabled = enabled
        hints = QueueingHints({name: each for name, each in DECLARED.items() if name in enabled})
        self.queue.use({"default-scheduler": hints}, {"default-scheduler"}, self.now)

    @rule()
    def another_profile_changed(self) -> None:
        """Which concerns none of these pods."""
        asleep = [list(self.queue._unschedulable), list(self.queue._gated)]
        self.queue.use({**self.queue._judge._hints, "other": QueueingHints({})}, {"other"}, self.now)
        assert asleep == [list(self.queue._unschedulable), list(self.queue._gated)]

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def activated(self, names: Any) -> None:
        """A plugin wants pods tried."""
        self.queue.activate([uid_of(name) for name in names], self.now)

    @rule(seconds=st.floats(0, 400))
    def time_passes(self, seconds: float) -> None:
        """Nothing else happens."""
        self.now += seconds

    # -- attempts ------------------------------------------------------------------------------------

    @rule(at_most=st.integers(1, 4))
    def attempt(self, at_most: int) -> None:
        """The loop takes the next pods and looks at the world as it is now."""
        for _ in range(at_most):
            queued = self.queue.pop(self.now)
            self.popped_at = self.now
            if queued is not None:
                self.flying[queued.pod.uid] = self._refused_by(queued.pod)  # type: ignore[assignment] # a fake differs on purpose

    @rule(name=st.sampled_from(NAMES))
    def taken(self, name: str) -> None:
        """A sibling of the pod that was popped is tried together with it."""
        queued = self.queue.take(uid_of(name))
        if queued is not None:
            self.flying[queued.pod.uid] = self._refused_by(queued.pod)  # type: ignore[assignment] # a fake differs on purpose

    @rule(name=st.sampled_from(NAMES), times=st.integers(1, 9))
    def set_aside(self, name: str, times: int) -> None:
        """Its attempts take too much."""
        self.queue.set_aside(uid_of(name), times, self.now)

    @precondition(lambda self: set(self.flying) - self.settled)
    @rule(data=st.data())
    def decided(self, data: Any) -> None:
        """A node is found; only the binding may fail."""
        uid = data.draw(st.sampled_from(sorted(set(self.flying) - self.settled)))
        if not any(self.flying[uid]):
            self.queue.settled(uid)
            self.settled.add(uid)

    @precondition(lambda self: self.settled)
    @rule(data=st.data())
    def decided_again(self, data: Any) -> None:
        """After all, by the cluster as it is now."""
        uid = data.draw(st.sampled_from(sorted(self.settled)))
        self.settled.discard(uid)
        self.queue.resumed(uid)
        queued = self.queue._in_flight.find(uid)
        self.flying[uid] = self._refused_by(queued.pod)  # type: ignore[assignment] # a fake differs on purpose

    @precondition(lambda self: self.flying)
    @rule(breaks=st.sets(st.sampled_from(NAMES), max_size=1), last=st.sampled_from(NAMES))
    def landed(self, breaks: Any, last: str) -> None:
        """Attempts end as they must, or by an error, though the world may be another one by now."""
        for uid in sorted(self.flying):
            if uid == uid_of(last):
                continue
            rejected_by, pending_on = self.flying.pop(uid)
            self.settled.discard(uid)
            if uid in map(uid_of, breaks):
                self.queue.add_unschedulable_if_not_present(uid, self.now, frozenset())
            elif rejected_by or pending_on:
                self.queue.add_unschedulable_if_not_present(uid, self.now, rejected_by, pending_on)
            else:
                self.queue.settled(uid)
                self.queue.done(uid)
                self.known.discard(uid)

    # -- what must hold ------------------------------------------------------------------------------

    @invariant()
    def everybody_is_somewhere(self) -> None:
        """No pod is lost, none is in two places."""
        check_queue(self.queue)
        assert self.known == {queued.pod.uid for queued in self.queue}
        assert set(self.flying) == {queued.pod.uid for queued in self.queue._in_flight}

    @invariant()
    def no_pod_oversleeps(self) -> None:
        """A sleeping pod is still refused by all that refused it; a gated one finds the gate closed."""
        for queued in self.queue._unschedulable:
            now_refusing = frozenset().union(*self._refused_by(queued.pod))
            assert queued.rejected_by | queued.pending_on <= now_refusing
        for queued in self.queue._gated:
            assert colour_of(queued.pod) in self.closed

    @invariant()
    def no_pod_waits_for_ever(self) -> None:
        """Back-offs end after ten seconds (an hour for costly pods), sleep after five minutes."""
        for queued in self.queue._unschedulable:
            assert self.popped_at - queued.timestamp <= FLUSH_AFTER_S + FLUSH_EVERY_S
        backoff = self.queue._backoff
        for heap in (backoff._pod_backoff, backoff._error_backoff):
            for queued in heap:
                longest = MAX_ASIDE_S if queued.costly_count else MAX_BACKOFF_S
                assert self.popped_at - queued.timestamp <= longest + 2

    @invariant()
    def events_are_kept_for_pods_in_flight_only(self) -> None:
        """Events of flights that are over are dropped."""
        assert set(self.flying) - self.settled or not self.queue._in_flight._events


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(stateful_step_count=40)
