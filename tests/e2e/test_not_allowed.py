"""Enforcing policies on a dry-run installation: statuses and events, until the rights are granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deploy.manifests import NAME, rendered, run
from e2e.conftest import DEFINITIONS, define, documents
from e2e.door import door, kubeconfig_for
from e2e.polls import eventually, throughout
from e2e.rbac import Rights
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.test_deleted_definitions import says
from e2e.test_deploying import APPLYING, applied

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.rbac import Asked
    from roadstead.pytest_plugin import StartRoadstead

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"

pytestmark = pytest.mark.e2e

#: Seconds within which rights that were granted are found.
REMEDY_S = 90.0

MISSING = "apply deploy/enforce (chart: mode: Enforce)"


async def policies_of(operator: Operator) -> float:
    """How many policies it knows."""
    return operator.metric("plimsoll_policy_condition", type="Accepted")


async def test_acting_policies_under_the_rights_of_a_dry_run(  # noqa: PLR0915 - one story, told in order
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """Nothing is tried that is not allowed, each object reports it once, and the remedy needs no restart."""
    cluster = start_roadstead()
    kubectl = ("kubectl", f"--kubeconfig={cluster.kubeconfig}")
    applied(rendered("dry-run"), cluster.kubeconfig)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        rights = [await Rights.read(speaker, NAME, NAME)]

        def permits(asked: Asked) -> bool:
            return rights[0](asked)

        async with door(cluster.plain_url, permits) as entrance:
            path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
            entrance.policies = (await speaker.request("GET", path)).accepted()["items"]
            config = kubeconfig_for(tmp_path / "door", entrance.url, cluster.token)
            operator = start_operator(config, f"--leader-elect-resource-namespace={NAME}")
            scene = await Scene(speaker).begin()
            old = await scene.node("old")
            await scene.placed_by_hand("web", 2, old)
            await scene.node("new")
            await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
            placing = await scene.policy({"scheduling": {"schedulerName": scene.scheduler}}, "placing")
            moving = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints"), "moving")
            await scene.pod("waiting")

            for name, wants in ((placing, "create pods/binding"), (moving, "create pods/eviction")):
                ready = await scene.until_condition(name, "Ready", "False", "NotAllowed")
                degraded = await scene.until_condition(name, "Degraded", "True", "NotAllowed")
                assert wants in ready["message"]
                assert wants in degraded["message"]
                assert MISSING in ready["message"]
                await eventually(lambda name=name: scene.warnings(name, "NotAllowed"))  # type: ignore[misc] # a lambda that keeps a variable of the loop
            status = await scene.runs(moving, 3)
            assert (
                status["lastRun"]["message"]
                == "2 candidates: none moved, 2 held back (NotAllowed, LastReady)"
            )
            assert [each["reason"] for each in status["counts"]["refused"]] == ["LastReady", "NotAllowed"]
            assert await scene.node_of("waiting") == ""
            (event,) = await eventually(lambda: scene.events("waiting", "FailedScheduling"))
            assert event["note"].startswith("the operator may not create pods/binding")
            await throughout(scene.records, lambda records: not records, 2)
            assert len(await scene.events("waiting", "FailedScheduling")) == 1
            assert entrance.refused == set()
            shown = run(*kubectl, "get", "spol")
            told = run(*kubectl, "describe", "spol", moving)
            assert "Warning  NotAllowed" in told
            assert MISSING in told
            row = next(line for line in shown.splitlines() if line.startswith(moving)).split()
            assert row[1:5] == ["Enforce", "True", "False", "True"]

            run(*kubectl, *APPLYING, "-f-", given=rendered("enforce"))
            rights[0] = await Rights.read(speaker, NAME, NAME)

            await eventually(lambda: scene.node_of("waiting"), within_s=REMEDY_S)
            await eventually(
                lambda: scene.running(app="web"), lambda nodes: len(nodes) == 2 and old not in nodes, REMEDY_S
            )
            for name in (placing, moving):
                await scene.until_condition(name, "Ready", "True", "Serving")
                await scene.until_condition(name, "Degraded", "False", "AsExpected")
            await eventually(
                lambda: scene.policy_status(moving), lambda found: found.get("totals", {}).get("moved") == 2
            )
            await eventually(scene.phases, lambda phases: phases == ["Settled", "Settled"])
            assert entrance.refused == set()
            shown = run(*kubectl, "get", "spol")
            row = next(line for line in shown.splitlines() if line.startswith(moving)).split()
            assert row[1:5] == ["Enforce", "True", "True", "False"]
            assert row[6:9] == ["2", "0", "0"]

            for name in (placing, moving):  # it is removed: policies, rights, definitions
                (await speaker.request("DELETE", f"{POLICIES}/{name}")).accepted()
            await eventually(lambda: policies_of(operator), lambda known: known == 0)
            rights[0] = await Rights.read(speaker, NAME, "removed")
            for definition in documents("crds"):
                (
                    await speaker.request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
                ).accepted()
            await eventually(lambda: says(operator, "does not serve resources"))
            assert "contained failure" not in operator.said()
            operator.kill()
