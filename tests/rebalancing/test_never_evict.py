"""Annotations that forbid evictions, seen through a policy that wants the pod off its node."""

from typing import Any

import msgspec
import pytest

from plimsoll.cluster.watch_events import PodUpdated
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import Namespace
from plimsoll.ports.writes import WriteResult
from plimsoll.testing.builders import a_pod
from plimsoll.toolkit.descheduling.disruption_signals import EVICT as UPSTREAM_EVICT
from plimsoll.toolkit.descheduling.disruption_signals import OUR_EVICT as EVICT
from rebalancing.scene import POLICY, Scene, a_policy, status_of, web

NEVER = {EVICT: "false"}


def annotated(annotations: dict[str, Any]) -> Pod:
    """The pod on the tainted node, with annotations."""
    pod = web(1, "bad")
    metadata = msgspec.structs.replace(pod.metadata, annotations=annotations)
    return msgspec.structs.replace(pod, metadata=metadata)


def a_namespace(annotations: dict[str, Any]) -> Namespace:
    return convert(Namespace, {"metadata": {"name": "default", "annotations": annotations}})


async def evicted(
    annotations: dict[str, Any], planner: str = "Proven", **rebalancing: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Who goes, and which refusals the status names."""
    scene = Scene()
    scene.tell(PodUpdated(web(1, "bad"), annotated(annotations)))
    async with scene.running(a_policy(planner=planner, **rebalancing)):
        await scene.run()
    return scene.evictor.evicted, {
        each["reason"]: each["message"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]
    }


@pytest.mark.parametrize("planner", ["Proven", "Optimal", "Upstream"])
async def test_our_annotation_holds_for_every_planner(planner: str) -> None:
    """The refusal names it."""
    gone, refused = await evicted(NEVER, planner)

    assert gone == []
    assert refused["NeverEvict"] == "the pod's annotation plimsoll.dev/evict: false forbids its eviction"


@pytest.mark.parametrize("planner", ["Proven", "Optimal", "Upstream"])
async def test_our_annotation_on_the_namespace_holds_for_all_of_its_pods(planner: str) -> None:
    """Until it is taken away."""
    scene = Scene()
    namespaces = scene.cache.cluster.objects.namespaces
    namespaces["default"] = a_namespace(NEVER)

    async with scene.running(a_policy(planner=planner)):
        await scene.run()
        held = list(scene.evictor.evicted)
        namespaces["default"] = a_namespace({EVICT: "true"})
        await scene.run()

    assert (held, scene.evictor.evicted) == ([], ["web-1"])


@pytest.mark.parametrize(
    ("planner", "gone"), [("Proven", []), ("Optimal", []), ("Upstream", ["web-1"])], ids=str
)
async def test_upstreams_annotation_forbids_where_it_says_false(planner: str, gone: list[str]) -> None:
    """Descheduler takes any value for an invitation; planner Upstream decides as it does."""
    found, refused = await evicted({UPSTREAM_EVICT: "false"}, planner)

    assert found == gone
    assert ("NeverEvict" in refused) is (not gone)


@pytest.mark.parametrize("annotations", [{EVICT: "true"}, {UPSTREAM_EVICT: "true"}, {}])
async def test_other_values_forbid_nothing(annotations: dict[str, Any]) -> None:
    """The pod goes."""
    assert (await evicted(annotations))[0] == ["web-1"]


async def test_an_invitation_does_not_overrule_our_annotation() -> None:
    """Upstream's annotation takes protections away, and this is one that stays."""
    gone, refused = await evicted({UPSTREAM_EVICT: "true", **NEVER})

    assert gone == []
    assert "NeverEvict" in refused


@pytest.mark.parametrize("planner", ["Proven", "Upstream"])
async def test_an_annotation_that_comes_after_the_plan_holds(planner: str) -> None:
    """The record says that the move was called off, and why."""
    scene = Scene()
    create = scene.records.create

    async def create_and_forbid(document: dict[str, Any]) -> WriteResult:
        scene.tell(PodUpdated(web(1, "bad"), annotated(NEVER)))
        return await create(document)

    scene.records.create = create_and_forbid  # type: ignore[assignment, method-assign] # replaced for this test
    async with scene.running(a_policy(planner=planner)):
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Cancelled"]]
    assert scene.record["status"]["reason"] == "NeverEvict"


async def test_a_surge_is_a_move_as_well() -> None:
    """A single replica stays, too."""
    scene = Scene()
    only = a_pod(
        "only", owner="ReplicaSet/only", node="bad", cpu="100m", annotations=NEVER, status=status_of("bad")
    )
    scene.tell(PodUpdated(only, only))
    async with scene.running(a_policy(surge=True)):
        await scene.run()

    assert "only" not in scene.evictor.evicted
    refused = {each["reason"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]}
    assert refused == {"NeverEvict"}
