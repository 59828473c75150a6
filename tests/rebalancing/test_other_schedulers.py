"""Pods of schedulers that no policy serves are moved only where a policy names these schedulers."""

from typing import Any

import pytest

from plimsoll.model.kinds.watch_event import PodAdded
from plimsoll.testing.builders import a_pod
from rebalancing.scene import POLICY, Scene, a_policy, status_of

STRANGE = {"otherSchedulers": ["strange"]}


def a_scene() -> Scene:
    """Two pods of another scheduler, one of them on the node whose taint it does not tolerate."""
    scene = Scene()
    for name, node in (("theirs-1", "bad"), ("theirs-2", "good")):
        scene.tell(
            PodAdded(
                a_pod(
                    name,
                    node=node,
                    owner="ReplicaSet/theirs",
                    cpu="100m",
                    schedulerName="strange",
                    status=status_of(node),
                )
            )
        )
    return scene


@pytest.mark.parametrize(
    ("planner", "scope", "evicted"),
    [
        ("Proven", {}, ["web-1"]),
        ("Optimal", {}, ["web-1"]),
        ("Upstream", {}, ["web-1"]),
        ("Proven", {"otherSchedulers": ["default-scheduler"]}, ["web-1"]),
        ("Proven", STRANGE, ["theirs-1", "web-1"]),
        ("Upstream", STRANGE, ["theirs-1", "web-1"]),
        ("Optimal", STRANGE, ["web-1"]),  # it directs each replacement, and these cannot be directed
    ],
)
async def test_they_move_only_when_the_policy_names_their_scheduler(
    planner: str, scope: dict[str, Any], evicted: list[str]
) -> None:
    """For every planner."""
    scene = a_scene()

    async with scene.running(a_policy(planner=planner, scope=scope)):
        await scene.run()

    assert sorted(scene.evictor.evicted) == evicted


async def test_the_refusal_says_what_to_do() -> None:
    """The scheduler's name, and the field that would allow the move."""
    scene = a_scene()

    async with scene.running(a_policy()):
        await scene.run()

    refused = {
        each["reason"]: each["message"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]
    }
    assert refused["OtherScheduler"] == (
        'scheduler "strange" places the pod: no policy serves it, and spec.scope.otherSchedulers does not'
        " name it"
    )


async def test_they_stay_when_the_policy_that_served_them_is_gone() -> None:
    """No policy serves its pods then."""
    scene = Scene()
    scene.wing.serve({})

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []


async def test_a_move_of_theirs_is_a_forecast_on_record() -> None:
    """Nothing vouches for the target, and it is not held."""
    scene = a_scene()

    async with scene.running(a_policy(scope=STRANGE, limits={"perNode": 1})):
        await scene.run()

    (record,) = scene.records.documents.values()
    assert record["spec"]["pod"]["name"] == "theirs-1"
    assert record["spec"]["forecast"] is True
    assert scene.nominator.by_node == {}
