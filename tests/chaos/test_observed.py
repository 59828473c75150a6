"""The observer counts violations by sentences that the checker writes."""

from __future__ import annotations

import pytest

from chaos.observed import COUNTED, OTHERS, counted

SENTENCES = {
    "pods bound twice, or in place of another": "web was moved from a to b",
    "nodes over-committed": "red over-committed a by web: 5000 of 4000 milli cpu",
    "evictions without a record": "red evicted web without a record of that",
    "evictions against a budget or its window": "web was evicted against a budget: 0 of 1 are left",
    "evictions against other limits": "web was evicted for tidy: 3 evictions, perMinute is 2",
    "records that never end or are not true": "the record one is still Evicted",
    "groups below minMember": "1 of 2 members of gang have a node since 3",
    "devices given twice, or to no pod": "web was bound to a: gpu/a/0 is in use twice: b, c",
    "pods unbound after the faults": "web is not placed, though a has room",
    "writes without the lease": "red.1 bound web to a, but the lease is held by blue",
    OTHERS: "red.1 is not ready at the end",
}


@pytest.mark.parametrize("name", [*COUNTED, OTHERS])
def test_each_count_has_its_sentences(name: str) -> None:
    found = counted([f"12.345 {SENTENCES[name]}"])

    assert {each for each, count in found.items() if count} == {name}
    assert set(found) == {*COUNTED, OTHERS}


def test_a_closed_window_counts_as_a_budget() -> None:
    sentence = "1.000 web was evicted for windows: a budget of the policy allows none at that time"

    assert counted([sentence])["evictions against a budget or its window"] == 1
