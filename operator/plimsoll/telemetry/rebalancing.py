"""Metrics of rebalancing: ``plimsoll_rebalancer_…``."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.framework.observer import Observer


class RebalancingMetrics(Observer):
    """Counts what runs and records come to."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.candidates = Counter(
            "plimsoll_rebalancer_candidates",
            "Candidates that strategies returned.",
            ["policy"],
            registry=registry,
        )
        self.planned = Counter(
            "plimsoll_rebalancer_planned_moves",
            "Moves planned, or predicted in a dry run.",
            ["policy"],
            registry=registry,
        )
        self.refused = Counter(
            "plimsoll_rebalancer_refused_candidates",
            "Candidates that were not planned.",
            ["policy", "reason"],
            registry=registry,
        )
        self.phases = Counter(
            "plimsoll_rebalancer_records",
            "Eviction records that reached a phase.",
            ["policy", "strategy", "phase"],
            registry=registry,
        )
        self.dropped = Counter(
            "plimsoll_rebalancer_dropped_records",
            "Records that were not written, or deleted by retention.",
            ["policy", "why"],
            registry=registry,
        )

    def run_ended(self, policy: str, considered: int, planned: int, refused: Mapping[str, int]) -> None:
        """Count."""
        self.candidates.labels(policy).inc(considered)
        self.planned.labels(policy).inc(planned)
        for reason, count in refused.items():
            self.refused.labels(policy, reason).inc(count)

    def record_changed(self, policy: str, strategy: str, phase: str) -> None:
        """Count."""
        for each in Phase:  # a rate knows nothing of a counter that is born with its first move
            self.phases.labels(policy, strategy, each.value)
        self.phases.labels(policy, strategy, phase).inc()

    def record_dropped(self, policy: str, why: str) -> None:
        """Count."""
        self.dropped.labels(policy, why).inc()
