"""Observer → prometheus-client; all metric names live here.

Names follow kube-scheduler's semantics under our prefix: ``plimsoll_<subsystem>_<noun>_<unit>``. Label
values are enumerable: profiles, plugins, extension points, results, policies, strategies, phases,
resources; never a pod.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from plimsoll.framework.observer import Observer

ATTEMPT_BUCKETS = tuple(0.0001 * 2**power for power in range(16))
SLI_BUCKETS = tuple(0.01 * 2**power for power in range(20))


class MetricsObserver(Observer):
    """Counts what it is told."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempts = Counter(
            "plimsoll_scheduler_schedule_attempts",
            "Attempts to schedule pods, by outcome. Labeled by profile and result.",
            ["profile", "result"],
            registry=registry,
        )
        self.attempt_seconds = Histogram(
            "plimsoll_scheduler_scheduling_algorithm_duration_seconds",
            "Time of one scheduling cycle, without the binding. Labeled by profile and result.",
            ["profile", "result"],
            buckets=ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "plimsoll_scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's entering the queue to its binding. Labeled by profile.",
            ["profile"],
            buckets=SLI_BUCKETS,
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "plimsoll_scheduler_pod_scheduling_attempts",
            "Attempts it took to bind a pod. Labeled by profile.",
            ["profile"],
            buckets=(1, 2, 4, 8, 16),
            registry=registry,
        )
        self.binding_failures = Counter(
            "plimsoll_scheduler_binding_failures",
            "Bindings that the API server did not take. Labeled by profile and verdict.",
            ["profile", "verdict"],
            registry=registry,
        )
        self.victims = Histogram(
            "plimsoll_scheduler_preemption_victims",
            "Pods removed to make room for one. Labeled by profile.",
            ["profile"],
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self.pending = Gauge(
            "plimsoll_scheduler_pending_pods",
            "Pods that wait. Labeled by queue: active, backoff, unschedulable, gated.",
            ["queue"],
            registry=registry,
        )
        self.cache_size = Gauge(
            "plimsoll_scheduler_cache_size",
            "Objects in the cache. Labeled by type: nodes, pods, assumed_pods.",
            ["type"],
            registry=registry,
        )
        self.plugin_failures = Counter(
            "plimsoll_scheduler_plugin_failures",
            "Plugins that raised or broke a rule. Labeled by plugin and extension_point.",
            ["plugin", "extension_point"],
            registry=registry,
        )
        self.watch_failures = Counter(
            "plimsoll_watch_failures",
            "Lists and watches that broke and were taken up again. Labeled by resource.",
            ["resource"],
            registry=registry,
        )
        self.watch_lists = Counter(
            "plimsoll_watch_lists",
            "Complete lists. Labeled by resource.",
            ["resource"],
            registry=registry,
        )
        self.skipped = Counter(
            "plimsoll_watch_skipped_objects",
            "Objects that cannot be read and were left out. Labeled by resource.",
            ["resource"],
            registry=registry,
        )
        self.candidates = Counter(
            "plimsoll_rebalancer_candidates",
            "Candidates that strategies returned. Labeled by policy.",
            ["policy"],
            registry=registry,
        )
        self.planned = Counter(
            "plimsoll_rebalancer_planned_moves",
            "Moves planned, or predicted in a dry run. Labeled by policy.",
            ["policy"],
            registry=registry,
        )
        self.refused = Counter(
            "plimsoll_rebalancer_refused_candidates",
            "Candidates that were not planned. Labeled by policy and reason.",
            ["policy", "reason"],
            registry=registry,
        )
        self.phases = Counter(
            "plimsoll_rebalancer_records",
            "Eviction records that reached a phase. Labeled by policy, strategy and phase.",
            ["policy", "strategy", "phase"],
            registry=registry,
        )
        self.dropped = Counter(
            "plimsoll_rebalancer_dropped_records",
            "Records that were not written, or deleted by retention. Labeled by policy and why.",
            ["policy", "why"],
            registry=registry,
        )
        self.failures = Counter(
            "plimsoll_contained_failures",
            "Failures of our own that were contained. Labeled by where.",
            ["where"],
            registry=registry,
        )

    def watch_failed(self, resource: str, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count."""
        self.watch_failures.labels(resource).inc()

    def watch_listed(self, resource: str, objects: int) -> None:  # noqa: ARG002 - for the log
        """Count."""
        self.watch_lists.labels(resource).inc()

    def object_skipped(self, resource: str, name: str, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count."""
        self.skipped.labels(resource).inc()

    def attempt_ended(self, profile: str, result: str, seconds: float) -> None:
        """Count and time."""
        self.attempts.labels(profile, result).inc()
        self.attempt_seconds.labels(profile, result).observe(seconds)

    def plugin_failed(self, plugin: str, point: str, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count."""
        self.plugin_failures.labels(plugin, point).inc()

    def pod_bound(self, profile: str, attempts: int, seconds: float) -> None:
        """Time and count."""
        self.sli_seconds.labels(profile).observe(seconds)
        self.pod_attempts.labels(profile).observe(attempts)

    def binding_failed(self, profile: str, verdict: str, message: str) -> None:  # noqa: ARG002 - for the log
        """Count."""
        self.binding_failures.labels(profile, verdict).inc()

    def preempted(self, profile: str, victims: int) -> None:
        """Count victims."""
        self.victims.labels(profile).observe(victims)

    def queues_measured(self, depths: Mapping[str, int], nodes: int, pods: int, assumed: int) -> None:
        """Set the gauges."""
        for queue, depth in depths.items():
            self.pending.labels(queue).set(depth)
        for kind, size in (("nodes", nodes), ("pods", pods), ("assumed_pods", assumed)):
            self.cache_size.labels(kind).set(size)

    def run_ended(self, policy: str, considered: int, planned: int, refused: Mapping[str, int]) -> None:
        """Count."""
        self.candidates.labels(policy).inc(considered)
        self.planned.labels(policy).inc(planned)
        for reason, count in refused.items():
            self.refused.labels(policy, reason).inc(count)

    def record_changed(self, policy: str, strategy: str, phase: str) -> None:
        """Count."""
        self.phases.labels(policy, strategy, phase).inc()

    def record_dropped(self, policy: str, why: str) -> None:
        """Count."""
        self.dropped.labels(policy, why).inc()

    def failed(self, where: str, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count by the first word: the rest may name an object."""
        self.failures.labels(where.split(" ", 1)[0]).inc()
