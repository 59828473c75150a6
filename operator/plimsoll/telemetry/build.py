"""``plimsoll_build_info``: which version runs, as Kubernetes' components say it."""

import platform

from prometheus_client import CollectorRegistry, Gauge

import plimsoll


def build_info(registry: CollectorRegistry) -> None:
    """Register the metric."""
    Gauge(
        "plimsoll_build_info",
        "Always 1. Labeled by version (of Plimsoll), python_version and platform.",
        ["version", "python_version", "platform"],
        registry=registry,
    ).labels(
        plimsoll.__version__,
        platform.python_version(),
        f"{platform.system()}/{platform.machine()}".lower(),
    ).set(1)
