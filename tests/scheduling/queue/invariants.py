"""Invariants of the scheduling queue, checked by tests after each step."""

from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.unschedulable_pods import UnschedulablePods, rejection_of


def check_queue(queue: SchedulingQueue) -> None:
    """Check that every pod is in exactly one queue."""
    uids = [queued.pod.uid for queued in queue]
    assert len(uids) == len(set(uids))
    _check_unschedulable(queue._unschedulable)
    _check_unschedulable(queue._gated)


def _check_unschedulable(pods: UnschedulablePods) -> None:
    """Check that every pod is in its group and in no other."""
    grouped = {uid: why for why, group in pods._groups.items() for uid in group}
    assert grouped == {uid: rejection_of(queued) for uid, queued in pods._pods.items()} == pods._why
    named = {(why.scheduler, plugin) for why in pods._groups for plugin in why.plugins}
    assert named == set(pods.by_plugin)
