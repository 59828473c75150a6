"""Changes after which rebalancing runs out of turn."""

from datetime import timedelta
from typing import Any

import pytest

from plimsoll.api.v1alpha1.schedules import Trigger
from plimsoll.cluster.watch_events import NodeAdded, NodeDeleted, NodeUpdated, PodAdded
from plimsoll.rebalancing.timetable import triggers_of
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import Scene, a_policy

PLAIN = a_node("n")
BOTH = a_node("n", labels={"zone": "b"}, taints=["a=b:NoSchedule"])


@pytest.mark.parametrize(
    ("event", "triggers"),
    [
        (NodeAdded(PLAIN), {Trigger.NODE_ADDED}),
        (NodeUpdated(PLAIN, a_node("n", labels={"zone": "b"})), {Trigger.NODE_LABELS_CHANGED}),
        (NodeUpdated(PLAIN, a_node("n", taints=["a=b:NoSchedule"])), {Trigger.NODE_TAINTS_CHANGED}),
        (NodeUpdated(PLAIN, BOTH), {Trigger.NODE_LABELS_CHANGED, Trigger.NODE_TAINTS_CHANGED}),
        (NodeUpdated(PLAIN, a_node("n", cpu="9")), set()),
        (NodeDeleted(PLAIN), set()),
        (PodAdded(a_pod("p")), set()),
    ],
)
def test_what_triggers(event: Any, triggers: set[Trigger]) -> None:
    """Nodes that come, and labels and taints that change."""
    assert triggers_of(event) == triggers


@pytest.mark.parametrize(
    ("event", "triggers", "hastened"),
    [
        (NodeAdded(a_node("new")), ["NodeAdded"], True),
        (NodeAdded(a_node("new")), ["NodeTaintsChanged"], False),
        (NodeAdded(a_node("new")), [], False),
        (NodeUpdated(PLAIN, BOTH), ["NodeLabelsChanged"], True),
        (NodeUpdated(PLAIN, BOTH), ["NodeTaintsChanged"], True),
        (NodeUpdated(PLAIN, BOTH), ["NodeAdded"], False),
    ],
)
async def test_a_policy_runs_soon_after_what_it_names(
    event: NodeAdded | NodeUpdated, triggers: list[str], hastened: bool
) -> None:
    """Others keep their turn; one update may be what several policies wait for."""
    scene = Scene()
    schedule = {"cron": "0 0 29 2 *", "triggers": triggers}
    policy = a_policy("DryRun", schedule=schedule)

    async with scene.running():
        scene.rebalancers.configure([policy])
        turn = scene.wing.rebalancers.timetable.next_run("tidy")
        scene.tell(event)
        await settled()
        after = scene.wing.rebalancers.timetable.next_run("tidy")

    assert (turn - after > timedelta(days=1)) is hastened  # type: ignore[operator] # known to exist in this test
