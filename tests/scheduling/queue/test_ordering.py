"""The queue's order is the profiles' QueueSort plugin; one that breaks costs a pod its place, no more."""

from types import SimpleNamespace
from typing import Any, cast

from plimsoll.framework import NoArgs
from plimsoll.model.kinds.pod import Pod
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.pod_heap import STALE_ENTRIES, PodHeap
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queue_plugins import QueuePlugins
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.testing.builders import a_pod, the_info
from plimsoll.testing.fakes import FakeClock
from scheduling.queue.invariants import check_queue


class Told(Observer):
    def __init__(self) -> None:
        self.plugins: list[Any] = []

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        self.plugins.append((plugin, point))


class SortByName:
    name = "SortByName"

    def sort_key(self, pod: Any, timestamp: float) -> Any:
        if pod.labels.get("break"):
            raise ValueError("as asked")
        return pod.pod.name


def the_order(*plugins: SortByName, pods: list[Pod]) -> tuple[list[str], Told]:
    """The names in which these pods are popped, and what the observer received."""
    observer = Told()
    called = QueuePlugins(PrioritySort(NoArgs()), FakeClock(), observer)
    queue = SchedulingQueue(called.sort_key)
    for at, pod in enumerate(pods):
        queue.add_or_update(the_info(pod), float(at))
    profiles: list[Any] = [
        SimpleNamespace(queue_sort=each, pre_enqueue=(), plugins=(), extenders=()) for each in plugins
    ]
    called.serve(
        {str(at): cast("Any", SimpleNamespace(profile=profile)) for at, profile in enumerate(profiles)}
    )
    called.sort_by_profiles()
    queue.resort()
    check_queue(queue)
    return [queue.pop(100.0).pod.pod.name for _ in pods], observer


PODS = [a_pod("b"), a_pod("c", priority=9), a_pod("a")]


def test_pods_that_were_taken_out_take_no_memory() -> None:
    """A standby never pops; others bind the pods, thousands an hour."""
    heap = PodHeap()
    stays = [QueuedPod(the_info(a_pod(name)), 0.0, 0.0) for name in ("second", "first")]
    for key, queued in ((2, stays[0]), (1, stays[1])):
        heap.push(key, queued)
    for number in range(3 * STALE_ENTRIES):
        queued = QueuedPod(the_info(a_pod(f"pod-{number}")), 0.0, 0.0)
        heap.push(0, queued)
        heap.take(queued.pod.uid)

    assert len(heap._entries) <= 2 * len(stays) + STALE_ENTRIES
    assert [heap.pop(), heap.pop(), heap.pop()] == [stays[1], stays[0], None]


def test_a_heap_that_was_built_again_is_still_in_order() -> None:
    """Whatever came when; ``ahead_of`` says how many go first."""
    heap = PodHeap()
    stays = [QueuedPod(the_info(a_pod(f"p{key}")), 0.0, 0.0) for key in range(40)]
    order = [*range(39, -1, -2), *range(0, 40, 2)]
    for key in order:
        heap.push(key, stays[key])
    is_rebuilt = False
    for number in range(2 * STALE_ENTRIES):
        queued = QueuedPod(the_info(a_pod(f"pod-{number}")), 0.0, 0.0)
        before = len(heap._entries)
        heap.push(-number, queued)
        is_rebuilt = len(heap._entries) <= before
        heap.take(queued.pod.uid)
        if is_rebuilt:
            break

    assert is_rebuilt
    assert [heap.ahead_of(each.pod.uid) for each in stays] == [*range(40)]
    assert [heap.pop() for _ in stays] == stays


def test_without_a_policy_the_most_important_goes_first() -> None:
    """As kube-scheduler's default has it."""
    assert the_order(pods=PODS)[0] == ["c", "b", "a"]


def test_a_profiles_plugin_sorts_what_waits_already() -> None:
    """The order changes immediately."""
    assert the_order(SortByName(), pods=PODS)[0] == ["a", "b", "c"]


def test_a_pod_whose_key_cannot_be_had_goes_last() -> None:
    """The plugin is named; the others keep their order."""
    broken = [a_pod("x", labels={"break": "1"}), a_pod("y", labels={"break": "1"})]

    names, observer = the_order(SortByName(), pods=[*broken, *PODS])

    assert names == ["a", "b", "c", "x", "y"]
    assert set(observer.plugins) == {("SortByName", "queueSort")}
