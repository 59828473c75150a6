"""The operator under exactly the rights of deploy/: nothing that it needs is refused, nothing is idle."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from deploy.manifests import grants
from e2e.speaker import MERGE, speaking
from e2e.stories import LATER, OF_OTHER_KINDS, a_prediction, a_stranded_service, a_surge, everything
from e2e.test_preemption import evicting, high_pod, low_pod, names, with_classes

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.conftest import StartGuarded

pytestmark = pytest.mark.e2e


async def test_the_enforcing_role_is_enough_and_no_more(guarded: StartGuarded) -> None:
    """Placing, telling why not, preempting, moving, recording, tidying up."""
    async with guarded("enforce") as (scene, entrance, operator):
        await everything(scene)

        assert await operator.stop() == 0
    assert entrance.refused == set()
    assert entrance.denied == []
    assert entrance.admitted == {"nodes"}
    assert grants("enforce") - entrance.used == LATER


async def test_with_the_operators_rights_a_node_gets_our_taints_and_nothing_else(
    guarded: StartGuarded, tmp_path: Path
) -> None:
    """The API server refuses the rest, with a sentence, although RBAC lets it through."""
    async with (
        guarded("enforce") as (scene, entrance, operator),
        speaking(tmp_path / "door") as thief,
    ):
        await asyncio.to_thread(operator.until_ready)
        path = f"/api/v1/nodes/{await scene.node('a')}"
        ours = {
            "spec": {
                "taints": [
                    {"key": f"plimsoll.dev/{each}", "effect": "NoSchedule"}
                    for each in ("consolidating", "unhealthy")
                ]
            }
        }
        evil = {"spec": {"taints": [{"key": "evil", "effect": "NoExecute"}]}}

        answers = [
            await thief.request("PATCH", path, body, sends=MERGE)
            for body in (ours, evil, {"spec": {"unschedulable": True}}, {"metadata": {"labels": {"a": "b"}}})
        ]

        assert [answer.status for answer in answers] == [200, 403, 403, 403]
        assert answers[1].message == (
            "ValidatingAdmissionPolicy 'plimsoll-only-the-taint' with binding 'plimsoll-only-the-taint'"
            " denied request: the operator may set and remove the taints"
            " plimsoll.dev/consolidating and plimsoll.dev/unhealthy of a node,"
            " with the effect NoSchedule or PreferNoSchedule, and nothing else"
        )
        assert entrance.refused == set()
        assert await operator.stop() == 0


async def test_victims_leave_by_eviction_without_the_right_to_delete_pods(guarded: StartGuarded) -> None:
    """The component preempt-by-eviction takes the right away, and nothing is refused for it."""
    async with guarded("enforce", component="preempt-by-eviction") as (scene, entrance, operator):
        await with_classes(scene, high=1000)
        node = await scene.node("only", cpu="1")
        await evicting(scene)
        await low_pod(scene, "low", node)

        await high_pod(scene)
        await scene.until_bound("high")

        assert await operator.stop() == 0
    assert entrance.refused == set()
    assert ("create", "", "pods/eviction") in entrance.used
    assert ("delete", "", "pods") not in entrance.used


async def test_without_the_right_to_delete_pods_the_policy_says_what_to_do(guarded: StartGuarded) -> None:
    """Where a policy preempts by deletion; the victim stays, and nothing that is forbidden is tried."""
    async with guarded("enforce", component="preempt-by-eviction") as (scene, entrance, operator):
        await with_classes(scene, high=1000)
        node = await scene.node("only", cpu="1")
        name = await scene.scheduling()
        await low_pod(scene, "low", node)

        await high_pod(scene)
        condition = await scene.until_condition(name, "Degraded", "True", "NotAllowed")

        assert (
            "may not delete pods; apply deploy/enforce/preempting.yaml, or set preemption.viaEviction"
            in (condition["message"])
        )
        assert entrance.refused == set()
        assert await names(scene) == {"low", "high"}
        assert await operator.stop() == 0


async def test_the_dry_run_role_is_enough_to_predict(guarded: StartGuarded) -> None:
    """And a policy that wants more says so, tries nothing, and does no harm."""
    async with guarded("dry-run") as (scene, entrance, operator):
        name, old = await a_prediction(scene)
        assert entrance.refused == set()

        await scene.change_policy(name, {"rebalancing": {"mode": "Enforce"}})
        condition = await scene.until_condition(name, "Degraded", "True", "NotAllowed")
        assert "create pods/eviction; apply deploy/enforce" in condition["message"]
        await scene.runs(name, 2)

        assert entrance.refused == set()
        assert await scene.phases() == ["Predicted"], "what was agreed with stays until a run may act"
        assert await scene.running(app="web") == [old, old]
        assert await operator.stop() == 0


async def test_the_surging_role_is_enough_and_no_more(guarded: StartGuarded) -> None:
    """What it grants beyond the enforcing one is used by a surge that is taken back, all of it."""
    async with guarded("surge") as (scene, entrance, operator):
        await a_surge(scene)

        assert await operator.stop() == 0
    assert entrance.refused == set()
    assert grants("surge") - grants("enforce") == {
        *((verb, "apps", "deployments") for verb in ("get", "list", "patch")),
        *(("patch", "apps", "deployments/scale"), ("list", "autoscaling", "horizontalpodautoscalers")),
        *(("list", "argoproj.io", "rollouts"), ("list", "apps.kruise.io", "clonesets")),
        *OF_OTHER_KINDS,
    }
    assert grants("surge") - grants("enforce") - entrance.used == OF_OTHER_KINDS
    assert entrance.denied == []
    assert "deployments" in entrance.admitted


async def test_without_the_surging_role_the_policy_says_so(guarded: StartGuarded) -> None:
    """The pod stays, and a condition names what is missing."""
    async with guarded("enforce") as (scene, entrance, operator):
        name, old = await a_stranded_service(scene)

        condition = await scene.until_condition(name, "Degraded", "True", "NotAllowed")

        assert "deployments.apps (get, list, patch), " in condition["message"]
        assert "apply deploy/components/surge" in condition["message"]
        assert (await scene.runs(name, 2))["lastRun"]["result"] == "Succeeded"
        assert entrance.refused == set()
        assert await scene.running(app="web") == [old]
        assert await operator.stop() == 0
