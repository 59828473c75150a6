"""Metrics of rebalancing: ``plimsoll_rebalancer_…``."""

from collections.abc import Mapping, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.runs.status import RunResult

#: The buckets of descheduler v0.36, ``metrics/metrics.go``.
RUN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500)
STRATEGY_BUCKETS = RUN_BUCKETS[:-2]

#: Seconds: metrics-server reads every 15 to 60 s, and a reading is valid for at most 300 s.
AGE_BUCKETS = (5, 15, 30, 45, 60, 90, 120, 300, 600)

#: Shares of a pod's expected usage.
ERROR_BUCKETS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5)


class RebalancingMetrics(Observer):
    """Counts results of runs and records."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self.runs = counter(
            "plimsoll_rebalancer_runs",
            "Runs that ended. Labeled by policy and result: succeeded; failed (a strategy could not judge "
            "the cluster); crashed; timed_out (the plan was not ready in time); skipped (due, not started).",
            ["policy", "result"],
        )
        self.run_seconds = histogram(
            "plimsoll_rebalancer_run_duration_seconds",
            "Duration of a run, from its first step until its evictions are sent; skipped runs have none. "
            "Labeled by policy.",
            ["policy"],
            buckets=RUN_BUCKETS,
        )
        self.strategy_seconds = histogram(
            "plimsoll_rebalancer_strategy_duration_seconds",
            "Duration of a strategy in one plan, the planner's proofs of its candidates included. Labeled by "
            "policy and strategy.",
            ["policy", "strategy"],
            buckets=STRATEGY_BUCKETS,
        )
        self.candidates = counter(
            "plimsoll_rebalancer_candidates",
            "Candidates that strategies returned. Labeled by policy.",
            ["policy"],
        )
        self.planned = counter(
            "plimsoll_rebalancer_planned_moves",
            "Moves planned, or predicted in a dry run. Labeled by policy.",
            ["policy"],
        )
        self.refused = counter(
            "plimsoll_rebalancer_refused_candidates",
            "Candidates that were rejected. Labeled by policy and reason.",
            ["policy", "reason"],
        )
        self.phases = counter(
            "plimsoll_rebalancer_records",
            "Eviction records that reached a phase. Labeled by policy, strategy and phase.",
            ["policy", "strategy", "phase"],
        )
        self.reversed = counter(
            "plimsoll_rebalancer_reversed_moves",
            "Moves to a node that another move took a pod of the same owner off within the hour before. "
            "Labeled by policy.",
            ["policy"],
        )
        self.landings = counter(
            "plimsoll_rebalancer_forecasts",
            "Replacements that other schedulers placed. Labeled by policy and landing: expected; "
            "equal, a node of the same score; other.",
            ["policy", "landing"],
        )
        self.sources = counter(
            "plimsoll_load_source_requests",
            "Lists and queries of actual usage. Labeled by source (KubernetesMetrics or Prometheus) and "
            "result: answered; refused (the source or the policy is at fault); unanswered.",
            ["source", "result"],
        )
        self.forecast_errors = histogram(
            "plimsoll_load_forecast_error_ratio",
            "By how much a pod that was moved by load uses more or less than expected, as a share of what "
            "was expected. Labeled by resource (cpu or memory).",
            ["resource"],
            buckets=ERROR_BUCKETS,
        )
        for resource in ("cpu", "memory"):  # the series must exist before its first increase
            self.forecast_errors.labels(resource)
        self.reading_ages = histogram(
            "plimsoll_load_reading_age_seconds",
            "Age of the readings of nodes when they arrive; a Prometheus measures when it is asked. Labeled "
            "by source (KubernetesMetrics or Prometheus).",
            ["source"],
            buckets=AGE_BUCKETS,
        )
        self.exported = counter(
            "plimsoll_audit_records",
            "Records that were written to the audit log. Labeled by result: exported; failed (tried again); "
            "lost (deleted by others while the log could not be written, beyond what is remembered).",
            ["result"],
        )
        self.notices = counter(
            "plimsoll_notices",
            "Notices to the address of --notify-url. Labeled by result: sent; failed (given up after three "
            "attempts); dropped (the queue was full).",
            ["result"],
        )
        self.dropped = counter(
            "plimsoll_rebalancer_dropped_records",
            "Records that could not be written, or were deleted by retention. Labeled by policy and why.",
            ["policy", "why"],
        )

    def run_ended(self, policy: str, considered: int, planned: int, refused: Mapping[str, int]) -> None:
        """Count candidates, planned moves and rejections."""
        self.candidates.labels(policy).inc(considered)
        self.planned.labels(policy).inc(planned)
        for reason, count in refused.items():
            self.refused.labels(policy, reason).inc(count)

    def run_finished(self, policy: str, result: str, seconds: float) -> None:
        """Count and time runs."""
        for each in RunResult:  # a rate needs the series before its first increase
            self.runs.labels(policy, each.value)
        for landing in ("expected", "equal", "other"):
            self.landings.labels(policy, landing)
        self.reversed.labels(policy)
        self.runs.labels(policy, result).inc()
        if result != RunResult.SKIPPED:
            self.run_seconds.labels(policy).observe(seconds)

    def strategy_ended(self, policy: str, strategy: str, seconds: float) -> None:
        """Time a strategy."""
        self.strategy_seconds.labels(policy, strategy).observe(seconds)

    def record_changed(self, policy: str, strategy: str, phase: str) -> None:
        """Count records by phase."""
        for each in Phase:  # the series must exist before its first increase
            self.phases.labels(policy, strategy, each.value)
        self.phases.labels(policy, strategy, phase).inc()

    def move_reversed(self, policy: str) -> None:
        """Count reversed moves."""
        self.reversed.labels(policy).inc()

    def forecast_placed(self, policy: str, landing: str) -> None:
        """Count replacements by where they landed."""
        self.landings.labels(policy, landing).inc()

    def usage_asked(self, source: str, result: str) -> None:
        """Count requests for usage."""
        for each in ("answered", "refused", "unanswered"):  # the series must exist before its first increase
            self.sources.labels(source, each)
        self.sources.labels(source, result).inc()

    def usage_read(self, source: str, ages: Sequence[float]) -> None:
        """Observe the ages of readings."""
        observed = self.reading_ages.labels(source)
        for age in ages:
            observed.observe(age)

    def forecast_checked(self, resource: str, error: float) -> None:
        """Observe the error of a forecast."""
        self.forecast_errors.labels(resource).observe(error)

    def records_exported(self, count: int, result: str, problem: str = "") -> None:  # noqa: ARG002 - the log has the problem
        """Count exported records."""
        self.exported.labels(result).inc(count)

    def notice_ended(self, result: str, problem: str = "") -> None:  # noqa: ARG002 - likewise
        """Count notices."""
        self.notices.labels(result).inc()

    def record_dropped(self, policy: str, why: str) -> None:
        """Count dropped records."""
        self.dropped.labels(policy, why).inc()
