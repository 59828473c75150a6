"""Label values are enumerable for any names of nodes and pods."""

from typing import Any

from prometheus_client import CollectorRegistry

from plimsoll.telemetry.scheduling import MetricsObserver


def test_a_node_cannot_flood_the_metrics_with_reasons() -> None:
    """The resource that is lacking is named where it is one of Kubernetes' own."""
    registry = CollectorRegistry()
    metrics = MetricsObserver(registry)
    for reason in ("OutOfcpu", "NodeAffinity", *(f"OutOfexample.com/{number}" for number in range(100))):
        metrics.pod_refused("p", reason, pod="a/b", node="n", decision="uid", after_s=None)

    def count(reason: str) -> Any:
        return registry.get_sample_value(
            "plimsoll_scheduler_kubelet_refusals_total", {"profile": "p", "reason": reason}
        )

    assert (count("OutOfcpu"), count("NodeAffinity"), count("OutOfOther")) == (1, 1, 100)
    assert count("OutOfexample.com/1") is None


def test_attempts_are_counted_in_powers_of_two() -> None:
    """As kube-scheduler's histogram has them."""
    registry = CollectorRegistry()
    MetricsObserver(registry).pod_attempts.observe(8)

    name = "plimsoll_scheduler_pod_scheduling_attempts_bucket"
    counts = {each: registry.get_sample_value(name, {"le": each}) for each in ("4.0", "8.0", "16.0", "+Inf")}
    assert counts == {"4.0": 0, "8.0": 1, "16.0": 1, "+Inf": 1}
