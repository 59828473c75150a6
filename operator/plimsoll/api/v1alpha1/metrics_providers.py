"""Sources of actual usage, for strategies that use it."""

import re
from typing import Final, Literal

from pydantic import Field

from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule

KUBERNETES_METRICS: Final = "KubernetesMetrics"
PROMETHEUS: Final = "Prometheus"

#: Addresses of a Prometheus server, without what would cut off the path that is appended, and without
#: credentials, which conditions and logs would show.
PLAIN_URL: Final = (
    r"^https?://([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
)


def is_plain_url(url: str) -> bool:
    """Whether an address has a scheme, a host, perhaps a port and a path, and nothing else."""
    return re.fullmatch(PLAIN_URL, url) is not None and not url.endswith("\n")


class PrometheusProviderSpec(Resource):
    """A Prometheus server, asked without credentials."""

    rules = (
        Rule(
            cel=f"self.url.matches(r'{PLAIN_URL}')",
            holds=lambda self: is_plain_url(self.url),
            message="write it like http://prometheus.monitoring.svc:9090, with a path if need be; a user,"
            " a password, a query (?) and a fragment (#) are not allowed",
            field="url",
        ),
    )

    url: str = Field(
        max_length=2048,
        description="Its address, to which /api/v1/query is appended.",
        examples=["http://prometheus.monitoring.svc:9090"],
    )


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
