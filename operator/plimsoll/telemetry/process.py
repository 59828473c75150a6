"""Metrics of the process: build, connection to the API server, event loops, leadership."""

import platform
from functools import partial

from prometheus_client import CollectorRegistry, Gauge, Histogram

from plimsoll.ports.observer import Observer
from plimsoll.telemetry.tallies import Durations, Occurrences
from plimsoll.version import __version__

REQUEST_BUCKETS = tuple(0.005 * 2**power for power in range(14))
LAG_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

#: The code label for requests without a response, as in client-go.
NO_ANSWER = "<error>"


class ProcessMetrics(Observer):
    """Counts and times requests and delays, and shows whether this process leads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge, histogram = partial(Gauge, registry=registry), partial(Histogram, registry=registry)
        gauge(
            "plimsoll_build_info",
            "Always 1. Labeled by version (of Plimsoll), python_version and platform.",
            ["version", "python_version", "platform"],
        ).labels(
            __version__,
            platform.python_version(),
            f"{platform.system()}/{platform.machine()}".lower(),
        ).set(1)
        self.requests = Occurrences(
            "plimsoll_rest_client_requests",
            "Requests to the API server. Labeled by method and code (HTTP status; <error> without response).",
            ["method", "code"],
            registry=registry,
        )
        self.seconds = Durations(
            "plimsoll_rest_client_request_duration_seconds",
            "Time until the API server's response was read (of a watch, its headers). Labeled by method.",
            ["method"],
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self.heard = gauge(
            "plimsoll_watch_last_heard_timestamp_seconds",
            "When a list, a watch, an event or a bookmark last updated a resource, in seconds since the "
            "epoch. Labeled by resource.",
            ["resource"],
        )
        self.lag = histogram(
            "plimsoll_event_loop_lag_seconds",
            "Delay of a timer that fires twice a second. Labeled by loop (the main loop lists, watches and "
            "decides; the election's loop also serves the probes).",
            ["loop"],
            buckets=LAG_BUCKETS,
        )
        self.status = gauge(
            "plimsoll_leader_election_master_status",
            "1 if this process holds the lease, or runs without an election, 0 if it is a standby. Labeled "
            "by name (of the lease; none without an election).",
            ["name"],
        )

    def request_answered(self, method: str, status: int, seconds: float) -> None:
        """Count and time requests."""
        self.requests.add(method, str(status) if status else NO_ANSWER)
        self.seconds.observe(seconds, method)

    def watch_heard(self, resource: str, now: float) -> None:
        """Store the time of the last response."""
        self.heard.labels(resource).set(now)

    def loop_lagged(self, loop: str, seconds: float) -> None:
        """Observe a delay of an event loop."""
        self.lag.labels(loop).observe(seconds)

    def leadership_changed(self, name: str, *, is_leading: bool) -> None:
        """Set the gauge of leadership."""
        self.status.labels(name).set(is_leading)
