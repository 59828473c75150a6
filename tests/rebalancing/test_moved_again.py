"""A pod that replaces an evicted one is not moved again, from the moment that it is seen."""

import pytest

from plimsoll.cluster.watch_events import NodeAdded, NodeUpdated, PodAdded, PodUpdated
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import settled
from rebalancing.scene import Scene, a_policy, web

LATE = "2026-06-01T00:00:00Z"
LIMITS = {"perWorkload": "100%", "perNode": "100%", "total": "100%", "perMinute": "100%"}


@pytest.mark.parametrize("is_ready", [False, True], ids=["starting", "ready"])
async def test_a_replacement_stays_where_it_is(is_ready: bool) -> None:
    """Its node is tainted, too, before it is ready or after; the other pod there goes, and it does not."""
    scene = Scene()
    tainted = a_node("good", taints=["broken=yes:NoSchedule"])
    started = web(3, "good", ready=is_ready, created=LATE)

    async with scene.running(a_policy(limits=LIMITS)):
        await scene.run()
        scene.gone(web(1, "bad"))
        scene.tell(PodAdded(web(3, created=LATE)))
        scene.tell(PodUpdated(web(3, created=LATE), started), NodeAdded(a_node("best")))
        scene.tell(PodAdded(web(4, "best")))
        await settled()
        scene.tell(NodeUpdated(a_node("good"), tainted))
        await scene.run()

    assert scene.evictor.evicted == ["web-1", "web-2"]
    refused = scene.statuses.statuses["tidy"]["counts"]["refused"]
    assert [(each["reason"], each["count"]) for each in refused] == [("MovedRecently", 1)]
