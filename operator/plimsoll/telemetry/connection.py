"""The connection to the API server: requests, as client-go counts them, and when it was last heard of."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from plimsoll.ports.observer import Observer

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
