"""KeptRecords counts by policy and phase what a count over all records finds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.rebalancing.records.kept_records import KeptRecords
from plimsoll.records.history import is_victim
from plimsoll.records.record import PREEMPTION, Record

POLICIES = ("p", "q")

#: A record is put, again or under another policy and phase, or dropped.
DEEDS = st.tuples(
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from(POLICIES),
    st.sampled_from([None, *Phase]),
    st.sampled_from(["RemoveDuplicates", PREEMPTION]),
    st.sampled_from([None, "expected", "other"]),
)


def a_record(name: str, policy: str, phase: Phase | None, strategy: str, landed: str | None) -> Record:
    """A record of a forecast for pod ``name``, whose replacement may have a node."""
    spec = {
        "pod": {"namespace": "d", "name": name, "uid": name},
        "policy": policy,
        "strategy": strategy,
        "mode": "Enforce",
        "reason": "for a test",
        "fromNode": "n",
        "targetNode": "expected",
        "forecast": True,
    }
    status = {"phase": phase, "replacement": {"name": "r", "uid": "r", "node": landed} if landed else None}
    return Record("d", name, EvictionSpec.model_validate(spec), EvictionStatus.model_validate(status), 0.0)


@given(st.lists(st.tuples(st.booleans(), DEEDS), max_size=12))
def test_what_is_kept_is_what_a_count_finds(deeds: list[Any]) -> None:
    kept, plain = KeptRecords(), dict[str, Record]()
    for is_dropped, (name, policy, phase, strategy, landed) in deeds:
        record = a_record(name, policy, phase, strategy, landed)
        if is_dropped and record.key in plain:
            kept.remove(record.key)
            del plain[record.key]
        elif not is_dropped:
            kept.put(record)
            plain[record.key] = record

        assert dict(kept) == plain
        assert dict(kept.unfinished()) == {key: each for key, each in plain.items() if not each.is_finished}
        for pod in ("one", "two", "three"):
            mine = {key: each for key, each in plain.items() if each.spec.pod.uid == pod}
            assert dict(kept.of_pod(pod)) == mine
            assert dict(kept.of_workload(f"d/{pod}")) == mine
        assert kept.policies() == {each.spec.policy for each in plain.values()}
        for each_policy in POLICIES:
            mine = {key: each for key, each in plain.items() if each.spec.policy == each_policy}
            assert dict(kept.of_policy(each_policy)) == mine
            phases = Counter(each.phase for each in mine.values() if not is_victim(each))
            assert +kept.phases(each_policy) == phases
            known = [each.came_true for each in mine.values() if not is_victim(each)]
            assert kept.forecasts(each_policy) == (len(known) - known.count(None), known.count(True))
