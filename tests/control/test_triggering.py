"""Changes after which rebalancing runs out of turn."""

from datetime import timedelta

import pytest

from control.scene import Scene, a_policy
from plimsoll.api.v1alpha1.schedules import Trigger
from plimsoll.control.triggering import trigger_of
from plimsoll.model.event import NodeAdded, NodeDeleted, NodeUpdated, PodAdded
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled

PLAIN = a_node("n")


@pytest.mark.parametrize(
    ("event", "trigger"),
    [
        (NodeAdded(PLAIN), Trigger.NODE_ADDED),
        (NodeUpdated(PLAIN, a_node("n", labels={"zone": "b"})), Trigger.NODE_LABELS_CHANGED),
        (NodeUpdated(PLAIN, a_node("n", taints=["a=b:NoSchedule"])), Trigger.NODE_TAINTS_CHANGED),
        (NodeUpdated(PLAIN, a_node("n", cpu="9")), None),
        (NodeDeleted(PLAIN), None),
        (PodAdded(a_pod("p")), None),
    ],
)
def test_what_triggers(event, trigger):
    """Nodes that come, and labels and taints that change."""
    assert trigger_of(event) is trigger


@pytest.mark.parametrize(
    ("triggers", "hastened"), [(["NodeAdded"], True), (["NodeTaintsChanged"], False), ([], False)]
)
async def test_a_policy_runs_soon_after_what_it_names(triggers, hastened):
    """Others keep their turn."""
    scene = Scene()
    schedule = {"cron": "0 0 29 2 *", "triggers": triggers}
    policy = a_policy("DryRun", schedule=schedule)

    async with scene.running():
        scene.rebalancers.configure([policy])
        turn = scene.rebalancers._timetable.next_run("tidy")
        scene.tell(NodeAdded(a_node("new")))
        await settled()
        after = scene.rebalancers._timetable.next_run("tidy")

    assert (turn - after > timedelta(days=1)) is hastened
