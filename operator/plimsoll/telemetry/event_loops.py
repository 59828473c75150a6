"""The event loops of this process: how late they run what is due."""

from prometheus_client import CollectorRegistry, Histogram

from plimsoll.ports.observer import Observer

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
