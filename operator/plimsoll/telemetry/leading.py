"""Metrics of the election, as client-go names them: ``plimsoll_leader_election_…``."""

from prometheus_client import CollectorRegistry, Gauge

from plimsoll.ports.observer import Observer


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
