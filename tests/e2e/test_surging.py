"""Single replicas move without a moment in which none is ready, or stay where they are."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from e2e.polls import eventually, throughout
from e2e.speaker import MERGE
from plimsoll.model.kinds.deployment import SURGED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from e2e.operator_process import Operator
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

STRATEGY = "RemovePodsViolatingNodeTaints"
BROKEN = {"spec": {"taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]}}


def is_serving(pod: Obj) -> bool:
    """Whether traffic may go there."""
    conditions = pod["status"].get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


@asynccontextmanager
async def witnessed(scene: Scene) -> AsyncIterator[list[frozenset[str]]]:
    """The names of the scene's serving pods, after each event that any of them had."""
    path = scene.path("pods")
    listed = (await scene.speaker.request("GET", path)).accepted()
    present = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
    seen: list[frozenset[str]] = []

    def look() -> None:
        seen.append(frozenset(pod["metadata"]["name"] for pod in present.values() if is_serving(pod)))

    async def follow() -> None:
        async with aclosing(scene.speaker.watch(path, listed["metadata"]["resourceVersion"])) as events:  # type: ignore[type-var] # known in this test
            async for event in events:
                assert event["type"] in {"ADDED", "MODIFIED", "DELETED"}, event
                uid = event["object"]["metadata"]["uid"]
                if event["type"] == "DELETED":
                    present.pop(uid, None)
                else:
                    present[uid] = event["object"]
                look()

    look()
    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        assert not task.done(), "the watch has ended"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def stranded(scene: Scene, rollout: Obj | None = None, **node: Any) -> tuple[str, str]:
    """A service of one pod on a node that has come to be broken, and another node."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 1, rollout=rollout)
    new = await scene.node("new", **node)
    await scene.change_node(old, BROKEN)
    return old, new


async def deployment_of(scene: Scene) -> Obj:
    """The service's Deployment."""
    found: Obj = (
        await scene.speaker.request("GET", scene.path("deployments/web", "/apis/apps/v1"))
    ).accepted()
    return found


async def revisions(scene: Scene) -> int:
    """How many ReplicaSets the service has had."""
    return len(await scene.items(scene.path("replicasets", "/apis/apps/v1")))


def surging(scene: Scene, **more: Any) -> Obj:
    """A policy that surges."""
    return scene.rebalancing(STRATEGY, surge=True, **more)


async def test_a_single_replica_moves_and_one_is_ready_at_every_moment(scene: Scene) -> None:
    """Replacement first, on the other node; one rollout; a budget that allows no eviction is no obstacle."""
    old, new = await stranded(scene)
    await scene.budget("web", "web", minAvailable=1)
    (before,) = await scene.pods(app="web")
    async with witnessed(scene) as seen:
        policy = await scene.policy(surging(scene))
        (record,) = await scene.until_finished(1)
        await eventually(lambda: scene.pods(app="web"), lambda pods: len(pods) == 1)
        status = await scene.runs(policy, 2)

    assert [each["phase"] for each in record["status"]["transitions"]] == ["Planned", "Surging", "Settled"]
    assert record["spec"]["surge"]["deployment"] == "web"
    assert (record["spec"]["fromNode"], record["spec"]["targetNode"]) == (old, new)
    assert await scene.running(app="web") == [new]
    assert min(map(len, seen)) == 1, "at some moment no pod was ready"
    assert max(map(len, seen)) == 2
    assert seen[0] == {before["metadata"]["name"]}
    assert await revisions(scene) == 2
    template = (await deployment_of(scene))["spec"]["template"]["metadata"]["annotations"]
    assert template == {SURGED: f"{record['metadata']['name']} from {old}"}
    assert status["counts"]["evicted"] == 0, "it moves once"
    await eventually(lambda: scene.events("web", "PodSurging"))


async def test_a_replacement_that_is_not_ready_in_time_is_taken_back(scene: Scene) -> None:
    """The new pod runs and never becomes ready: it goes, the old one has never been touched."""
    old, _ = await stranded(scene, {"progressDeadlineSeconds": 6}, readies_pods=False)
    (before,) = await scene.pods(app="web")
    template = (await deployment_of(scene))["spec"]["template"]
    async with witnessed(scene) as seen:
        await scene.policy(surging(scene))
        record = await scene.until_one_is_finished()
        pods = await eventually(lambda: scene.pods(app="web"), lambda pods: len(pods) == 1)

    status = record["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "ReplacementNotReady")
    assert status["message"].endswith(f"the rollout was taken back, pod {before['metadata']['name']} stays")
    assert set(seen) == {frozenset({before["metadata"]["name"]})}
    assert pods[0]["metadata"]["uid"] == before["metadata"]["uid"]
    assert pods[0]["spec"]["nodeName"] == old
    after = await deployment_of(scene)
    assert (after["spec"]["template"]["metadata"].get("annotations") or {}) == {}
    assert {**after["spec"]["template"], "metadata": template["metadata"]} == template
    settled = (1, 1, 1)
    await eventually(
        lambda: deployment_of(scene),
        lambda one: (
            tuple(one["status"].get(each) for each in ("replicas", "updatedReplicas", "availableReplicas"))
            == settled
        ),
    )


@pytest.mark.parametrize("moment", ["Surging", "replaced"])
async def test_a_surge_outlives_the_operator(moment: str, scene: Scene, operator: Operator) -> None:
    """Killed with a rollout under way: the next process goes on with it and starts no second one."""
    old, new = await stranded(scene, runs_pods=False)  # nothing is ready before somebody plays the kubelet
    async with witnessed(scene) as seen:
        await scene.policy(surging(scene))
        if moment == "Surging":
            await eventually(scene.phases, lambda phases: phases == ["Surging"])
        else:
            await eventually(lambda: scene.pods(app="web"), lambda pods: len(pods) == 2)
        await scene.crash(operator)
        await scene.run_pods_of(new)
        operator.start()
        (record,) = await scene.until_finished(1)
        await eventually(lambda: scene.running(app="web"), lambda nodes: nodes == [new])

    assert [each["phase"] for each in record["status"]["transitions"]] in (
        ["Planned", "Surging", "Settled"],
        ["Planned", "Surging", "Cancelled"],  # killed between the record and the rollout
    )
    assert min(map(len, seen)) == 1
    assert await revisions(scene) == 2
    assert old not in await scene.running(app="web")


async def test_somebody_elses_rollout_wins(scene: Scene) -> None:
    """A person changes the template in the middle of a surge: it stays changed, and the record says so."""
    await stranded(scene, {"progressDeadlineSeconds": 8}, readies_pods=False)
    await scene.policy(surging(scene))
    await eventually(scene.phases, lambda phases: phases == ["Surging"])

    change = {"spec": {"template": {"metadata": {"annotations": {"team": "a"}}}}}
    path = scene.path("deployments/web", "/apis/apps/v1")
    (await scene.speaker.request("PATCH", path, change, sends=MERGE)).accepted()
    record = await scene.until_one_is_finished()

    annotations = (await deployment_of(scene))["spec"]["template"]["metadata"]["annotations"]
    assert annotations["team"] == "a"
    if record["status"]["phase"] == "Cancelled":  # it was faster than the rollout
        assert annotations == {"team": "a"}
    else:
        assert record["status"]["message"].endswith("so the rollout was left alone")
        assert SURGED in annotations


async def test_what_cannot_be_surged_stays_with_a_sentence(scene: Scene) -> None:
    """A StatefulSet's only pod, and a Deployment that may be without its pod."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 1, rollout={"strategy": {"rollingUpdate": {"maxUnavailable": 1}}})
    labels = {"app": "db"}
    document = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": scene.pod_spec()},
        },
    }
    await scene.make(scene.path("statefulsets", "/apis/apps/v1"), document)
    await scene.until_running(1, app="db")
    await scene.node("new")
    await scene.change_node(old, BROKEN)
    policy = await scene.policy(surging(scene))

    status = await scene.runs(policy, 2)

    (refused,) = status["counts"]["refused"]
    assert (refused["reason"], refused["count"]) == ("NoSurge", 2)
    assert any(
        each in refused["message"]
        for each in ("its owner is a StatefulSet", "may be without its pod in a rollout")
    )
    await throughout(scene.running, lambda nodes: nodes == [old, old], 1)
    assert await scene.records() == []


async def test_a_dry_run_predicts_the_surge(scene: Scene) -> None:
    """The same plan, the record says that it is one, and the Deployment is left alone."""
    old, new = await stranded(scene)
    await scene.policy(surging(scene, mode="DryRun"))

    (record,) = await scene.until_finished(1)

    assert record["status"]["phase"] == "Predicted"
    assert "a surge, by a rollout of Deployment web" in record["status"]["message"]
    assert (record["spec"]["surge"]["deployment"], record["spec"]["targetNode"]) == ("web", new)
    assert await scene.running(app="web") == [old]
    assert await revisions(scene) == 1


COST = "controller.kubernetes.io/pod-deletion-cost"


async def three(scene: Scene, least: int) -> tuple[str, str]:
    """A service of three pods with a budget on a node that has come to be broken, and another node."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 3)
    new = await scene.node("new")
    await scene.budget("web", "web", minAvailable=least)
    await scene.change_node(old, BROKEN)
    return old, new


async def test_several_replicas_move_and_none_is_missing_at_any_moment(scene: Scene) -> None:
    """One more and one less, three times, under a budget that allows no eviction."""
    _, new = await three(scene, 3)
    async with witnessed(scene) as seen:
        await scene.policy(surging(scene))
        records = await scene.until_finished(3)
        await eventually(lambda: scene.pods(app="web"), lambda pods: len(pods) == 3)

    assert await scene.running(app="web") == [new] * 3
    assert {record["status"]["phase"] for record in records} == {"Settled"}
    assert all(record["spec"]["surge"] == {**record["spec"]["surge"], "replicas": 3} for record in records)
    assert (min(map(len, seen)), max(map(len, seen))) == (3, 4)
    assert await revisions(scene) == 1
    assert (await deployment_of(scene))["spec"]["replicas"] == 3
    assert not any(COST in (pod["metadata"].get("annotations") or {}) for pod in await scene.pods(app="web"))


async def test_who_scales_by_itself_is_not_fought_with(scene: Scene) -> None:
    """A HorizontalPodAutoscaler decides on the number: pods are evicted, as the budget allows."""
    old, _ = await three(scene, 2)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 9}
    path = scene.path("horizontalpodautoscalers", "/apis/autoscaling/v2")
    await scene.make(path, {"metadata": {"name": "web"}, "spec": spec})
    await scene.policy(surging(scene))
    records = await scene.until_finished(1)

    assert "surge" not in records[0]["spec"]
    assert await scene.running(app="web") != [old] * 3
