"""Sources of actual usage, for strategies that use it."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec

KUBERNETES_METRICS: Final = "KubernetesMetrics"
PROMETHEUS: Final = "Prometheus"


class MetricsProviderSpec(Resource):
    """A source of actual usage."""

    rules = (
        Rule(
            cel="(self.source == 'Prometheus') == has(self.prometheus)",
            holds=lambda self: (self.source == PROMETHEUS) == (self.prometheus is not None),
            message="source Prometheus needs prometheus.url, and only that source takes it",
        ),
    )

    source: Literal["KubernetesMetrics", "Prometheus"] = Field(
        description="KubernetesMetrics is the metrics API of the cluster (metrics.k8s.io)."
    )
    prometheus: PrometheusProviderSpec | None = Field(
        default=None, description="Where Prometheus is, for the source of that name."
    )


def source_of(args: Mapping[str, object]) -> tuple[str, str]:
    """Where a strategy's arguments say that usage comes from, and the query; "" for requests."""
    metrics = args.get("metricsUtilization")
    if not isinstance(metrics, Mapping):
        return "", ""
    if metrics.get("metricsServer") is True:
        return KUBERNETES_METRICS, ""
    prometheus = metrics.get("prometheus")
    query = prometheus.get("query") if isinstance(prometheus, Mapping) else ""
    return str(metrics.get("source") or ""), str(query or "")
