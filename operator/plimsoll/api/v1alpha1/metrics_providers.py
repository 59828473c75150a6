"""Where actual usage comes from, for strategies that go by it."""

from typing import Final, Literal

from pydantic import Field

from plimsoll.api.v1alpha1.resource import Resource
from plimsoll.api.v1alpha1.rules import Rule

KUBERNETES_METRICS: Final = "KubernetesMetrics"
PROMETHEUS: Final = "Prometheus"


class PrometheusProvider(Resource):
    """A Prometheus server, asked without credentials."""

    url: str = Field(
        pattern=r"^https?://[A-Za-z0-9\[]",
        max_length=2048,
        description="Its address, to which /api/v1/query is appended.",
        examples=["http://prometheus.monitoring.svc:9090"],
    )


class MetricsProvider(Resource):
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
    prometheus: PrometheusProvider | None = Field(
        default=None, description="Where Prometheus is, for the source of that name."
    )
