"""Metrics of the scheduling queue: who enters which queue and why, and what events and hints cost.

Source: kube-scheduler v1.36, ``pkg/scheduler/metrics/metrics.go``.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram

from plimsoll.ports.observer import Observer

EVENT_BUCKETS = tuple(0.00001 * 2**power for power in range(16))


class QueueingMetrics(Observer):
    """Counts what it is told of the queue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.incoming = Counter(
            "plimsoll_scheduler_queue_incoming_pods",
            "Pods that entered a queue: active, backoff, unschedulable, gated; by what brought them.",
            ["queue", "event"],
            registry=registry,
        )
        self.after_flush = Counter(
            "plimsoll_scheduler_pod_scheduled_after_flush",
            "Pods bound at the first attempt after five minutes without a helpful event: hints that said no.",
            registry=registry,
        )
        self.event_seconds = Histogram(
            "plimsoll_scheduler_event_handling_duration_seconds",
            "Finding and waking the pods that one change of the cluster may help.",
            ["event"],
            buckets=EVENT_BUCKETS,
            registry=registry,
        )
        self.hint_seconds = Histogram(
            "plimsoll_scheduler_queueing_hint_execution_duration_seconds",
            "One queueing hint for all pods it answers for: Queue, QueueSkip or Error.",
            ["plugin", "event", "hint"],
            buckets=EVENT_BUCKETS,
            registry=registry,
        )

    def pod_queued(self, queue: str, event: str) -> None:
        """Count."""
        self.incoming.labels(queue, event).inc()

    def event_handled(self, event: str, seconds: float) -> None:
        """Time."""
        self.event_seconds.labels(event).observe(seconds)

    def hint_asked(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Time."""
        self.hint_seconds.labels(plugin, event, hint).observe(seconds)

    def bound_after_flush(self) -> None:
        """Count."""
        self.after_flush.inc()
