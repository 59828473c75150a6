"""Metrics of scheduling, watches and failures, recorded in the observer's hooks.

Names and meanings are kube-scheduler's, with our prefix: its ``scheduler_x`` is our ``plimsoll_scheduler_x``.
Label values are enumerable (profiles, plugins, extension points, results, policies, strategies, phases,
resources), never a pod. docs/metrics.md is generated from this module.

Source: kube-scheduler v1.36, ``pkg/scheduler/metrics/metrics.go``. Differs: buckets begin at 0.1 ms where
upstream's begin at 1 ms.
"""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

from plimsoll.ports.observer import Observer
from plimsoll.telemetry.tallies import Durations, Occurrences

ATTEMPT_BUCKETS = tuple(0.0001 * 2**power for power in range(18))
SLI_BUCKETS = tuple(0.01 * 2**power for power in range(20))
EXTENDER_BUCKETS = tuple(0.001 * 2**power for power in range(16))
DEVICE_BUCKETS = tuple(0.1 * 2**power for power in range(14))
POINT_BUCKETS = tuple(0.0001 * 2**power for power in range(12))
EVENT_BUCKETS = tuple(0.00001 * 2**power for power in range(16))
PLUGIN_BUCKETS = tuple(0.00001 * 1.5**power for power in range(20))

#: Resources in a kubelet's reasons for rejection; the names of others are unbounded.
LACKING = frozenset(("OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage"))

#: Pods with at least this many attempts share one label value.
MANY_ATTEMPTS = 15


def upstream_point(point: str) -> str:
    """An extension point as in kube-scheduler's metrics, such as ``PreFilter``."""
    return point[:1].upper() + point[1:]


class MetricsObserver(Observer):
    """Counts and times the hooks for watches, queues, attempts and plugins."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._declare_attempts(registry)
        self._declare_bindings(registry)
        self._declare_extenders_and_preemption(registry)
        self._declare_watches(registry)
        self._declare_queue(registry)

    def _declare_attempts(self, registry: CollectorRegistry) -> None:
        """Attempts, extension points and plugins."""
        histogram = partial(Histogram, registry=registry)
        tally = partial(Occurrences, registry=registry)
        durations = partial(Durations, registry=registry)
        self.attempts = tally(
            "plimsoll_scheduler_schedule_attempts",
            "Attempts to schedule pods. Labeled by result (scheduled, unschedulable, error) and profile.",
            ["result", "profile"],
        )
        self.attempt_seconds = durations(
            "plimsoll_scheduler_scheduling_attempt_duration_seconds",
            "Duration of an attempt, binding included. Labeled by result and profile.",
            ["result", "profile"],
            buckets=ATTEMPT_BUCKETS,
        )
        self.algorithm_seconds = durations(
            "plimsoll_scheduler_scheduling_algorithm_duration_seconds",
            "Duration of a scheduling cycle that found a node, without the binding.",
            buckets=ATTEMPT_BUCKETS,
        )
        self.sli_seconds = durations(
            "plimsoll_scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first entry into the queue to its binding. Labeled by attempts (1 to 14, "
            "15+).",
            ["attempts"],
            buckets=SLI_BUCKETS,
        )
        self.pod_attempts = durations(
            "plimsoll_scheduler_pod_scheduling_attempts",
            "Attempts needed to bind a pod.",
            buckets=(1, 2, 4, 8, 16),
        )
        self.point_seconds = durations(
            "plimsoll_scheduler_framework_extension_point_duration_seconds",
            "Duration of all plugins of an extension point, measured in one attempt of ten. Labeled by "
            "extension_point, status (Success, Error) and profile.",
            ["extension_point", "status", "profile"],
            buckets=POINT_BUCKETS,
        )
        self.plugin_seconds = durations(
            "plimsoll_scheduler_plugin_execution_duration_seconds",
            "Duration of a call of a plugin, for all nodes of the call, measured in one attempt of ten. "
            "Labeled by plugin, extension_point and status (Success, Error).",
            ["plugin", "extension_point", "status"],
            buckets=PLUGIN_BUCKETS,
        )
        self.permit_seconds = histogram(
            "plimsoll_scheduler_permit_wait_duration_seconds",
            "Time that a pod waited at Permit. Labeled by result (the status code that ended the wait).",
            ["result"],
            buckets=ATTEMPT_BUCKETS,
        )

    def _declare_bindings(self, registry: CollectorRegistry) -> None:
        """What follows a decision: claims, devices, bindings, and what kubelets refuse."""
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.claims_created = counter(
            "plimsoll_scheduler_resourceclaim_creates",
            "ResourceClaims created for extended resources. Labeled by status (success, failure).",
            ["status"],
        )
        self.awaited_allocations = counter(
            "plimsoll_scheduler_dra_bindingconditions_allocations",
            "Attempts that waited for a driver to prepare devices. Labeled by profile, driver and status "
            "(success, failure, timeout).",
            ["profile", "driver", "status"],
        )
        self.device_waits = histogram(
            "plimsoll_scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time that a pod waited for a driver to prepare devices. Labeled by profile, driver and status.",
            ["profile", "driver", "status"],
            buckets=DEVICE_BUCKETS,
        )
        self.contested = counter(
            "plimsoll_scheduler_contested_devices",
            "Pods not bound because another scheduler allocated one of their devices first. Labeled by "
            "profile.",
            ["profile"],
        )
        self.binding_failures = counter(
            "plimsoll_scheduler_binding_failures",
            "Bindings that the API server rejected or did not confirm. Labeled by profile and verdict.",
            ["profile", "verdict"],
        )
        self.refusals = counter(
            "plimsoll_scheduler_kubelet_refusals",
            "Bound pods that their kubelet did not admit. Labeled by profile and reason (such as OutOfcpu).",
            ["profile", "reason"],
        )

    def _declare_extenders_and_preemption(self, registry: CollectorRegistry) -> None:
        """Requests to extenders, preemption, and plugins that fail."""
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.extender_asks = counter(
            "plimsoll_scheduler_extender_asks",
            "Requests to HTTP extenders. Labeled by extender, point (filter, prioritize, preempt, bind) and "
            "result (success, error, skipped after repeated failures).",
            ["extender", "point", "result"],
        )
        self.extender_seconds = histogram(
            "plimsoll_scheduler_extender_duration_seconds",
            "Time until an extender's response was read or timed out. Labeled by extender and point.",
            ["extender", "point"],
            buckets=EXTENDER_BUCKETS,
        )
        self.preemptions = counter(
            "plimsoll_scheduler_preemption_attempts", "Preemption attempts that found victims."
        )
        self.victims = histogram(
            "plimsoll_scheduler_preemption_victims",
            "Victims of one preemption.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
        )
        self.plugin_failures = counter(
            "plimsoll_scheduler_plugin_failures",
            "Failures of plugins: exceptions and invalid results. Labeled by plugin and extension_point "
            "(Load if the plugin could not be loaded).",
            ["plugin", "extension_point"],
        )

    def _declare_watches(self, registry: CollectorRegistry) -> None:
        """Lists, watches and contained failures."""
        counter = partial(Counter, registry=registry)
        tally = partial(Occurrences, registry=registry)
        durations = partial(Durations, registry=registry)
        self.watch_failures = counter(
            "plimsoll_watch_failures",
            "Lists and watches that failed and were restarted. Labeled by resource.",
            ["resource"],
        )
        self.watch_lists = counter(
            "plimsoll_watch_lists", "Complete lists. Labeled by resource.", ["resource"]
        )
        self.watch_events = tally(
            "plimsoll_watch_events", "Watch events received. Labeled by resource.", ["resource"]
        )
        self.batch_seconds = durations(
            "plimsoll_watch_batch_duration_seconds",
            "Duration of applying a batch of events. Labeled by resource.",
            ["resource"],
            buckets=ATTEMPT_BUCKETS,
        )
        self.skipped = counter(
            "plimsoll_watch_skipped_objects",
            "Objects that were skipped because they cannot be decoded. Labeled by resource.",
            ["resource"],
        )
        self.failures = counter(
            "plimsoll_contained_failures",
            "Internal failures that were contained. Labeled by where.",
            ["where"],
        )

    def _declare_queue(self, registry: CollectorRegistry) -> None:
        """The queue, and what brings pods back to it."""
        counter = partial(Counter, registry=registry)
        tally = partial(Occurrences, registry=registry)
        durations = partial(Durations, registry=registry)
        self.incoming = tally(
            "plimsoll_scheduler_queue_incoming_pods",
            "Pods added to a queue. Labeled by queue (active, backoff, unschedulable, gated) and event.",
            ["queue", "event"],
        )
        self.after_flush = counter(
            "plimsoll_scheduler_pod_scheduled_after_flush",
            "Pods bound at the first attempt after five minutes without a requeueing event; hints were too "
            "strict.",
        )
        self.event_seconds = durations(
            "plimsoll_scheduler_event_handling_duration_seconds",
            "Duration of requeueing the pods that a cluster event may help. Labeled by event.",
            ["event"],
            buckets=EVENT_BUCKETS,
        )
        self.hint_seconds = durations(
            "plimsoll_scheduler_queueing_hint_execution_duration_seconds",
            "Duration of a queueing hint, for all pods of a group. Labeled by plugin, event and hint (Queue, "
            "QueueSkip, Error).",
            ["plugin", "event", "hint"],
            buckets=EVENT_BUCKETS,
        )

    def watch_failed(self, resource: str, problem: str, status: int = 0) -> None:  # noqa: ARG002 - for the log
        """Count failures of watches."""
        self.watch_failures.labels(resource).inc()

    def watch_listed(self, resource: str, objects: int) -> None:  # noqa: ARG002 - for the log
        """Count lists."""
        self.watch_lists.labels(resource).inc()
        # The series must exist before its first increase, or a rate misses it.
        self.watch_failures.labels(resource)
        self.skipped.labels(resource)

    def batch_taken_in(self, resource: str, events: int, seconds: float) -> None:
        """Count and time batches of events."""
        self.watch_events.add(resource, amount=events)
        self.batch_seconds.observe(seconds, resource)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count skipped objects."""
        self.skipped.labels(resource).inc()

    def cycle_ended(self, seconds: float) -> None:
        """Time cycles."""
        self.algorithm_seconds.observe(seconds)

    def attempt_ended(self, profile: str, result: str, seconds: float) -> None:
        """Count and time attempts."""
        self.attempts.add(result, profile)
        self.attempt_seconds.observe(seconds, result, profile)

    def plugin_called(self, plugin: str, point: str, failed: bool, seconds: float) -> None:
        """Time calls of plugins."""
        self.plugin_seconds.observe(seconds, plugin, upstream_point(point), _status(failed))

    def point_passed(self, profile: str, point: str, failed: bool, seconds: float) -> None:
        """Time extension points."""
        self.point_seconds.observe(seconds, upstream_point(point), _status(failed), profile)

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:  # noqa: ARG002 - for the log
        """Count failures of plugins."""
        self.plugin_failures.labels(plugin, upstream_point(point)).inc()

    def permit_waited(self, result: str, seconds: float) -> None:
        """Time waits on permit plugins."""
        self.permit_seconds.labels(result).observe(seconds)

    def pod_bound(self, attempts: int, seconds: float) -> None:
        """Count and time bound pods."""
        label = str(attempts) if attempts < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
        self.sli_seconds.observe(seconds, label)
        self.pod_attempts.observe(attempts)

    def binding_failed(self, profile: str, verdict: str, message: str) -> None:  # noqa: ARG002 - for the log
        """Count failed bindings."""
        self.binding_failures.labels(profile, verdict).inc()

    def pod_refused(
        self,
        profile: str,
        reason: str,
        *,
        pod: str,  # noqa: ARG002 - for the log
        node: str,  # noqa: ARG002 - for the log
        decision: str,  # noqa: ARG002 - for the log
        after_s: float | None,  # noqa: ARG002 - for the log
    ) -> None:
        """Count pods that kubelets rejected."""
        named = reason if reason in LACKING or not reason.startswith("OutOf") else "OutOfOther"
        self.refusals.labels(profile, named).inc()

    def extender_asked(self, extender: str, point: str, result: str, seconds: float, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count calls of extenders, and time those that were sent."""
        self.extender_asks.labels(extender, point, result).inc()
        if result != "skipped":
            self.extender_seconds.labels(extender, point).observe(seconds)

    def preempted(self, victims: int) -> None:
        """Count preemptions, and observe the number of victims."""
        self.preemptions.inc()
        self.victims.observe(victims)

    def failed(self, where: str, problem: str) -> None:  # noqa: ARG002 - for the log
        """Count errors by their first word: the rest may name an object."""
        self.failures.labels(where.split(" ", 1)[0]).inc()

    def pod_queued(self, queue: str, event: str) -> None:
        """Count queued pods."""
        self.incoming.add(queue, event)

    def event_handled(self, event: str, seconds: float) -> None:
        """Time the handling of events."""
        self.event_seconds.observe(seconds, event)

    def hint_asked(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Time queueing hints."""
        self.hint_seconds.observe(seconds, plugin, event, hint)

    def bound_after_flush(self) -> None:
        """Count pods that were bound after a flush."""
        self.after_flush.inc()

    def claim_created(self, status: str) -> None:
        """Count created claims."""
        self.claims_created.labels(status).inc()

    def devices_awaited(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Count and time the preparation of devices."""
        self.awaited_allocations.labels(profile, driver, status).inc()
        self.device_waits.labels(profile, driver, status).observe(seconds)

    def devices_contested(self, profile: str) -> None:
        """Count contested devices."""
        self.contested.labels(profile).inc()


def _status(failed: bool) -> str:
    return "Error" if failed else "Success"
