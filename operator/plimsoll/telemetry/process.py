"""Metrics of the process: build, connection to the API server, event loops, leadership."""

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

import plimsoll
from plimsoll.ports.observer import Observer


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


REQUEST_BUCKETS = tuple(0.005 * 2**power for power in range(14))


#: What client-go writes for a status where no answer came.
NO_ANSWER = "<error>"


class ConnectionMetrics(Observer):
    """Counts requests, times them, and remembers when each collection was last heard of."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "plimsoll_rest_client_requests",
            "Requests to the API server, by HTTP status; <error> when no answer came.",
            ["method", "code"],
            registry=registry,
        )
        self.seconds = Histogram(
            "plimsoll_rest_client_request_duration_seconds",
            "Time until the API server's answer was read, of a watch its head.",
            ["method"],
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self.heard = Gauge(
            "plimsoll_watch_last_heard_timestamp_seconds",
            "When the API server last answered for a collection: a list, a watch, an event or a bookmark.",
            ["resource"],
            registry=registry,
        )

    def request_answered(self, method: str, status: int, seconds: float) -> None:
        """Count and time."""
        self.requests.labels(method, str(status) if status else NO_ANSWER).inc()
        self.seconds.labels(method).observe(seconds)

    def watch_heard(self, resource: str, now: float) -> None:
        """Remember."""
        self.heard.labels(resource).set(now)


LAG_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class LoopMetrics(Observer):
    """Counts delays."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.lag = Histogram(
            "plimsoll_event_loop_lag_seconds",
            "How late a timer ran that fires twice a second: in the main loop, which lists, watches and"
            " decides, or in the election's, which also serves the probes.",
            ["loop"],
            buckets=LAG_BUCKETS,
            registry=registry,
        )

    def loop_lagged(self, loop: str, seconds: float) -> None:
        """Observe a delay."""
        self.lag.labels(loop).observe(seconds)


class LeadingMetrics(Observer):
    """Says who leads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.status = Gauge(
            "plimsoll_leader_election_master_status",
            "1 when this process leads by the lease, or without an election (none), 0 when it stands by.",
            ["name"],
            registry=registry,
        )

    def leadership_changed(self, name: str, *, is_leading: bool) -> None:
        """Set the gauge."""
        self.status.labels(name).set(is_leading)
