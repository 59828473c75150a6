"""Order, waiting and back-off of pods in the queue, with injected time."""

from typing import Any

import pytest

from plimsoll.framework import PodInfo, Status, unresolvable
from plimsoll.scheduling.queue.queue import FLUSH_AFTER_S, FLUSH_EVERY_S
from plimsoll.scheduling.queue.queued_pod import STALLED_ERRORS, STALLED_S
from plimsoll.scheduling.queue.queueing_hints import UNKNOWN, QueueingHints
from scheduling.queue.invariants import check_queue
from scheduling.queue.queueing import (
    REJECTED,
    BusyQueue,
    Entries,
    a_queue,
    asleep,
    node_added,
    pod_gone,
    popped,
    uid_of,
    waiting,
)


def gate_of(closed: Any) -> Any:
    """A gate that holds back pods of these names; the set may change."""

    def gate(pod: PodInfo, first: str) -> Status:
        return unresolvable("closed").by("Gate") if pod.name in closed else Status()

    return gate


def test_higher_priority_goes_first_then_the_older() -> None:
    """PrioritySort: priority, then time in the queue."""
    queue = a_queue(waiting("old"))
    queue.add_or_update(waiting("young"), 1.0)
    queue.add_or_update(waiting("urgent", priority=10), 2.0)

    assert popped(queue, 3.0) == ["urgent", "old", "young"]


def test_a_waiting_pod_is_found_with_those_before_it() -> None:
    """Active pods count by the order in which they are tried; others have no order."""
    queue = a_queue(waiting("asleep"))
    asleep(queue, "asleep")
    queue.add_or_update(waiting("old"), 0.5)
    queue.add_or_update(waiting("young"), 1.0)
    queue.add_or_update(waiting("urgent", priority=10), 2.0)
    queue.add_or_update(waiting("tried", priority=99), 2.0)
    assert queue.pop(3.0) is not None

    found = {name: queue.whereabouts(uid_of(name)) for name in ("old", "young", "urgent", "asleep", "tried")}

    assert {name: (each[0], each[2]) for name, each in found.items() if each is not None} == {
        "urgent": ("active", 0),
        "old": ("active", 1),
        "young": ("active", 2),
        "asleep": ("unschedulable", 0),
        "tried": ("in flight", 0),
    }
    assert queue.whereabouts("gone") is None


def test_an_active_pod_takes_the_place_of_its_new_state() -> None:
    """Its priority was raised while it waited."""
    queue = a_queue(waiting("first"), waiting("second"))

    queue.add_or_update(waiting("second", priority=5), 1.0)

    assert popped(queue, 1.0) == ["second", "first"]


def test_unschedulable_pods_sleep_until_something_happens() -> None:
    """A rejected pod is not tried again by time alone before the flush."""
    queue = a_queue(waiting())
    asleep(queue, "pod", now=0.5)

    assert popped(queue, 60.0) == []
    assert queue.move_all_to_active_or_backoff_queue(node_added(), 60.0) == 1
    assert popped(queue, 60.0) == ["pod"]


def test_back_off_doubles_up_to_ten_seconds() -> None:
    """1, 2, 4, 8, 10, 10 seconds after each rejected attempt, though woken immediately."""
    queue = a_queue(waiting())
    busy = BusyQueue(queue)
    now, pauses = 100.0, []

    for _ in range(6):
        assert busy.popped(now) == ["pod"]
        queue.add_unschedulable_if_not_present(uid_of(), now, REJECTED)
        queue.move_all_to_active_or_backoff_queue(node_added(), now)
        until = next(later for later in range(1, 60) if queue.next_due() <= now + later)
        assert busy.popped(now + until - 1) == []
        pauses.append(until - 1)  # a second is over when the next one begins
        now += until

    assert pauses == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(("failed_at", "ready_at"), [(100.0, 102.0), (100.9, 102.0), (101.0, 103.0)])
def test_back_offs_end_with_whole_seconds(failed_at: float, ready_at: float) -> None:
    """All pods whose back-off ends within one second come together when it is over."""
    queue = a_queue(waiting())
    queue.pop(failed_at)
    queue.add_unschedulable_if_not_present(uid_of(), failed_at, frozenset())

    assert popped(queue, ready_at - 0.01) == []
    assert popped(queue, ready_at) == ["pod"]


def test_back_off_is_cut_short_while_no_pod_is_active() -> None:
    """The head of the rejected ones is tried; those that failed by an error sit theirs out."""
    observer = Entries()
    queue = a_queue(waiting("refused"), waiting("broken"), observer=observer)
    queue.pop(0.0), queue.pop(0.0)
    queue.add_unschedulable_if_not_present(uid_of("refused"), 0.0, REJECTED)
    queue.add_unschedulable_if_not_present(uid_of("broken"), 0.0, frozenset())
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.0)

    assert popped(queue, 0.0) == ["refused"]
    assert observer.seen[-1] == ("active", "PopFromBackoffQ")
    assert popped(queue, 2.0) == ["broken"]


def test_errors_back_off_by_themselves() -> None:
    """Errors in a row double; a rejection in between begins again, and counts all rejections."""
    queue = a_queue(waiting())
    queued = queue.pop(0.0)
    pauses = []
    for rejected in (frozenset(), frozenset(), REJECTED, frozenset(), REJECTED):
        queue.add_unschedulable_if_not_present(uid_of(), 0.0, rejected)
        pauses.append(queued.backoff_s())
        queue.take(uid_of())

    assert pauses == [1.0, 2.0, 1.0, 1.0, 2.0]


def test_who_is_woken_by_our_own_failure_sits_out_the_back_off() -> None:
    """Two pods that are refused again and again do not wake each other without a pause."""
    queue = a_queue(waiting("one"), waiting("other"))
    asleep(queue, "one", "other")

    queue.move_all_to_active_or_backoff_queue(pod_gone("one"), 0.0, but=uid_of("one"), is_ours=True)

    assert queue.depths() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}
    assert popped(queue, 1.0) == []
    assert popped(queue, 2.0) == ["other"]


def test_an_event_during_the_attempt_is_not_lost() -> None:
    """What happened between a pod's pop and its failure may be what it needed."""
    queue = a_queue(waiting())
    queue.pop(0.0)
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.1)
    queue.add_unschedulable_if_not_present(uid_of(), 0.2, REJECTED)

    assert queue.depths()["unschedulable"] == 0
    assert popped(queue, 2.0) == ["pod"]


def test_our_own_condition_does_not_put_a_woken_pod_back_to_sleep() -> None:
    """The watch brings the condition that we wrote after the pod was woken: it stays woken."""
    queue = a_queue(waiting())
    asleep(queue, "pod", now=0.1)
    queue.move_all_to_active_or_backoff_queue(node_added(), 0.2)

    queue.add_or_update(waiting(status={"conditions": [{"type": "PodScheduled", "status": "False"}]}), 0.3)

    assert queue.depths()["unschedulable"] == 0
    assert popped(queue, 5.0) == ["pod"]


def test_our_own_condition_wakes_no_pod() -> None:
    """Otherwise each failure would cause the next attempt."""
    queue = a_queue(waiting())
    asleep(queue, "pod", now=0.1)

    queue.add_or_update(waiting(status={"conditions": [{"type": "PodScheduled", "status": "False"}]}), 0.3)

    assert popped(queue, 60.0) == []


def test_a_changed_pod_is_tried_again() -> None:
    """A pod whose requests changed need not wait for the cluster."""
    queue = a_queue(waiting(cpu="64"))
    asleep(queue, "pod", now=0.1)

    queue.add_or_update(waiting(cpu="1"), 0.3)

    assert popped(queue, 5.0) == ["pod"]


def test_a_pod_of_which_two_things_change_together_is_queued_once() -> None:
    """Either change would wake it."""
    entries = Entries()
    queue = a_queue(waiting(cpu="64"), observer=entries)
    asleep(queue, "pod", now=0.1)
    entries.seen.clear()

    queue.add_or_update(waiting(cpu="1", labels={"tier": "web"}), 5.0)

    assert [entered for entered, _ in entries.seen] == ["active"]
    assert popped(queue, 5.0) == ["pod"]
    check_queue(queue)


def test_a_pod_changed_in_flight_is_tried_as_it_is_now() -> None:
    """Its failure was that of its former state."""
    queue = a_queue(waiting(cpu="64"))
    queue.pop(0.0)
    queue.add_or_update(waiting(cpu="1"), 0.1)
    queue.add_unschedulable_if_not_present(uid_of(), 0.2, REJECTED)

    queued = queue.pop(5.0)

    assert queued.pod.requests["cpu"] == 1000


def test_a_gated_pod_waits_for_its_gate() -> None:
    """The flush does not release it; a change of the pod has the gate asked again."""
    closed = {"pod"}
    queue = a_queue(gate=gate_of(closed))
    queue.add_or_update(waiting(), 0.0)

    assert queue.depths()["gated"] == 1
    assert popped(queue, FLUSH_AFTER_S + 60) == []
    closed.clear()
    queue.add_or_update(waiting(labels={"gate": "open"}), 400.0)
    queued = queue.pop(400.0)
    assert queued.pod.name == "pod"
    assert queued.first_seen == 400.0  # time behind the gate is no delay


def test_the_gate_is_asked_when_a_pod_is_woken() -> None:
    """It was open at first; the woken pod stays behind it until it opens again."""
    closed: set[str] = set()
    queue = a_queue(waiting(), gate=gate_of(closed))
    asleep(queue, "pod")
    closed.add("pod")

    queue.move_all_to_active_or_backoff_queue(node_added(), 1.0)

    assert queue.depths() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    closed.clear()
    queue.move_all_to_active_or_backoff_queue(node_added(), 2.0)
    assert popped(queue, 5.0) == ["pod"]


def test_the_gate_is_not_asked_when_the_back_off_is_over() -> None:
    """It agreed when the back-off began."""
    closed: set[str] = set()
    queue = a_queue(waiting(), gate=gate_of(closed))
    queue.pop(0.0)
    queue.add_unschedulable_if_not_present(uid_of(), 0.0, frozenset())
    closed.add("pod")

    assert popped(queue, 2.0) == ["pod"]


def test_sleepers_are_tried_after_five_minutes() -> None:
    """Whatever was overlooked is made up for, at the next round of the flush."""
    observer = Entries()
    queue = a_queue(waiting(), observer=observer)
    asleep(queue, "pod")

    assert popped(queue, FLUSH_AFTER_S) == []
    assert queue.next_due() == FLUSH_AFTER_S + FLUSH_EVERY_S
    assert popped(queue, FLUSH_AFTER_S + FLUSH_EVERY_S) == ["pod"]
    assert observer.seen[-1] == ("active", "UnschedulableTimeout")


def test_a_pod_removed_in_flight_does_not_come_back() -> None:
    """Deleted while it was being scheduled: its failure changes nothing."""
    queue = a_queue(waiting())
    queue.pop(0.0)

    queue.remove(uid_of())
    queue.add_unschedulable_if_not_present(uid_of(), 1.0, frozenset())

    assert uid_of() not in queue


def test_plugins_activate_pods() -> None:
    """From back-off and unschedulable immediately; one in flight is remembered; a gate holds all the same."""
    closed: set[str] = set()
    queue = a_queue(
        waiting("slept"), waiting("broken"), waiting("flying"), waiting("gated"), gate=gate_of(closed)
    )
    asleep(queue, "slept")
    queue.pop(0.0)
    queue.add_unschedulable_if_not_present(uid_of("broken"), 0.0, frozenset())
    queue.pop(0.0)
    asleep(queue, "gated")
    closed.add("gated")

    queue.activate([uid_of(name) for name in ("slept", "broken", "flying", "gated", "unknown")], 0.5)

    assert popped(queue, 0.5) == ["slept", "broken"]
    queue.add_unschedulable_if_not_present(uid_of("flying"), 0.5, REJECTED)
    assert queue.depths() == {"active": 0, "backoff": 1, "unschedulable": 0, "gated": 1}


def test_a_pod_is_taken_along_wherever_it_waits() -> None:
    """From the active queue, back-off and unschedulable; not from behind a gate, and not twice."""
    closed = {"gated"}
    queue = a_queue(waiting("slept"), waiting("backs-off"), gate=gate_of(closed))
    for name, rejected in (("slept", REJECTED), ("backs-off", frozenset())):
        queue.pop(0.0)
        queue.add_unschedulable_if_not_present(uid_of(name), 0.0, rejected)
    queue.add_or_update(waiting("active"), 0.0)
    queue.add_or_update(waiting("gated"), 0.0)

    taken = [queue.take(uid_of(name)) for name in ("slept", "backs-off", "active", "gated", "active")]

    assert [each and each.pod.name for each in taken] == ["slept", "backs-off", "active", None, None]
    assert [each.attempts for each in taken if each] == [2, 2, 1]
    assert queue.pop(100.0) is None
    check_queue(queue)


def test_entries_are_reported_with_their_reason() -> None:
    """The queues and events of kube-scheduler's queue_incoming_pods_total."""
    observer = Entries()
    queue = a_queue(waiting(), observer=observer)
    asleep(queue, "pod")
    queue.move_all_to_active_or_backoff_queue(pod_gone(), 0.0)
    queue.pop(2.0)
    queue.add_unschedulable_if_not_present(uid_of(), 2.0, frozenset())
    queue.activate([uid_of()], 2.5)

    assert observer.seen == [
        ("active", "UnschedulablePodAdd"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "AssignedPodDelete"),
        ("active", "BackoffComplete"),
        ("backoff", "ScheduleAttemptFailure"),
        ("active", "ForceActivate"),
    ]


def test_a_pod_that_is_never_tried_is_stalled_after_ten_minutes() -> None:
    """A gate that holds it explains the wait; time behind the gate does not count."""
    closed = {"gated"}
    queue = a_queue(gate=gate_of(closed))
    queue.add_or_update(waiting("tried-never"), 0.0)
    queue.add_or_update(waiting("gated"), 0.0)

    def stalled(now: float) -> set[str]:
        return {each.pod.name for each in queue if each.is_stalled(now)}

    assert stalled(STALLED_S) == set()
    assert stalled(STALLED_S + 1) == {"tried-never"}


def test_a_pod_that_keeps_failing_by_errors_is_stalled_and_a_rejected_one_is_not() -> None:
    """After five errors in a row; a plugin's rejection explains the wait until the next attempt has ended."""
    queue = a_queue(waiting())

    def attempt(now: float, *rejected_by: str) -> Any:
        queue.activate([uid_of("pod")], now)
        (queued,) = [queue.pop(now)]
        queue.add_unschedulable_if_not_present(uid_of("pod"), now, frozenset(rejected_by))
        return queued

    late = STALLED_S + 1
    assert not attempt(late, "Fit").is_stalled(late)
    for _ in range(STALLED_ERRORS - 1):
        assert not attempt(late).is_stalled(late)
    assert attempt(late).is_stalled(late)
    assert not attempt(late, "Fit").is_stalled(late)


def test_a_pod_that_a_plugin_rejects_while_that_plugin_goes_is_tried_again() -> None:
    """Its attempt was made by the profile before; no event of the plugin that is gone would help it."""
    queue = a_queue(waiting("a"), waiting("b", schedulerName="other"))
    queue.pop(0.0)
    queue.pop(0.0)

    queue.use({"default-scheduler": QueueingHints({}), "other": UNKNOWN}, {"default-scheduler"}, 0.0)
    for name in "ab":
        queue.add_unschedulable_if_not_present(uid_of(name), 0.0, REJECTED)

    assert popped(queue, 2.0) == ["a"]
