"""Metrics of leadership."""

from prometheus_client import CollectorRegistry

from plimsoll.ports.observer import told_to_all
from plimsoll.telemetry.process import ProcessMetrics


def test_the_gauge_follows_the_election() -> None:
    """1 while leading, 0 while standing by, by the lease's name as in client-go."""
    registry = CollectorRegistry()
    observer = told_to_all([ProcessMetrics(registry)])
    seen = []
    for is_leading in (False, True, False):
        observer.leadership_changed("plimsoll", is_leading=is_leading)
        seen.append(registry.get_sample_value("plimsoll_leader_election_master_status", {"name": "plimsoll"}))

    assert seen == [0, 1, 0]
