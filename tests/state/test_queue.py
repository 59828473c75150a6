"""Who is next, who waits and who is woken; time is handed in."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.model.pod_info import Templates
from plimsoll.state.queue import FLUSH_AFTER_S, SchedulingQueue
from plimsoll.testing.builders import a_pod

REJECTED = frozenset({"NodeResourcesFit"})
TEMPLATES = Templates()


def waiting(name="pod", **options):
    """A pod as the queue takes it."""
    return TEMPLATES.info(a_pod(name, **options))


def a_queue(*pods, now=0.0):
    """A queue with the default order."""
    queue = SchedulingQueue(lambda pod, since: (-pod.priority, since))
    for pod in pods:
        queue.set(pod, now)
    return queue


def popped(queue, now):
    """The names of everybody who may be tried now, in order."""
    names = []
    while (queued := queue.pop(now)) is not None:
        names.append(queued.pod.name)
    return names


def test_higher_priority_goes_first_then_the_older():
    """PrioritySort: priority, then time in the queue."""
    queue = a_queue(waiting("old"))
    queue.set(waiting("young"), 1.0)
    queue.set(waiting("urgent", priority=10), 2.0)

    assert popped(queue, 3.0) == ["urgent", "old", "young"]


def test_unschedulable_pods_sleep_until_something_happens():
    """A rejected pod is not tried again by time alone before the flush."""
    queue = a_queue(waiting())
    queue.pop(0.0)
    queue.failed("uid-default-pod", 0.5, REJECTED)

    assert popped(queue, 60.0) == []
    queue.wake(60.0)
    assert popped(queue, 60.0) == ["pod"]


def test_back_off_doubles_up_to_ten_seconds():
    """1, 2, 4, 8, 10, 10 seconds after each rejected attempt, though woken at once."""
    queue = a_queue(waiting())
    now, pauses = 100.0, []

    for _ in range(6):
        assert popped(queue, now) == ["pod"]
        queue.failed("uid-default-pod", now, REJECTED)
        queue.wake(now)
        until = next(later for later in range(1, 60) if queue.next_due() <= now + later)
        pauses.append(until - 1)  # a second is over when the next one begins
        now += until

    assert pauses == [1, 2, 4, 8, 10, 10]


def test_an_event_during_the_attempt_is_not_lost():
    """What happened between a pod's pop and its failure may be what it needed."""
    queue = a_queue(waiting())
    queue.pop(0.0)
    queue.wake(0.1)
    queue.failed("uid-default-pod", 0.2, REJECTED)

    assert queue.depths()["unschedulable"] == 0
    assert popped(queue, 2.0) == ["pod"]


def test_our_own_condition_does_not_put_a_woken_pod_back_to_sleep():
    """The watch brings the condition that we wrote after the pod was woken: it stays woken."""
    queue = a_queue(waiting())
    queue.pop(0.0)
    queue.failed("uid-default-pod", 0.1, REJECTED)
    queue.wake(0.2)

    queue.set(waiting(status={"conditions": [{"type": "PodScheduled", "status": "False"}]}), 0.3)

    assert queue.depths()["unschedulable"] == 0
    assert popped(queue, 5.0) == ["pod"]


def test_our_own_condition_wakes_nobody():
    """Otherwise each failure would cause the next attempt."""
    queue = a_queue(waiting())
    queue.pop(0.0)
    queue.failed("uid-default-pod", 0.1, REJECTED)

    queue.set(waiting(status={"conditions": [{"type": "PodScheduled", "status": "False"}]}), 0.3)

    assert popped(queue, 60.0) == []


def test_a_changed_pod_is_tried_again():
    """Whoever changes what a pod asks for need not wait for the cluster."""
    queue = a_queue(waiting(cpu="64"))
    queue.pop(0.0)
    queue.failed("uid-default-pod", 0.1, REJECTED)

    queue.set(waiting(cpu="1"), 0.3)

    assert popped(queue, 5.0) == ["pod"]


def test_a_gated_pod_waits_for_its_gate():
    """Neither events nor the flush release it."""
    queue = a_queue()
    queue.set(waiting(), 0.0, gated_by="SchedulingGates")

    queue.wake(1.0)

    assert popped(queue, FLUSH_AFTER_S + 60) == []
    queue.set(waiting(), 400.0)
    assert popped(queue, 400.0) == ["pod"]


def test_sleepers_are_tried_after_five_minutes():
    """Whatever was overlooked is made up for."""
    queue = a_queue(waiting())
    queue.pop(0.0)
    queue.failed("uid-default-pod", 0.0, REJECTED)

    assert popped(queue, FLUSH_AFTER_S) == []
    assert popped(queue, FLUSH_AFTER_S + 1) == ["pod"]


def test_a_pod_removed_in_flight_does_not_come_back():
    """Deleted while it was being scheduled: its failure changes nothing."""
    queue = a_queue(waiting())
    queue.pop(0.0)

    queue.remove("uid-default-pod")
    queue.failed("uid-default-pod", 1.0, frozenset())

    assert "uid-default-pod" not in queue


NAMES = st.sampled_from(["a", "b", "c", "d"])


class QueueMachine(RuleBasedStateMachine):
    """Any order of watch events, attempts and time: every pod is in one place, and none is lost."""

    def __init__(self):
        super().__init__()
        self.queue = a_queue()
        self.now = 0.0
        self.flying: list[str] = []
        self.known: set[str] = set()

    @rule(name=NAMES, cpu=st.sampled_from(["1", "2"]), gated=st.booleans())
    def seen(self, name, cpu, gated):
        """The watch tells of a pod."""
        self.queue.set(waiting(name, cpu=cpu), self.now, "SchedulingGates" if gated else "")
        self.known.add(f"uid-default-{name}")

    @rule(name=NAMES)
    def gone(self, name):
        """The watch tells that a pod is gone."""
        self.queue.remove(f"uid-default-{name}")
        self.known.discard(f"uid-default-{name}")

    @rule(seconds=st.floats(0, 400))
    def time_passes(self, seconds):
        """Nothing else happens."""
        self.now += seconds

    @rule()
    def something_happens(self):
        """An event that may help."""
        self.queue.wake(self.now)

    @rule()
    def attempt(self):
        """The loop takes the next pod."""
        queued = self.queue.pop(self.now)
        if queued is not None:
            self.flying.append(queued.pod.uid)

    @rule(rejected=st.booleans())
    def fail(self, rejected):
        """An attempt fails."""
        if self.flying:
            self.queue.failed(self.flying.pop(0), self.now, REJECTED if rejected else frozenset())

    @rule()
    def bind(self):
        """An attempt succeeds."""
        if self.flying:
            uid = self.flying.pop(0)
            self.queue.bound(uid)
            if uid not in self.queue:
                self.known.discard(uid)

    @invariant()
    def everybody_is_somewhere(self):
        """Nobody is lost, nobody is in two places."""
        self.queue.validate()
        assert self.known == {queued.pod.uid for queued in self.queue}


TestQueueMachine = QueueMachine.TestCase


def test_a_pod_is_taken_along_wherever_it_waits():
    """From the active queue, back-off and unschedulable; not from behind a gate, and not twice."""
    queue = a_queue(waiting("slept"), waiting("backs-off"))
    for name, rejected in (("slept", REJECTED), ("backs-off", frozenset())):
        queue.pop(0.0)
        queue.failed(f"uid-default-{name}", 0.0, rejected)
    queue.set(waiting("active"), 0.0)
    queue.set(waiting("gated"), 0.0, gated_by="SchedulingGates")

    taken = [
        queue.take(f"uid-default-{name}") for name in ("slept", "backs-off", "active", "gated", "active")
    ]

    assert [each and each.pod.name for each in taken] == ["slept", "backs-off", "active", None, None]
    assert [each.attempts for each in taken if each] == [2, 2, 1]
    assert queue.pop(100.0) is None
    queue.validate()
