"""The active pods queue by queue: the poorest queue first, within one scheduler name."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.kinds.pod_info import PodInfo, Templates
from plimsoll.scheduling.fair_share.heap import FairHeap
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.testing.builders import a_pod

TEMPLATES = Templates()


def queued(name: str, queue: str = "", scheduler: str = "s") -> QueuedPod:
    """A waiting pod of a queue."""
    pod = a_pod(name, schedulerName=scheduler, labels={"queue": queue} if queue else {})
    return QueuedPod(TEMPLATES.info(pod), 0.0, 0.0)


def a_heap(got: dict[str, float]) -> FairHeap:
    """Pods go by the label ``queue``; those without have no queue. ``got``: what queues have."""

    def heap_of(pod: PodInfo) -> tuple[str, ...]:
        queue = pod.labels.get("queue")
        return (pod.pod.spec.scheduler_name, queue) if queue else ("", "")

    return FairHeap(heap_of, lambda key: (got.get(key[1], 0.0),))  # type: ignore[arg-type] # a fake has only what is used


def test_the_queue_that_has_got_the_least_goes_first() -> None:
    """Its own order counts within it, however urgent the others' pods; what it has changes with each pop."""
    got = {"a": 0.0, "b": 0.1}
    heap = a_heap(got)
    for key, name, queue in ((1, "a1", "a"), (2, "a2", "a"), (0, "b1", "b"), (3, "b2", "b")):
        heap.push(key, queued(name, queue))
    names = []
    while (top := heap.pop()) is not None:
        got[top.pod.labels["queue"]] += 0.15
        names.append(top.pod.name)

    assert names == ["a1", "b1", "a2", "b2"]


def test_other_schedulers_and_pods_without_queues_keep_their_place() -> None:
    """Fairness is within one name: among the candidates the sort key decides."""
    heap = a_heap({"a": 0.9})
    heap.push(5, queued("fair", "a"))
    heap.push(3, queued("plain"))
    heap.push(4, queued("other", "x", scheduler="t"))

    assert [heap.pop().pod.name for _ in range(3)] == ["plain", "other", "fair"]


def test_equal_queues_are_served_by_their_sort_keys() -> None:
    """No queue has anything yet."""
    heap = a_heap({})
    heap.push(2, queued("late", "a"))
    heap.push(1, queued("early", "b"))

    assert heap.pop().pod.name == "early"


def test_a_pod_that_changes_its_queue_is_in_one_only() -> None:
    """Its label was changed while it waits."""
    heap = a_heap({})
    heap.push(1, queued("p", "a"))
    heap.push(1, queued("p", "b"))

    assert len(heap) == 1
    assert heap.take("uid-default-p").pod.labels["queue"] == "b"
    assert heap.pop() is None


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 12)), max_size=40))
def test_every_pod_comes_out_once(pushed: list[tuple[int, str, int]]) -> None:
    """Whatever is pushed again, taken out or found in between."""
    heap = a_heap({"a": 0.5})
    there: set[Any] = set()
    for key, queue, number in pushed:
        if number > 10 and there:
            assert heap.take(there.pop()) is not None
        else:
            heap.push(key, queued(f"p{number}", queue))
            there.add(f"uid-default-p{number}")
        assert {each.pod.uid for each in heap} == there
        assert len(heap) == len(there)
    out = []
    while (top := heap.pop()) is not None:
        out.append(top.pod.uid)

    assert sorted(out) == sorted(there)
