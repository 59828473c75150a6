"""Past moves of a pod: its own records, by uid, and the minutes that it stays after one."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from inspection.test_history import NOW, a_record
from plimsoll.inspection.explanations.past_moves import SHOWN, age_text, past_moves
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.moves import workload_of
from plimsoll.records.record import Record
from plimsoll.testing.builders import a_pod, the_info


def test_records_are_a_pods_by_uid() -> None:
    """Its own, those of its owner, and the one that it replaces; pods made again under a name have none."""
    pod = the_info(a_pod("web-b", namespace="shop", uid="pod", owner="ReplicaSet/web"))
    owners_uid = workload_of(pod).key.partition("/")[2]
    records: dict[str, Record] = {}
    wanted = set()
    for is_moved, is_sibling, is_new in itertools.product((True, False), repeat=3):
        key = f"{is_moved:d}{is_sibling:d}{is_new:d}"
        record = a_record(
            "web",
            minutes_ago=30 + len(records),
            uid="pod" if is_moved else "earlier",
            replacement="pod" if is_new else "later",
        )
        assert record.spec.owner is not None
        owner = record.spec.owner.model_copy(update={"uid": owners_uid if is_sibling else "earlier"})
        records[key] = replace(record, spec=record.spec.model_copy(update={"owner": owner}))
        if is_moved or is_sibling or is_new:
            wanted.add(30 + len(records) - 1)
    found = past_moves(records.values(), NOW.timestamp(), pod.uid, workload_of(pod).key)

    ages = [each.age_seconds for each in found]
    assert ages == sorted(minutes * 60 - 60 for minutes in wanted)


def test_the_latest_are_shown_and_no_more() -> None:
    """Ten of twelve, whatever the order of the records."""
    pod = the_info(a_pod("web-b", namespace="shop", uid="pod"))
    numbers = [5, 3, 9, 1, 11, 2, 8, 12, 4, 7, 6, 10]
    records = {f"r{each}": a_record(f"r{each}", minutes_ago=each, uid="pod", took=0) for each in numbers}

    found = past_moves(records.values(), NOW.timestamp(), pod.uid, workload_of(pod).key)

    assert [each.age_seconds for each in found] == [60 * each for each in range(1, SHOWN + 1)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7_199, "119m"),
        (7_200, "2h"),
        (172_799, "47h"),
        (172_800, "2d"),
    ],
)
def test_ages_are_in_one_unit(seconds: int, text: str) -> None:
    """As kubectl prints them."""
    assert age_text(seconds) == text


def document_of(record: Record) -> dict[str, Any]:
    """The record as the API server has it."""
    spec, status = (
        each.model_dump(mode="json", by_alias=True, exclude_none=True)
        for each in (record.spec, record.status)
    )
    metadata = {"namespace": record.namespace, "name": record.name, "uid": record.name}
    metadata["creationTimestamp"] = (NOW - timedelta(hours=2)).isoformat()
    return {"kind": "Eviction", "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("minutes_ago", "left"),
    [
        (1, "59 more minutes"),
        (10.4, "50 more minutes"),
        (59.4, "1 more minute"),
        (59.9, "1 more minute"),
        (61, ""),
    ],
)
def test_a_replacement_says_how_long_it_stays(minutes_ago: float, left: str) -> None:
    """For an hour from the end of its move; a move of another pod does not count."""
    moved, other = (
        document_of(a_record(name, minutes_ago=minutes, took=0, replacement=uid, landed="a"))
        for name, minutes, uid in (("web-x", minutes_ago, "web-0"), ("web-y", 1, "web-9"))
    )
    state = ClusterState.of(
        content_of(
            [
                *(a_node_document(name) for name in "ab"),
                *(a_pod_document(f"web-{number}", "a") for number in range(2)),
                a_policy_document(),
                moved,
                other,
            ],
            NOW,
        )
    )
    found = explain_pod(state, "shop", "web-0").placed

    assert found is not None
    (view,) = found.policies
    holds = [each.message for each in view.holds if each.reason == "MovedRecently"]
    text = f"it replaced a pod that was moved within the last hour; it stays for {left}"
    assert holds == ([text] if left else [])
