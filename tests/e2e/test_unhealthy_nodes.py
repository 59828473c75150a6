"""A node with a bad condition is closed, its pods move away, and it is opened when it has recovered."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually, throughout
from e2e.speaker import MERGE
from e2e.stories import taints_of

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

OURS = "plimsoll.dev/unhealthy"
KIND = "PlayedFault"


async def is_closed(scene: Scene, node: str) -> bool:
    """Whether the node has our taint."""
    return OURS in [each["key"] for each in await taints_of(scene, node)]


async def reports(scene: Scene, node: str, status: str, since: float = 600) -> None:
    """A monitor reports the condition, which has held for so many seconds."""
    path = f"/api/v1/nodes/{node}"
    found = (await scene.speaker.request("GET", path)).accepted()["status"].get("conditions", [])
    then = (datetime.now(UTC) - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": KIND, "status": status, "reason": "Played", "message": "", "lastTransitionTime": then}
    conditions = [each for each in found if each["type"] != KIND] + [told]
    change = {"status": {"conditions": conditions}}
    (await scene.speaker.request("PATCH", f"{path}/status", change, sends=MERGE)).accepted()


async def closings(scene: Scene, node: str) -> list[Obj]:
    """The events about the closing of the node, where kubectl describe looks for them."""
    found = await scene.items("/apis/events.k8s.io/v1/namespaces/default/events")
    return [each for each in found if (each["regarding"]["name"], each["reason"]) == (node, "NodeClosed")]


def acting(scene: Scene) -> Obj:
    """A policy that acts on the condition."""
    args = {"unhealthyNodeConditions": [{"type": KIND, "timeoutSeconds": 60}], "recoverySeconds": 60}
    strategy = {"name": "RemovePodsFromUnhealthyNodes", "args": args}
    return scene.rebalancing(strategy, evictor={"minReplicas": 1})


async def test_a_sick_node_is_closed_left_and_opened(scene: Scene, operator: Operator) -> None:
    """A bare pod stays, a second sick node waits, the operator dies in between; what comes goes elsewhere."""
    sick = await scene.node("sick")
    await scene.scheduling()
    await scene.pod("solo")
    await scene.until_bound("solo")
    await scene.deployment("web", 3, labels={"set": "web"})
    assert {*await scene.until_running(3, set="web")} == {sick}
    others = [await scene.node(each) for each in ("second", "third", "fourth")]
    await reports(scene, sick, "True")
    await reports(scene, others[0], "True", since=90)

    await scene.policy(acting(scene), "health")
    await eventually(lambda: is_closed(scene, sick))
    (note,) = await eventually(lambda: closings(scene, sick))
    assert f"{KIND}=True" in note["note"]
    await scene.crash(operator)
    operator.start()

    settled = await eventually(lambda: scene.running(set="web"), lambda found: sick not in found)
    records = await scene.until_finished(3)
    phases = Counter(record["status"]["phase"] for record in records)
    assert phases.pop("Settled") == 3
    assert phases.keys() <= {"Cancelled"}, "what had not begun at the crash was planned again"
    for told in (record["spec"] for record in records):
        assert told["fromNode"] == sick
        assert told["reason"].startswith(f"its node has the condition {KIND}=True")
    assert {*settled} <= {*others[1:]}
    assert await scene.node_of("solo") == sick
    assert not await is_closed(scene, others[0])

    await reports(scene, sick, "False", since=1)
    await throughout(lambda: is_closed(scene, sick), bool, 3)
    await reports(scene, sick, "False", since=70)
    await eventually(lambda: is_closed(scene, sick), lambda closed: not closed)
    await eventually(lambda: is_closed(scene, others[0]))


async def test_half_of_the_nodes_are_left_alone(scene: Scene) -> None:
    """Every node of the cluster is reported sick: nothing is closed, nothing moves, and it is said."""
    first, second = await scene.node("first"), await scene.node("second")
    await scene.scheduling()
    await scene.deployment("web", 2, labels={"set": "web"})
    every = [each["metadata"]["name"] for each in await scene.items("/api/v1/nodes")]
    for node in every:
        await reports(scene, node, "True")
    before = {pod["metadata"]["uid"] for pod in await scene.pods(set="web")}

    name = await scene.policy(acting(scene), "health")
    found = await scene.until_condition(name, "Degraded", "True", "NodesUnhealthy")

    assert "look unhealthy" in found["message"]
    await scene.runs(name, 3)
    assert {pod["metadata"]["uid"] for pod in await scene.pods(set="web")} == before
    assert [await is_closed(scene, each) for each in (first, second)] == [False, False]
    for node in every:
        await reports(scene, node, "False")
    await scene.until_condition(name, "Degraded", "False")
