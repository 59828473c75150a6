"""The rate of evictions, where the clocks of machines differ."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.model.names import RecordKey
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.records.sent_times import SKEW_S
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.testing.fakes import FakeClock, FakeRecords

POLICY = "p"


def document(name: str, sent: float, phase: str = "Evicted", **spec: Any) -> dict[str, Any]:
    """A record that its leader sent at a time of its own clock."""
    moment = datetime.fromtimestamp(sent, UTC).isoformat()
    pod = {"namespace": "a", "name": name, "uid": name}
    given = {
        "pod": pod,
        "policy": POLICY,
        "strategy": "s",
        "mode": "Enforce",
        "planner": "Proven",
        "reason": "r",
        "fromNode": "n",
    }
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": given | spec,
        "status": {
            "phase": phase,
            "transitions": [{"phase": each, "time": moment} for each in ("Planned", "Evicting", phase)],
        },
    }


@pytest.fixture
def clock() -> FakeClock:
    """Of the process that counts."""
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> EvictionRecordStore:
    """Its records."""
    return EvictionRecordStore(FakeRecords(), clock, Observer())


@pytest.mark.parametrize("ahead_s", [-3600.0, 0.0, 3600.0])
async def test_a_standby_counts_from_when_it_saw_that_a_record_was_sent(
    store: EvictionRecordStore, clock: FakeClock, ahead_s: float
) -> None:
    """The leader's clock is an hour behind, right, or ahead; all is over a minute after it was seen."""
    store.see("a", "r", "Planned")
    await clock.advance(300)
    store.see("a", "r", "Evicting")
    sent = clock.now() + ahead_s
    await clock.advance(50)
    store.see("a", "r", "Settled")
    store.notice(document("r", sent, "Settled"))

    assert store.sent_within(POLICY, 60.0) == 1
    await clock.advance(11)
    assert store.sent_within(POLICY, 60.0) == 0


async def test_what_a_young_process_finds_may_have_been_sent_just_before(
    store: EvictionRecordStore, clock: FakeClock
) -> None:
    """Unless even a clock that is far ahead says that it was sent long ago."""
    store.notice(document("late", clock.now() - 3600))
    store.notice(document("old", clock.now() - SKEW_S - 61))

    assert store.sent_within(POLICY, 60.0) == 1
    await clock.advance(61)
    assert store.sent_within(POLICY, 60.0) == 0


@pytest.mark.parametrize("ahead_s", [-3600.0, 0.0, 3600.0])
async def test_one_clock_measures_how_long_a_pod_has_been_asked_to_leave(
    store: EvictionRecordStore, clock: FakeClock, ahead_s: float
) -> None:
    """By that of the process that follows it; a standby has seen when it was asked."""
    store.see("a", "r", "Evicting")
    sent = clock.now() + ahead_s
    await clock.advance(50)
    store.notice(document("r", sent))
    store.notice(document("planned", sent, "Planned") | {"status": {"phase": "Planned"}})

    assert store.sent_for_s(store.known[RecordKey("a/r")]) == 50.0
    assert store.sent_for_s(store.known[RecordKey("a/planned")]) == 0.0


async def test_a_young_process_gives_a_pod_its_whole_time_but_not_for_ever(
    store: EvictionRecordStore, clock: FakeClock
) -> None:
    """What was sent for certain counts, whatever the clocks."""
    store.notice(document("late", clock.now() - 3600))
    store.notice(document("old", clock.now() - SKEW_S - 61))

    assert store.sent_for_s(store.known[RecordKey("a/late")]) == 0.0
    assert store.sent_for_s(store.known[RecordKey("a/old")]) == 61.0


def test_only_what_the_policy_sent_counts(store: EvictionRecordStore, clock: FakeClock) -> None:
    """Neither another policy's, nor a victim of preemption, nor what was refused."""
    now = clock.now()
    store.notice(document("other", now, policy="q"))
    store.notice(document("victim", now, strategy="DefaultPreemption"))
    store.notice(document("blocked", now, "Blocked"))
    store.notice(document("sent", now))

    assert store.sent_within(POLICY, 60.0) == 1


def test_a_record_that_is_gone_is_forgotten(store: EvictionRecordStore, clock: FakeClock) -> None:
    """One of the same name counts from its own time."""
    store.see("a", "r", "Evicting")
    store.forget("a", "r")

    assert store._sent._seen == {}
