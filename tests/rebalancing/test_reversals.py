"""A move to a node that another one had relieved is counted, and fires an alert (deploy/alerts)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.cluster.watch_events import PodAdded, PodUpdated
from plimsoll.records.record import PREEMPTION
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, web

#: The owner of the pods of the scene.
OWNER = web(1).metadata.owner_references[0].uid


def an_earlier_move(scene: Scene, *, before: float = 600.0, **fields: Any) -> None:
    """A record of a move of a pod of the same owner off the node "good"."""
    moment = datetime.fromtimestamp(scene.clock.now() - before, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    phase = fields.pop("phase", "Settled")
    phases = ("Planned", "Evicting", "Evicted", phase)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": OWNER}
    spec = {
        "pod": {"namespace": "default", "name": "web-9", "uid": "uid-9"},
        "owner": owner,
        "policy": "another",
        "strategy": "LowNodeUtilization",
        "mode": "Enforce",
        "reason": "for a test",
        "fromNode": "good",
        **fields,
    }
    scene.on_record(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {"namespace": "default", "name": "web-9-abc", "creationTimestamp": moment},
            "spec": spec,
            "status": {"phase": phase, "transitions": [{"phase": each, "time": moment} for each in phases]},
        }
    )


async def moved_to(node: str, scene: Scene) -> list[str]:
    """Which policies' moves were reversals, after the scene's pod was moved off the node "bad"."""
    async with scene.running(a_policy()):
        await scene.run()
        scene.gone(web(1, "bad"))
        late = "2026-06-01T00:00:00Z"
        scene.tell(PodAdded(web(3, created=late)))
        scene.tell(PodUpdated(web(3, created=late), web(3, node, created=late)))
        await settled()

    assert scene.evictor.evicted == ["web-1"]
    return scene.observer.reversals


async def test_a_move_back_to_a_node_that_was_relieved_is_counted() -> None:
    """For the policy of the later move, whose policy the earlier one was does not matter."""
    scene = Scene()
    an_earlier_move(scene)

    assert await moved_to("good", scene) == [POLICY]


@pytest.mark.parametrize(
    "earlier",
    [
        {"fromNode": "third"},
        {"before": 3700.0},
        {"phase": "Returned"},
        {"phase": "Failed"},
        {"strategy": PREEMPTION},
        {"purpose": "Restart"},
        {"owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "db", "uid": "uid-of-db"}},
    ],
    ids=["another node", "long ago", "returned", "failed", "a victim", "a restart", "another owner"],
)
async def test_other_moves_are_no_reversals(earlier: dict[str, Any]) -> None:
    """Nothing was undone."""
    scene = Scene()
    an_earlier_move(scene, **earlier)

    assert await moved_to("good", scene) == []


async def test_a_replacement_that_comes_back_has_a_phase_of_its_own() -> None:
    """And an alert of its own."""
    scene = Scene()
    an_earlier_move(scene, fromNode="bad")

    assert await moved_to("bad", scene) == []
