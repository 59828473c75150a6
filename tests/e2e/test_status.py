"""Output of kubectl for policies and pods with wrong names, specs or runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deploy.manifests import run
from e2e.polls import eventually
from e2e.scene import POLICIES

if TYPE_CHECKING:
    from e2e.operator_process import Operator
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

#: Seconds within which an operator that was killed runs again: until then its lease must end.
RESTART_S = 300.0


def row(operator: Operator, name: str) -> list[str]:
    """What ``kubectl get spol`` shows of a policy, from its mode on."""
    shown = run("kubectl", f"--kubeconfig={operator.kubeconfig}", "get", "spol", name, "--no-headers")
    return shown.split()[1:]


async def test_a_mistyped_scheduler_name_is_reported(scene: Scene) -> None:
    """On the pod, once, with the name that is meant; and on the policy that has it."""
    await scene.node("a")
    name = await scene.scheduling()
    await scene.pod("lost", schedulerName=scene.scheduler[:-1])

    (event,) = await eventually(lambda: scene.events("lost", "FailedScheduling"))
    assert f'did you mean "{scene.scheduler}"?' in event["note"]
    assert event["type"] == "Warning"
    condition = await scene.until_condition(name, "PodsOrphaned", "True", "SchedulerNameUnknown")
    assert f"such as {scene.name}/lost" in condition["message"]
    await eventually(lambda: scene.warnings(name, "SchedulerNameUnknown"))
    (await scene.speaker.request("DELETE", scene.path("pods/lost"), gracePeriodSeconds="0")).accepted()
    await scene.until_condition(name, "PodsOrphaned", "False")
    assert len(await scene.events("lost", "FailedScheduling")) == 1


async def test_a_mistyped_namespace_is_reported(scene: Scene) -> None:
    """With the one that is meant; it is mended with the spec."""
    spec = scene.rebalancing("RemoveDuplicates", mode="DryRun")
    spec["scope"]["namespaces"]["include"] = [scene.name[:-1]]
    name = await scene.policy(spec)

    condition = await scene.until_condition(name, "Degraded", "True", "ScopeNameUnknown")
    assert f'did you mean "{scene.name}"?' in condition["message"]
    await eventually(lambda: scene.warnings(name, "ScopeNameUnknown"))
    await scene.change_policy(name, {"scope": {"namespaces": {"include": [scene.name]}}})
    await scene.until_condition(name, "Degraded", "False")


async def test_policies_over_the_same_pods_say_so(scene: Scene) -> None:
    """As a condition and an event of each; it is over when one of them goes."""
    node = await scene.node("a")
    await scene.deployment("web", 2, nodeName=node, schedulerName="default-scheduler")
    asked = scene.rebalancing("RemovePodsViolatingNodeTaints")
    asked["scope"]["otherSchedulers"] = ["default-scheduler"]
    first = await scene.policy(asked, "first")
    await scene.runs(first, 1)
    second = await scene.policy(asked, "second")

    condition = await scene.until_condition(second, "Overlapping", "True", "SamePods")
    assert f"of the 2 pods in scope, others may be moved as well: 2 by policy {first}" in condition["message"]
    await eventually(lambda: scene.warnings(second, "SamePods"))
    (await scene.speaker.request("DELETE", f"{POLICIES}/{first}")).accepted()
    await scene.until_condition(second, "Overlapping", "False")


async def test_a_refused_policy_is_degraded_and_told(scene: Scene, operator: Operator) -> None:
    """In the columns, in the message and in an event."""
    spec = scene.rebalancing("NoSuchStrategy")
    name = await scene.policy(spec)

    condition = await scene.until_condition(name, "Degraded", "True", "InvalidConfiguration")
    assert "NoSuchStrategy" in condition["message"]
    await eventually(lambda: scene.warnings(name, "InvalidConfiguration"))
    assert row(operator, name)[:4] == ["Enforce", "False", "False", "True"]


async def test_totals_survive_a_restart(scene: Scene, operator: Operator) -> None:
    """Two moves of an earlier run, and of an earlier process, are in the columns."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 2)
    await scene.node("new")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    name = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints"))
    await eventually(
        lambda: scene.policy_status(name), lambda found: found.get("totals", {}).get("moved") == 2
    )
    await scene.runs(name, 2)
    assert row(operator, name)[4:8] == ["0", "2", "0", "0"]

    await scene.crash(operator)
    before = (await scene.policy_status(name))["lastRun"]["startTime"]
    operator.start()

    await eventually(
        lambda: scene.policy_status(name), lambda found: found["lastRun"]["startTime"] > before, RESTART_S
    )
    assert row(operator, name)[4:8] == ["0", "2", "0", "0"]


async def test_predictions_go_with_their_policy(scene: Scene) -> None:
    """Soon after it."""
    old = await scene.node("old")
    await scene.deployment("web", 1, nodeName=old, schedulerName="default-scheduler")
    await scene.node("new")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    asked = scene.rebalancing("RemovePodsViolatingNodeTaints", mode="DryRun", evictor={"minReplicas": 1})
    asked["scope"]["otherSchedulers"] = ["default-scheduler"]
    name = await scene.policy(asked)
    await eventually(scene.phases, lambda phases: phases == ["Predicted"])
    await eventually(
        lambda: scene.policy_status(name), lambda found: found.get("totals", {}).get("predicted") == 1
    )

    (await scene.speaker.request("DELETE", f"{POLICIES}/{name}")).accepted()

    await eventually(scene.records, lambda records: not records)
