"""Targets are held from the eviction to the replacement, across approvals and restarts; forecasts never."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.annotations import APPROVED
from plimsoll.cluster.reservations import FIRM
from plimsoll.cluster.watch_events import PodAdded, PodUpdated
from plimsoll.rebalancing.runs.plan_runner import PlanRunner
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, status_of, web

LATE = "2026-06-01T00:00:00Z"


def approve(scene: Scene) -> None:
    """Somebody approves the only proposal."""
    namespace, name = next(iter(scene.keeper.known)).split("/")
    scene.wing.approvals.annotated(namespace, name, {APPROVED: "true"})


def in_stead(scene: Scene) -> str:
    """The uid under which the replacement of the only move counts."""
    return f"replacement:{next(iter(scene.keeper.known))}"


def held(scene: Scene) -> dict[str, Any]:
    """Names and priorities of what is nominated, by node."""
    return {
        node: [(pod.uid, pod.priority) for pod in pods.values()]
        for node, pods in scene.nominator.by_node.items()
    }


@pytest.mark.parametrize(("planner", "is_forecast"), [("Proven", False), ("Upstream", True)])
async def test_an_approved_move_holds_its_target_unless_it_is_a_forecast(
    planner: str, is_forecast: bool
) -> None:
    """The record says which it is; neither the pod that leaves nor its replacement claims a forecast."""
    scene = Scene()

    async with scene.running(a_policy("Approve", planner=planner)):
        await scene.run()
        approve(scene)
        await scene.clock.advance(2)
        assert scene.evictor.evicted == ["web-1"]
        before, uid = held(scene), in_stead(scene)
        scene.gone(web(1, "bad"))
        scene.tell(PodAdded(web(3, created=LATE)))
        after = held(scene)

    assert scene.record["spec"].get("forecast", False) is is_forecast
    assert before == ({} if is_forecast else {"good": [(uid, FIRM)]})
    assert after == ({} if is_forecast else {"good": [("uid-default-web-3", 0)]})


@pytest.mark.parametrize("is_over", [False, True], ids=["under way", "over"])
async def test_what_is_approved_while_a_run_plans_is_not_proposed_again(
    monkeypatch: pytest.MonkeyPatch, is_over: bool
) -> None:
    """The plan has the same move, for it is of a moment before the answer."""
    scene, made = Scene(), PlanRunner.make_apart

    async def slowly(*args: Any) -> Any:
        plan = await made(*args)
        if not scene.evictor.evicted:
            approve(scene)
            await scene.clock.advance(2)
            if is_over:
                scene.gone(web(1, "bad"))
                scene.tell(PodAdded(web(3, "good", created=LATE)))
                await scene.clock.advance(2)
        return plan

    async with scene.running(a_policy("Approve")):
        await scene.run()
        await scene.clock.advance(60)
        monkeypatch.setattr(PlanRunner, "make_apart", slowly)
        await scene.run()

    assert scene.evictor.evicted == ["web-1"]
    assert len(scene.keeper.known) == 1


async def test_an_approved_move_of_another_scheduler_is_a_forecast_to_the_end() -> None:
    """What the proposal said, the record goes on saying."""
    scene = Scene()
    scene.wing.serve({}, scene.forecasts)

    async with scene.running(a_policy("Approve", scope={"otherSchedulers": ["default-scheduler"]})):
        await scene.run()
        proposal = scene.record
        approve(scene)
        await scene.clock.advance(2)
        claims = held(scene)

    assert scene.evictor.evicted == ["web-1"]
    assert proposal["spec"]["forecast"] is True
    assert scene.record["spec"]["forecast"] is True
    assert claims == {}


def left_by_an_earlier_process(pod: str = "web-1", **spec: Any) -> dict[str, Any]:
    """The record of an eviction that was accepted."""
    moment = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Eviction",
        "metadata": {"namespace": "default", "name": f"{pod}-abc", "creationTimestamp": moment},
        "spec": {
            "pod": {"namespace": "default", "name": pod, "uid": f"uid-default-{pod}"},
            "owner": {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "uid-ReplicaSet/web",
            },
            "policy": POLICY,
            "strategy": "RemovePodsViolatingNodeTaints",
            "mode": "Enforce",
            "reason": "for a test",
            "fromNode": "bad",
            "targetNode": "good",
            **spec,
        },
        "status": {
            "phase": "Evicted",
            "transitions": [{"phase": each, "time": moment} for each in ("Planned", "Evicting", "Evicted")],
        },
    }


@pytest.mark.parametrize("is_gone", [False, True], ids=["terminating", "gone"])
async def test_a_new_leader_holds_the_target_until_the_replacement_appears(is_gone: bool) -> None:
    """Then the place is kept in the replacement's own name, and free when that is ready."""
    scene = Scene(left_by_an_earlier_process())
    pod = web(1, "bad")
    scene.gone(pod) if is_gone else scene.leaving(pod)

    async with scene.running():
        first, uid = held(scene), in_stead(scene)
        if not is_gone:
            scene.gone(pod)
        waiting = web(3, created=LATE)
        scene.tell(PodAdded(waiting))
        second = held(scene)
        scene.tell(PodUpdated(waiting, web(3, "good", created=LATE)))
        await settled()
        last = held(scene)

    assert first == {"good": [(uid, FIRM)]}
    assert second == {"good": [("uid-default-web-3", 0)]}
    assert last == {}
    assert scene.record["status"]["phase"] == "Settled"


async def test_a_new_leader_nominates_a_replacement_that_is_there_already() -> None:
    """Also before it knows the policies."""
    scene = Scene(left_by_an_earlier_process())
    scene.wing.serve({}, scene.forecasts)
    scene.gone(web(1, "bad"))
    scene.tell(PodAdded(web(3, created=LATE)))

    async with scene.running():
        assert held(scene) == {"good": [("uid-default-web-3", 0)]}


@pytest.mark.parametrize("spec", [{"forecast": True}, {"planner": "Upstream"}, {"targetNode": None}])
async def test_a_new_leader_holds_no_forecast(spec: dict[str, Any]) -> None:
    """Records of earlier versions name the planner only."""
    record = left_by_an_earlier_process(**spec)
    record["spec"] = {key: value for key, value in record["spec"].items() if value is not None}
    scene = Scene(record)
    scene.leaving(web(1, "bad"))

    async with scene.running():
        assert held(scene) == {}


async def test_the_held_room_counts_in_the_next_plan() -> None:
    """Another pod that needs the same room is not moved there by the new leader."""
    scene = Scene(left_by_an_earlier_process())
    big = {"node": "bad", "cpu": "3", "status": status_of("bad")}
    scene.gone(web(1, "bad"))
    scene.gone(web(2, "good"))
    leaving = a_pod("web-1", owner="ReplicaSet/web", **big)  # type: ignore[arg-type] # fields as in the API
    scene.tell(PodAdded(leaving), PodAdded(a_pod("db-1", owner="ReplicaSet/db", **big)))  # type: ignore[arg-type] # fields as in the API
    scene.leaving(leaving)

    async with scene.running(a_policy(evictor={"minReplicas": 1})):
        await scene.run()

    assert scene.evictor.evicted == []
    reasons = {each["reason"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]}
    assert reasons == {"NoFeasibleNode", "Terminating"}
