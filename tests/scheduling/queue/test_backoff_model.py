"""The back-off queue against a plain list, in any order of pushes, updates, removals and time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from plimsoll.scheduling.queue.backoff_queue import BackoffQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from scheduling.queue.queueing import uid_of, waiting

NAMES = st.sampled_from(["a", "b", "c", "d"])


@dataclass
class Held:
    """A pod in back-off as the model has it."""

    ends: int
    priority: int
    since: float
    is_error: bool


def backoff_s(*, failures: int, costly: int) -> float:
    """Doubling from a second to ten; after a costly attempt from a minute to an hour."""
    return min(60.0 * 2 ** (costly - 1), 3600.0) if costly else min(2.0 ** (failures - 1), 10.0)


class BackoffMachine(RuleBasedStateMachine):
    """A pod's back-off is over after the whole second in which it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = BackoffQueue(lambda pod, since: (-pod.priority, since))
        self.now = 0.0
        self.held: dict[str, Held] = {}

    @rule(
        name=NAMES,
        failures=st.integers(1, 8),
        costly=st.sampled_from([0, 0, 0, 1, 3, 9]),
        priority=st.integers(0, 2),
        is_error=st.booleans(),
    )
    def push(self, name: str, failures: int, costly: int, priority: int, is_error: bool) -> None:
        if name in self.held:
            return
        counts = {"error_count": failures} if is_error else {"unschedulable_count": failures}
        pod = QueuedPod(waiting(name, priority=priority), self.now, 0.0, costly_count=costly, **counts)  # type: ignore[arg-type] # counts
        ends = math.floor(self.now + backoff_s(failures=failures, costly=costly))
        self.queue.push(pod, is_error=is_error)
        self.held[name] = Held(ends, priority, self.now, is_error)

    @rule(name=NAMES, priority=st.integers(0, 2))
    def update(self, name: str, priority: int) -> None:
        assert self.queue.update(waiting(name, priority=priority)) == (name in self.held)
        if name in self.held:
            self.held[name].priority = priority

    @rule(name=NAMES)
    def take(self, name: str) -> None:
        taken = self.queue.take(uid_of(name))
        assert (taken is not None) == (self.held.pop(name, None) is not None)

    @rule()
    def pop_early(self) -> None:
        early = {name: each for name, each in self.held.items() if not each.is_error}
        taken = self.queue.pop_early()
        order = [(each.ends, -each.priority, each.since) for each in early.values()]
        if taken is None:
            assert not early
            return
        one = self.held.pop(taken.pod.name)
        assert (one.ends, -one.priority, one.since) == min(order)

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0, 10.0, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        over = {name for name, each in self.held.items() if each.ends < math.floor(self.now)}
        assert {each.pod.name for each in self.queue.pop_completed(self.now)} == over
        for name in over:
            del self.held[name]

    @precondition(lambda self: self.held)
    @rule()
    def wait_until_next(self) -> None:
        """The loop sleeps until then: a pod is ready, and none was before."""
        due = self.queue.next_due()
        assert due is not None
        assert not [*self.queue.pop_completed(due - 0.01)]
        self.wait(due - self.now)

    @invariant()
    def the_next_end_is_known(self) -> None:
        ends = [each.ends + 1.0 for each in self.held.values()]
        assert self.queue.next_due() == min(ends, default=None)
        assert len(self.queue) == len(self.held)
        assert {each.pod.name for each in self.queue} == self.held.keys()
        assert all((uid_of(name) in self.queue) == (name in self.held) for name in "abcd")


BackoffMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
test_backoff_queue = BackoffMachine.TestCase
