"""Events are deleted when their time is over."""

from roadstead.controllers.event_expiry import EventExpiry
from roadstead.values.resources import Obj
from simulated_cluster import Simulation


def event(name: str) -> Obj:
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": about,
        "reason": "Tested",
        "source": {"component": "test"},
        **times,
    }


def test_an_event_is_deleted_an_hour_after_its_last_write() -> None:
    """One that was counted again lives on; others go."""
    cluster = Simulation()
    EventExpiry(cluster.context).start()
    cluster.api.create("events", event("once"))
    cluster.api.create("events", event("again"))
    cluster.settle(3000)
    cluster.api.patch("events", "default", "again", {"count": 2})
    cluster.settle(601)

    assert [each["metadata"]["name"] for each in cluster.api.list("events")] == ["again"]
    cluster.settle(3000)
    assert cluster.api.list("events") == []
