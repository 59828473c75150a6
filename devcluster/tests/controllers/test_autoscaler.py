"""HorizontalPodAutoscalers: up immediately, down after a while, within bounds."""

from typing import Any

import pytest

from roadstead.values.status_errors import StatusError
from simulated_cluster import Simulation, a_template

SCALERS, USAGE = "horizontalpodautoscalers.autoscaling", "roadstead.test/usage"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    simulation.with_controllers().with_kubelets()
    simulation.nodes("n1")
    return simulation


def deployment(cluster: Simulation, usage: str, replicas: int = 2) -> None:
    template = a_template({"app": "web"}, nodeName="n1")
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    template["metadata"]["annotations"] = {USAGE: f"cpu={usage}"}
    cluster.workload("Deployment", "web", replicas, template=template)
    cluster.settle(3)


def use(cluster: Simulation, usage: str) -> None:
    """Let all pods, and those to come, use so much."""
    annotations = {"metadata": {"annotations": {USAGE: f"cpu={usage}"}}}
    for pod in cluster.pods():
        cluster.api.patch("pods", "default", pod["metadata"]["name"], annotations)


def scale(cluster: Simulation, least: int = 1, most: int = 10, **spec: Any) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    target = {"type": "Utilization", "averageUtilization": 50}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    spec = {
        "scaleTargetRef": reference,
        "metrics": metrics,
        "minReplicas": least,
        "maxReplicas": most,
        **spec,
    }
    cluster.create("HorizontalPodAutoscaler", "web", resource=SCALERS, **spec)
    cluster.settle()


def replicas(cluster: Simulation) -> Any:
    return cluster.get("deployments.apps", "web")["spec"]["replicas"]


def conditions(cluster: Simulation) -> Any:
    status = cluster.get(SCALERS, "web")["status"]
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def test_more_load_makes_more_pods(cluster: Simulation) -> None:
    """Two pods at 100 per cent of a target of 50: four."""
    deployment(cluster, "100m")

    scale(cluster)

    assert replicas(cluster) == 4
    reason = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    assert ("SuccessfulRescale", reason) in cluster.events()
    status = cluster.get(SCALERS, "web")["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    assert status["currentMetrics"][0]["resource"] == {
        "name": "cpu",
        "current": {"averageUtilization": 100, "averageValue": "100m"},
    }


def test_less_load_makes_fewer_pods_after_five_minutes(cluster: Simulation) -> None:
    deployment(cluster, "50m", replicas=4)
    scale(cluster)
    assert replicas(cluster) == 4

    use(cluster, "10m")
    cluster.settle(280)
    assert replicas(cluster) == 4
    cluster.settle(40)

    assert replicas(cluster) == 1


def test_a_window_of_its_own_makes_it_shrink_immediately(cluster: Simulation) -> None:
    deployment(cluster, "10m", replicas=4)

    scale(cluster, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    cluster.settle(16)

    assert replicas(cluster) == 1


def test_a_small_deviation_changes_nothing(cluster: Simulation) -> None:
    deployment(cluster, "54m")

    scale(cluster)

    assert replicas(cluster) == 2
    assert conditions(cluster) == {
        "AbleToScale": ("True", "ReadyForNewScale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }


def test_the_bounds_are_kept(cluster: Simulation) -> None:
    deployment(cluster, "400m", replicas=1)
    scale(cluster, least=2, most=3)
    assert replicas(cluster) == 2

    cluster.settle(16)

    assert replicas(cluster) == 3
    assert conditions(cluster)["ScalingLimited"] == ("True", "TooManyReplicas")


def test_it_grows_step_by_step(cluster: Simulation) -> None:
    """To the double, or by four, each fifteen seconds."""
    deployment(cluster, "2")

    scale(cluster, most=50)
    assert replicas(cluster) == 6
    assert conditions(cluster)["ScalingLimited"] == ("True", "ScaleUpLimit")
    cluster.settle(16)

    assert replicas(cluster) == 12


def test_what_cannot_be_computed_is_said(cluster: Simulation) -> None:
    """No target, no pods, no replicas, no such metric."""
    scale(cluster)
    assert conditions(cluster)["AbleToScale"] == ("False", "FailedGetScale")

    cluster.workload("Deployment", "web", 1)
    cluster.settle(16)
    assert conditions(cluster)["ScalingActive"] == ("False", "FailedGetResourceMetric")

    cluster.change("Deployment", "web", {"spec": {"replicas": 0}})
    cluster.settle(16)
    assert conditions(cluster)["ScalingActive"] == ("False", "ScalingDisabled")


def test_bounds_that_contradict_each_other_are_refused(cluster: Simulation) -> None:
    with pytest.raises(StatusError, match="must be greater than or equal to `minReplicas`"):
        scale(cluster, least=3, most=2)
