"""Pods that leave by EvictionRequest, on a server that serves lifecycle.k8s.io and on one that does not."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from deploy.manifests import grants, grants_with
from e2e.conftest import define
from e2e.door import door, kubeconfig_for
from e2e.polls import eventually, throughout
from e2e.responder import LIFECYCLE, NAME, Responder, evictions, requests
from e2e.scene import POLICIES, Scene
from e2e.speaker import speaking
from plimsoll.kube.eviction_requests import REQUESTER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

RESPONDERS = [{"name": NAME, "priority": 10000}]


@asynccontextmanager
async def offering(kubeconfig: Path) -> AsyncIterator[tuple[Scene, Responder]]:
    """A scene on a cluster, and a responder at work."""
    async with speaking(kubeconfig) as speaker:
        await define(speaker)
        scene = await Scene(speaker).begin()
        responder = Responder(scene)
        task = asyncio.create_task(responder.run())
        try:
            yield scene, responder
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError), ended


@pytest.fixture
async def played(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> AsyncIterator[tuple[Scene, Responder, Operator]]:
    """A scene on a cluster that offers the API, a responder and the operator."""
    cluster = start_roadstead(eviction_requests=True)
    async with offering(cluster.kubeconfig) as (scene, responder):
        operator = start_operator(cluster.kubeconfig)
        yield scene, responder, operator
        assert await operator.stop() == 0, operator.said()


async def asked(scene: Scene, responders: list[Obj] | None = None, **more: Any) -> tuple[str, str]:
    """A node that its pods should leave by request; the names of node and policy."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 2, **({"evictionResponders": responders} if responders else {}))  # type: ignore[arg-type] # fields as in the API
    await scene.node("new")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    spec = scene.rebalancing("RemovePodsViolatingNodeTaints", evictBy="EvictionRequest", **more)
    return old, await scene.policy(spec, "by-request")


async def under_way(scene: Scene) -> Obj:
    """The record whose responder is at work, once it is."""

    async def found() -> Obj:
        return next(
            (
                record
                for record in await scene.records()
                if "copied 40 %" in record.get("status", {}).get("message", "")
            ),
            {},
        )

    return await eventually(found)


async def record_of(scene: Scene, record: Obj) -> Obj:
    """A record as it is now."""
    path = f"{scene.records_path}/{record['metadata']['name']}"
    return (await scene.speaker.request("GET", path)).accepted()


async def phase_of(scene: Scene, record: Obj) -> str:
    """The phase of a record now."""
    return str((await record_of(scene, record))["status"]["phase"])


async def degraded(scene: Scene, policy: str) -> str:
    """What a policy's condition Degraded says."""
    conditions = (await scene.policy_status(policy)).get("conditions") or ()
    return next((str(each["message"]) for each in conditions if each["type"] == "Degraded"), "")


async def test_a_responder_moves_the_pod_in_its_own_time(
    played: tuple[Scene, Responder, Operator],
) -> None:
    """The record tells who is at work; the pod goes when the responder is done, and settles elsewhere."""
    scene, responder, _ = played
    old, _ = await asked(scene, RESPONDERS)

    record = await under_way(scene)
    status = record["status"]
    (request,) = await requests(scene)
    assert (status["phase"], status["reason"]) == ("Evicting", "Requested")
    assert f"{NAME} is at work" in status["message"]
    assert request["metadata"]["name"] == record["metadata"]["name"]
    assert request["spec"] == {
        "requester": REQUESTER,
        "intent": "Eviction",
        "target": {"pod": {key: record["spec"]["pod"][key] for key in ("name", "uid")}},
    }
    assert await scene.running(app="web") == [old, old]

    responder.may_migrate.set()
    nodes = await eventually(
        lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes, 90
    )
    await scene.until_finished(2)

    assert old not in nodes
    assert {each["status"]["phase"] for each in await scene.records()} == {"Settled"}
    transitions = [each["phase"] for each in (await record_of(scene, record))["status"]["transitions"]]
    assert transitions == ["Planned", "Evicting", "Evicted", "Settled"]
    assert "Completed" in responder.states
    await eventually(lambda: requests(scene), lambda left: left == [])
    await eventually(lambda: evictions(scene), lambda left: left == [])


async def test_without_a_responder_the_server_evicts(played: tuple[Scene, Responder, Operator]) -> None:
    """The protocol's last responder acts immediately."""
    scene, responder, _ = played
    old, _ = await asked(scene)

    await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes)
    await scene.until_finished(2)

    assert {each["status"]["phase"] for each in await scene.records()} == {"Settled"}
    assert responder.states == []


async def test_a_deleted_policy_withdraws_our_request_and_no_other(
    played: tuple[Scene, Responder, Operator],
) -> None:
    """Another requester of the same pod keeps it going; without that one the responder has to stop."""
    scene, responder, _ = played
    old, policy = await asked(scene, RESPONDERS)
    record = await under_way(scene)
    (ours,) = await requests(scene)
    theirs = {
        "apiVersion": "lifecycle.k8s.io/v1alpha1",
        "kind": "EvictionRequest",
        "metadata": {"name": "theirs"},
        "spec": {**ours["spec"], "requester": "drain.example.com/node"},
    }
    await scene.make(scene.path("evictionrequests", LIFECYCLE), theirs)

    await scene.speaker.request("DELETE", f"{POLICIES}/{policy}")
    await eventually(lambda: phase_of(scene, record), lambda phase: phase == "Cancelled")

    named = {each["metadata"]["name"]: each for each in await requests(scene)}
    assert named[record["metadata"]["name"]]["spec"]["intent"] == "Withdrawn"
    assert named["theirs"]["spec"]["intent"] == "Eviction"
    (eviction,) = await evictions(scene)
    assert [each["state"] for each in eviction["status"]["targetResponders"]] == ["Active", "Inactive"]
    assert (await record_of(scene, record))["status"]["reason"] == "PolicyChanged"

    path = f"{scene.path('evictionrequests', LIFECYCLE)}/theirs"
    (await scene.speaker.request("DELETE", path)).accepted()

    async def states() -> list[str]:
        return responder.states

    await eventually(states, lambda seen: seen[-1:] == ["Canceled"])
    assert await scene.running(app="web") == [old, old]


@pytest.mark.parametrize("moves_meanwhile", [False, True], ids=["it-stands", "it-has-left"])
async def test_a_request_is_taken_over_after_a_crash(
    played: tuple[Scene, Responder, Operator], *, moves_meanwhile: bool
) -> None:
    """Killed while the responder is at work: the next process waits on, and completes the same record."""
    scene, responder, operator = played
    await asked(scene, RESPONDERS, limits={"total": 1})
    record = await under_way(scene)
    uid = record["spec"]["pod"]["uid"]

    async def stands() -> bool:
        return uid in [pod["metadata"]["uid"] for pod in await scene.pods(app="web")]

    await scene.crash(operator)
    if moves_meanwhile:
        responder.may_migrate.set()
        await eventually(stands, lambda is_there: not is_there)
    operator.start()
    if not moves_meanwhile:
        operator.until_ready()
        await throughout(lambda: phase_of(scene, record), lambda phase: phase == "Evicting", 4.0)
        assert await stands()
        responder.may_migrate.set()

    await eventually(lambda: phase_of(scene, record), lambda phase: phase == "Settled")

    about = [each for each in await scene.records() if each["spec"]["pod"]["uid"] == uid]
    assert [each["metadata"]["name"] for each in about] == [record["metadata"]["name"]]


async def test_a_server_without_the_api_evicts_nothing_for_such_a_policy(scene: Scene) -> None:
    """The policy says what is missing; when it asks for evictions again its pods go."""
    old, policy = await asked(scene)

    condition = await scene.until_condition(policy, "Degraded", "True")
    await scene.runs(policy, 2)

    assert condition["reason"] == "EvictionRequestsNotOffered"
    assert "does not offer lifecycle.k8s.io/v1alpha1" in condition["message"]
    assert await scene.records() == []
    assert await scene.running(app="web") == [old, old]

    await scene.change_policy(policy, {"rebalancing": {"evictBy": "Eviction"}})
    await eventually(lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes)
    await scene.until_condition(policy, "Degraded", "False")


async def test_the_component_s_rights_are_enough_and_each_is_used(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """Asking, looking, withdrawing, deleting; pods are not evicted by us."""
    granted = grants_with("enforce", "eviction-requests")
    cluster = start_roadstead(eviction_requests=True)
    async with (
        offering(cluster.kubeconfig) as (scene, responder),
        door(cluster.plain_url, granted) as entrance,
    ):
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
        _, policy = await asked(scene, RESPONDERS)
        record = await under_way(scene)
        await scene.change_policy(policy, {"rebalancing": {"evictBy": "Eviction", "mode": "DryRun"}})
        await eventually(lambda: phase_of(scene, record), lambda phase: phase == "Cancelled")
        responder.may_migrate.set()
        await scene.change_policy(policy, {"rebalancing": {"evictBy": "EvictionRequest", "mode": "Enforce"}})
        await eventually(scene.phases, lambda phases: "Settled" in phases)
        await eventually(
            lambda: requests(scene), lambda left: all("Withdrawn" in each["spec"]["intent"] for each in left)
        )
        assert await operator.stop() == 0

    assert entrance.refused == set()
    assert granted - grants("enforce") <= entrance.used
    assert ("create", "", "pods/eviction") not in entrance.used


async def test_without_the_rights_the_policy_says_what_to_apply(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """The enforcing role alone may not ask; nothing is evicted instead."""
    cluster = start_roadstead(eviction_requests=True)
    async with (
        offering(cluster.kubeconfig) as (scene, _),
        door(cluster.plain_url, grants("enforce")) as entrance,
    ):
        operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
        old, policy = await asked(scene)
        await eventually(
            lambda: degraded(scene, policy), lambda told: "deploy/components/eviction-requests" in told
        )
        await scene.runs(policy, 2)

        await scene.until_condition(policy, "Ready", "False", "NotAllowed")
        assert entrance.refused == set(), "what is not allowed is not tried"
        assert ("create", "", "pods/eviction") not in entrance.used
        assert await scene.running(app="web") == [old, old]
        assert await operator.stop() == 0
