"""Measures the queue's CPU seconds for an event while many pods are unschedulable.

Each scenario lets pods sleep, rejected by NodeResourcesFit and TaintToleration of the default profile, and
then tells as many changes of nodes. The shapes say how many templates the pods have between them: siblings
share the answer of a hint.

    make bench-queue ARGS="--pods 10000 --events 1000"
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from output import append

from plimsoll.framework import ActionType, ClusterEvent, EventResource, Node, Registry
from plimsoll.model.kinds.pod_info import Templates
from plimsoll.plugins import IN_TREE
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queueing_hints import hints_of
from plimsoll.testing.builders import a_node, a_pod

PROFILE = "default-scheduler"
REJECTED_BY = frozenset({"NodeResourcesFit", "TaintToleration"})


def sleeping(pods: int, shapes: int) -> SchedulingQueue:
    """A queue in which all pods are unschedulable, each asking for more than any node has."""
    queue = SchedulingQueue(lambda pod, since: (-pod.priority, since))
    registry = Registry(IN_TREE)
    plugins = [registry.build(name, None, "spec") for name in registry]
    queue.use({PROFILE: hints_of(plugins)}, (), 0.0)
    templates = Templates()
    for number in range(pods):
        pod = a_pod(f"p-{number}", cpu=str(1000 + number % shapes), labels={"app": "a"})
        queue.add_or_update(templates.info(pod), 0.0)
    while (queued := queue.pop(0.0)) is not None:
        queue.add_unschedulable_if_not_present(queued.pod.uid, 0.0, REJECTED_BY)
    return queue


def node_changes(
    events: int, action: ActionType, change: Callable[[Node, int], Node]
) -> Iterator[ClusterEvent]:
    """As many updates, each of another node."""
    for number in range(events):
        old = a_node(f"n-{number}", cpu="4", taints=["dedicated=yes:NoSchedule"])
        yield ClusterEvent(EventResource.NODE, action, old, change(old, number))


def more_cpu(node: Node, _number: int) -> Node:
    """Not enough for anybody: every hint has to look, and says no."""
    status = msgspec.structs.replace(node.status, allocatable={**node.status.allocatable, "cpu": "8"})
    return msgspec.structs.replace(node, status=status)


def other_taint(node: Node, number: int) -> Node:
    """Another taint that no pod tolerates."""
    changed = a_node(node.name, cpu="4", taints=[f"dedicated={number}:NoSchedule"])
    return msgspec.structs.replace(node, spec=changed.spec)


def other_annotation(node: Node, number: int) -> Node:
    """No plugin registered for it."""
    return msgspec.structs.replace(
        node, metadata=msgspec.structs.replace(node.metadata, annotations={"seen": str(number)})
    )


def room_for_all(node: Node, _number: int) -> Node:
    """Every pod would fit the empty node: the first event wakes them all."""
    status = msgspec.structs.replace(node.status, allocatable={**node.status.allocatable, "cpu": "1000000"})
    return msgspec.structs.replace(node, status=status)


SCENARIOS = {
    "more cpu, too little": (ActionType.UPDATE_NODE_ALLOCATABLE, more_cpu),
    "another taint": (ActionType.UPDATE_NODE_TAINT, other_taint),
    "another annotation": (ActionType.UPDATE_NODE_ANNOTATION, other_annotation),
    "room for all": (ActionType.UPDATE_NODE_ALLOCATABLE, room_for_all),
}


def main() -> None:
    """Print one line a scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1_000)
    parser.add_argument("--shapes", type=int, nargs="*", default=[1, 100, 10_000])
    parser.add_argument("--output", type=Path, help="append each result as a line of JSON")
    options = parser.parse_args()
    print(f"{options.pods} unschedulable pods, {options.events} node updates")
    print(f"{'event':22} {'shapes':>7} {'woken':>7} {'CPU s':>8} {'us/event':>9}")
    for name, (action, change) in SCENARIOS.items():
        for shapes in options.shapes:
            queue = sleeping(options.pods, shapes)
            changes = list(node_changes(options.events, action, change))
            began = time.process_time()
            woken = sum(queue.move_all_to_active_or_backoff_queue(each, 1.0) for each in changes)
            seconds = time.process_time() - began
            each_us = seconds / options.events * 1e6
            print(f"{name:22} {shapes:7} {woken:7} {seconds:8.3f} {each_us:9.1f}")
            append(options.output, event=name, templates=shapes, woken=woken, event_us=each_us)


if __name__ == "__main__":
    main()
