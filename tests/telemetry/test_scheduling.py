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


def test_bound_pods_are_timed_by_their_attempts() -> None:
    """From 15 on they are one."""
    registry = CollectorRegistry()
    metrics = MetricsObserver(registry)
    for attempts in (1, 14, 15, 1000):
        metrics.pod_bound(attempts, 1.0)

    name = "plimsoll_scheduler_pod_scheduling_sli_duration_seconds_count"
    counts = {each: registry.get_sample_value(name, {"attempts": each}) for each in ("1", "14", "15+", "15")}
    assert counts == {"1": 1, "14": 1, "15+": 2, "15": None}
