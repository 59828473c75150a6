"""The stop button: an annotation of the operator's namespace, and no policy moves pods any more."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.annotations import STOP
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded, ObjectUpdated, PodAdded, PodDeleted
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.objects import Namespace  # type: ignore[attr-defined] # known to exist in this test
from plimsoll.ports.writes import WriteResult
from plimsoll.testing.builders import a_node, a_pod
from rebalancing.moves.test_approving import annotate
from rebalancing.scene import POLICY, Scene, a_policy


def namespace(value: str | None = None, name: str = "plimsoll") -> Namespace:
    annotations = {} if value is None else {STOP: value}
    return Namespace(metadata=ObjectMeta(name=name, annotations=annotations))


async def test_nothing_is_moved_while_it_is_pressed() -> None:
    """The status says why; each move of the plan is named as refused, and goes on afterwards."""
    scene = Scene()
    scene.tell(ObjectAdded(namespace("true")))

    async with scene.running(a_policy()):
        await scene.run()
        assert (scene.evictor.evicted, scene.phases) == ([], [])
        assert scene.rebalancers.troubles(POLICY) == {}
        reason, sentence = scene.rebalancers.advice(POLICY)["Paused"]
        assert (reason, "namespace plimsoll is annotated" in sentence) == ("Stopped", True)
        (refusal,) = scene.statuses.statuses[POLICY]["counts"]["refused"]
        assert (refusal["reason"], STOP in refusal["message"]) == ("Stopped", True)

        scene.tell(ObjectUpdated(namespace("true"), namespace()))
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]
    assert scene.rebalancers.advice(POLICY) == {}


async def test_proposals_and_their_answers_keep_while_it_is_pressed() -> None:
    """A run that may plan nothing calls nothing off; a yes is heeded afterwards."""
    scene = Scene()

    async with scene.running(a_policy("Approve")):
        await scene.run()
        (key,) = scene.keeper.known
        scene.tell(ObjectAdded(namespace("true")))
        annotate(scene, "true", key)
        await scene.run()
        await scene.clock.advance(5)
        assert (scene.evictor.evicted, scene.phases) == ([], [["Planned"]])
        scene.tell(ObjectUpdated(namespace("true"), namespace()))
        await scene.clock.advance(5)

    assert scene.evictor.evicted == ["web-1"]


async def test_it_stops_a_run_that_has_begun() -> None:
    """Pressed while the record is being written: the move is blocked, and the record says by what."""
    scene = Scene()

    create = scene.records.create

    async def pressed_meanwhile(document: dict[str, Any]) -> WriteResult:
        scene.tell(ObjectAdded(namespace("true")))
        return await create(document)

    scene.records.create = pressed_meanwhile  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Blocked"]]
    assert scene.record["status"]["reason"] == "Stopped"


async def test_policies_report_when_it_is_pressed_and_released() -> None:
    """The conditions of the policies are written again, without a run."""
    scene = Scene()
    async with scene.running(a_policy()):
        scene.tell(ObjectAdded(namespace("true")))
        await scene.clock.advance(5)
        scene.tell(ObjectUpdated(namespace("true"), namespace("false")))
        await scene.clock.advance(5)

    assert scene.advised == [["Paused"], []]
    assert scene.troubled == [{}, {}]


@pytest.mark.parametrize(
    "other", [namespace("false"), namespace("yes"), namespace(""), namespace("true", name="shop")]
)
async def test_another_value_or_namespace_is_no_button(other: Namespace) -> None:
    """Only "true" on the operator's own namespace."""
    scene = Scene()
    scene.tell(ObjectAdded(other))

    async with scene.running(a_policy()):
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]


@pytest.mark.parametrize("planner", ["Proven", "Optimal"])
async def test_runs_in_which_a_node_is_over_used_are_counted(planner: str) -> None:
    """Three in a row are asked for: the third run moves, and a calm one in between begins again."""
    low = {"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 20}}}
    scene = Scene()
    crowd = [
        a_pod(f"app-{n}", owner=f"ReplicaSet/app{n}", cpu="500m", node="good", status={"phase": "Running"})
        for n in range(4)
    ]
    scene.tell(NodeAdded(a_node("new")), *map(PodAdded, crowd))
    policy = a_policy(strategies=[low], planner=planner, anomalyRounds=3, evictor={"minReplicas": 1})

    async with scene.running(policy):
        await scene.run()
        await scene.run()
        scene.tell(*map(PodDeleted, crowd))
        await scene.run()
        scene.tell(*map(PodAdded, crowd))
        await scene.run()
        await scene.run()
        assert scene.evictor.evicted == []
        await scene.run()

    assert scene.evictor.evicted != []
