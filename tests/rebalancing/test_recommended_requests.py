"""Moves are proven with what a VerticalPodAutoscaler recommends, and reserve as much."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, PodAdded
from plimsoll.model.autoscalers.vertical_pod_autoscaler import VerticalPodAutoscaler
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.limit_range import LimitRange
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_pod
from rebalancing.scene import POLICY, Scene, a_policy, status_of, web
from rebalancing.test_holding import approve


def an_autoscaler(cpu: str = "2", mode: str = "Recreate") -> VerticalPodAutoscaler:
    """One of the ReplicaSet shop."""
    target = {"containerName": "main", "target": {"cpu": cpu}}
    return convert(
        VerticalPodAutoscaler,
        {
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {
                "targetRef": {"kind": "ReplicaSet", "name": "shop"},
                "updatePolicy": {"updateMode": mode},
            },
            "status": {"recommendation": {"containerRecommendations": [target]}},
        },
    )


def shop(number: int, node: str = "bad", cpu: str = "500m", created: str = "2025-12-31T00:00:00Z") -> Pod:
    """A pod of the ReplicaSet shop."""
    metadata, status = {"creationTimestamp": created}, status_of(node)
    return a_pod(
        f"shop-{number}", owner="ReplicaSet/shop", cpu=cpu, node=node, status=status, metadata=metadata
    )


async def moved(*events: Any) -> tuple[Scene, list[int]]:
    """A run with two pods on the tainted node: the scene, and the milli-cpu that their targets hold."""
    scene = Scene()
    scene.gone(web(1, "bad"))
    scene.tell(PodAdded(shop(1)), PodAdded(shop(2)), *events)
    async with scene.running(a_policy(evictor={"minReplicas": 0}, limits={"perWorkload": "100%"})):
        await scene.run()
        await scene.clock.advance(2)
        held = [pod for pods in scene.nominator.by_node.values() for pod in pods.values()]
    return scene, [pod.requests["cpu"] for pod in held]


def refusals(scene: Scene) -> list[str]:
    """The refusals of the latest run, in sentences."""
    return [each["message"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]]


async def test_the_target_has_and_holds_room_for_the_recommendation() -> None:
    """Of 4 cpu the first one takes 2; the second one stays, and the sentence says what would be requested."""
    scene, held = await moved(ObjectAdded(an_autoscaler()))

    assert held == [2000]
    assert scene.evictor.evicted == ["shop-1"]
    (said,) = refusals(scene)
    assert said == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s);"
        " its replacement will request cpu 2 (now 500m)"
    )


@pytest.mark.parametrize(
    "events",
    [
        pytest.param((), id="none"),
        pytest.param((ObjectAdded(an_autoscaler(mode="Off")),), id="off"),
        pytest.param((ObjectAdded(an_autoscaler()), ObjectDeleted(an_autoscaler())), id="deleted"),
        pytest.param(
            (ObjectAdded(an_autoscaler()), ObjectUpdated(an_autoscaler(), an_autoscaler(mode="Off"))),
            id="switched off",
        ),
    ],
)
async def test_without_one_that_applies_replacements_are_as_large_as_the_pods(events: Any) -> None:
    """Both are moved."""
    scene, held = await moved(*events)

    assert held == [500, 500]
    assert refusals(scene) == []


NEWEST = PodAdded(shop(3, "good", "1", "2025-12-31T01:00:00Z"))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((ObjectAdded(an_autoscaler("1500m")),), [1500], id="recommended"),
        pytest.param((ObjectAdded(an_autoscaler("250m")),), [250, 250], id="less is recommended"),
        pytest.param((ObjectAdded(an_autoscaler("250m", "Off")),), [1000, 1000], id="learnt"),
    ],
)
async def test_a_recommendation_goes_before_what_the_newest_pod_shows(
    events: Any, expected: list[int]
) -> None:
    """Admission applies it to each new pod, whatever the newest one was created with."""
    _, held = await moved(NEWEST, *events)

    assert held == expected


async def test_an_unreadable_one_is_named_and_what_is_learnt_counts() -> None:
    """Also where it was readable before; the sentence has the field."""
    scene, held = await moved(
        NEWEST, ObjectAdded(an_autoscaler()), ObjectUpdated(an_autoscaler(), an_autoscaler("2 cores"))
    )

    assert held == [1000, 1000]
    ((name, problem),) = scene.observer.skipped
    assert name == "default/shop"
    assert problem.startswith("cpu of target of container main cannot be read: '2 cores' is not a quantity")


def limits(**fields: Any) -> ObjectAdded:
    """The LimitRange of the namespace appears."""
    limit = {"type": "Container", **fields}
    document = {"metadata": {"name": "limits", "namespace": "default"}, "spec": {"limits": [limit]}}
    return ObjectAdded(convert(LimitRange, document))


async def test_a_default_that_was_raised_is_what_the_replacement_requests() -> None:
    """The pod still has the earlier one; the record says with what the move was proven."""
    scene = Scene()
    scene.gone(web(1, "bad"))
    note = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container main"}
    for number in (1, 2):
        pod = shop(number)
        metadata = structs.replace(pod.metadata, annotations=note)
        scene.tell(PodAdded(structs.replace(pod, metadata=metadata)))
    scene.tell(limits(defaultRequest={"cpu": "2"}))
    async with scene.running(a_policy(evictor={"minReplicas": 0}, limits={"perWorkload": "100%"})):
        await scene.run()
        await scene.clock.advance(2)
        held = [pod for pods in scene.nominator.by_node.values() for pod in pods.values()]

    assert [pod.requests["cpu"] for pod in held] == [2000]
    assert scene.record["spec"]["provenWith"] == "cpu 2 (now 500m)"


async def test_a_pod_that_would_not_be_created_again_stays() -> None:
    """Until the LimitRange allows it."""
    scene, held = await moved(limits(min={"cpu": "1"}))

    assert (scene.evictor.evicted, held) == ([], [])
    sentence = (
        "its replacement would not be created: LimitRange default/limits would refuse it: minimum cpu usage"
        " per Container is 1, but request is 500m (container main)"
    )
    assert set(refusals(scene)) == {sentence}


async def test_a_recommendation_that_rises_before_the_eviction_stops_it() -> None:
    """Between a proposal and its approval; nothing is evicted."""
    scene = Scene()
    scene.gone(web(1, "bad"))
    scene.tell(PodAdded(shop(1)), PodAdded(shop(2, "good")), ObjectAdded(an_autoscaler("1")))

    async with scene.running(a_policy("Approve")):
        await scene.run()
        scene.tell(ObjectUpdated(an_autoscaler("1"), an_autoscaler("8")))
        approve(scene)
        await scene.clock.advance(2)

    assert scene.evictor.evicted == []
    assert scene.record["status"]["phase"] == "Cancelled"
