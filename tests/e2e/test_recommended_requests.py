"""VerticalPodAutoscalers of a real collection: moves are proven with what they recommend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.conftest import DEFINITIONS, define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import MERGE, speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from e2e.scene import Obj
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # an operator on a cluster of its own, which has the kind from the start
]

GROUP = "/apis/autoscaling.k8s.io/v1"
ANY: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "verticalpodautoscalers.autoscaling.k8s.io"},
    "spec": {
        "group": "autoscaling.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "verticalpodautoscalers", "kind": "VerticalPodAutoscaler"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANY}}],
    },
}
BROKEN = {"spec": {"taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]}}


async def predicted(scene: Scene) -> list[str]:
    """The targets of the predicted moves."""
    found = await scene.items(scene.records_path)
    return sorted(each["spec"]["targetNode"] for each in found if each.get("status"))


async def refused(scene: Scene, policy: str) -> list[str]:
    """Why the others stay."""
    counts = (await scene.policy_status(policy)).get("counts", {})
    return [each["message"] for each in counts.get("refused", ())]


async def test_moves_are_predicted_with_the_recommended_requests(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """One pod fits with 2 cpu, on the larger node; in mode Off both fit, with the 500m that they have."""
    cluster = start_roadstead(nodes=0)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        await speaker.install(DEFINITIONS, DEFINITION)
        collection = f"{GROUP}/verticalpodautoscalers"
        await eventually(lambda: speaker.request("GET", collection), lambda answer: answer.status == 200)
        operator = start_operator(cluster.kubeconfig)
        scene = await Scene(speaker).begin()
        old = await scene.node("old")
        await scene.scheduling()
        await scene.deployment("web", 2, cpu="500m")
        target = {"containerName": "app", "target": {"cpu": "2"}}
        autoscaler = {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            "status": {"recommendation": {"containerRecommendations": [target]}},
        }
        path = scene.path("verticalpodautoscalers", GROUP)
        await scene.make(path, autoscaler)
        small, big = await scene.node("small", cpu="1900m"), await scene.node("big", cpu="3")
        await scene.change_node(old, BROKEN)
        spec = scene.rebalancing(
            "RemovePodsViolatingNodeTaints",
            mode="DryRun",
            evictor={"minReplicas": 0},
            limits={"perWorkload": "100%"},
        )
        policy = await scene.policy(spec)

        await eventually(lambda: predicted(scene), lambda found: found == [big])
        (said,) = await eventually(lambda: refused(scene, policy))
        change = {"spec": {"updatePolicy": {"updateMode": "Off"}}}
        (await speaker.request("PATCH", f"{path}/web", change, sends=MERGE)).accepted()
        both = await eventually(lambda: predicted(scene), lambda found: len(found) == 2)

    assert said.endswith("2 Insufficient cpu; its replacement will request cpu 2 (now 500m)")
    assert {*both} <= {small, big}
    assert operator.terminate() == 0, operator.said()
