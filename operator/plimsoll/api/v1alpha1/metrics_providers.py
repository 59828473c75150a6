"""Sources of actual usage, for strategies that use it."""

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
