"""Passes the usage in a snapshot to strategies as one reading of the metrics API."""

from collections.abc import Mapping

from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS, PROMETHEUS
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.snapshots.content import UsageContent
from plimsoll.usage.queried_usage import STALE_S, sound

#: Why a strategy that queries Prometheus gets no data.
NOT_ASKED = "Prometheus is not asked: only a running operator does that"


def measured(
    usage: UsageContent, spec: RebalancingSpec, touched: Mapping[str, float], now: float
) -> Measurements:
    """The usage that strategies read.

    Args:
        usage: The usage in the snapshot.
        spec: The spec whose strategies read usage.
        touched: Time of the last move off or to each node; older readings are ignored.
        now: Seconds since the epoch.
    """
    sources = spec.usage_sources
    problem = NOT_ASKED if PROMETHEUS in sources else ""
    if KUBERNETES_METRICS not in sources:
        return Measurements(problem=problem)
    fresh = [each for each in sound(usage.nodes, now) if now - each.taken < STALE_S]
    return Measurements(
        nodes=None
        if usage.problem and not usage.nodes
        else {each.name: dict(each.usage) for each in fresh if each.taken > touched.get(each.name, 0.0)},
        pods={each.name: dict(each.usage) for each in sound(usage.pods, now) if now - each.taken < STALE_S},
        problem=usage.problem or problem,
    )
