"""Records that somebody else wrote: one that cannot be read is named in a sentence, and left alone."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model.names import RecordKey
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.records.sent_times import SKEW_S
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.testing.fakes import FakeClock, FakeRecords

NOW = 1_750_000_000.0
SPEC = {
    "pod": {"namespace": "a", "name": "web-1", "uid": "u"},
    "policy": "p",
    "strategy": "s",
    "mode": "Enforce",
    "planner": "Proven",
    "reason": "r",
    "fromNode": "n",
}
META = {"name": "r", "namespace": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}


class Skipped(Observer):
    """Keeps what is said of objects that cannot be read."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        self.said.append((name, problem))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": 7},
        {"metadata": {"name": "r"}, "spec": SPEC},
        {"metadata": {**META, "creationTimestamp": "soon"}, "spec": SPEC},
        {"metadata": {**META, "creationTimestamp": []}, "spec": SPEC},
        {"metadata": META, "spec": {}, "status": {"transitions": [{}] * 500}},
    ],
)
def test_a_record_that_cannot_be_read_is_named_in_a_sentence(document: dict[str, Any]) -> None:
    """Others are taken over."""
    observer = Skipped()
    store = EvictionRecordStore(FakeRecords(), FakeClock(), observer)

    store.notice(document)
    store.notice({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Eviction", "metadata": META, "spec": SPEC})

    assert list(store.known) == ["a/r"]
    [(_, problem)] = observer.said
    assert len(problem) < 1000
    assert "\n" not in problem


@pytest.mark.parametrize("created", [NOW, NOW + SKEW_S, NOW - 9e5])
@pytest.mark.parametrize("ahead", [(0.0, 1.0), (1.0, 0.0), (1.0, 1e9), (-5.0, -1.0)])
def test_a_phase_is_reached_no_later_than_clocks_may_differ(created: float, ahead: tuple[float, ...]) -> None:
    """A clock that was hours ahead wrote it: a refused record would leave a move without an end."""
    latest = max(NOW, created) + SKEW_S
    clock = FakeClock(0.0, ahead_s=NOW)
    store = EvictionRecordStore(FakeRecords(), clock, Skipped())
    times = [datetime.fromtimestamp(latest + each, UTC) for each in ahead]
    transitions = [
        {"phase": phase, "time": each.isoformat()}
        for phase, each in zip(("Planned", "Evicting"), times, strict=True)
    ]
    stamp = datetime.fromtimestamp(created, UTC).isoformat()
    store.notice(
        {
            "metadata": {**META, "creationTimestamp": stamp},
            "spec": SPEC,
            "status": {"phase": "Evicting", "transitions": transitions},
        }
    )

    read = [each.time.timestamp() for each in store.known[RecordKey("a/r")].status.transitions]
    assert read == [min(each.timestamp(), latest) for each in times]
