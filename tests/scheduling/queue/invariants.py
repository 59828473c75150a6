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
    for (scheduler, plugin), rejected in pods.by_plugin.items():
        groups = [why for why in pods._groups if why.scheduler == scheduler and plugin in why.plugins]
        assert list(rejected.numbers) == groups
        for by_value in rejected.values.values():
            found = [(value, why) for value, some in by_value.groups.items() for why in some]
            assert {why for _, why in found} | set(by_value.unread) == set(groups)
            assert all(by_value._reads(why.template) == value for value, why in found)
