"""History of moves, from Eviction records."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction import Eviction
from plimsoll.cli.views.history import history_view
from plimsoll.inspection.explanations.moved_pod import move_sentence
from plimsoll.inspection.history.answer import History
from plimsoll.inspection.history.digest import percentile
from plimsoll.inspection.history.history import history_of
from plimsoll.inspection.history.selection import RecordSelection
from plimsoll.model.selector_text import parse_selector
from plimsoll.records.history import memory_of
from plimsoll.records.record import Record, recorded_workload

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_record(  # noqa: PLR0913 - a test names only what it is about
    name: str,
    phase: str = "Settled",
    *,
    minutes_ago: float = 30,
    took: float = 60,
    landed: str = "n2",
    replacement: str = "",
    uid: str = "",
    reason: str = "",
    owner: str = "web",
    **spec: Any,
) -> Record:
    """A record of a move from n1, planned so long ago, that took so many seconds."""
    planned = NOW - timedelta(minutes=minutes_ago)
    ended = planned + timedelta(seconds=took)
    transitions = [{"phase": "Planned", "time": planned.isoformat()}]
    if phase != "Planned":
        transitions.append({"phase": phase, "time": ended.isoformat()})
    has_landed = phase in ("Settled", "Returned")
    document = {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "pod": {"namespace": "shop", "name": name, "uid": uid or f"uid-{name}"},
            "owner": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}"},
            "policy": "tidy",
            "strategy": "RemoveDuplicates",
            "mode": "Enforce",
            "reason": "2 pods are on its node",
            "fromNode": "n1",
            "targetNode": "n2",
            **spec,
        },
        "status": {
            "phase": phase,
            "transitions": transitions,
            **({"reason": reason} if reason else {}),
            **(
                {"replacement": {"name": f"{name}-b", "uid": replacement or f"new-{name}", "node": landed}}
                if has_landed
                else {}
            ),
        },
    }
    read = Eviction.model_validate(document)
    assert read.status is not None
    return Record("shop", name, read.spec, read.status, planned.timestamp())


def history(*records: Record, again: float = 3600.0, **selection: Any) -> History:
    return history_of(records, RecordSelection(NOW.timestamp(), **selection), "test", again)


@pytest.mark.parametrize(("granted_min", "is_held"), [(40, True), (20, False)])
@pytest.mark.parametrize(("phase", "reason"), [("Failed", "EvictionRefused"), ("Returned", "")])
def test_what_was_refused_before_a_right_was_granted_holds_nothing_back(
    phase: str, reason: str, granted_min: int, is_held: bool
) -> None:
    """A move that came back holds its workload back whenever that was."""
    record = a_record("a", phase=phase, reason=reason)
    granted = NOW - timedelta(minutes=granted_min)

    memory = memory_of([record], (NOW - timedelta(minutes=28)).timestamp(), granted.timestamp())

    held = memory.held_back(recorded_workload(record.spec), "RemoveDuplicates")
    assert (held is not None) is (is_held or phase == "Returned")


@pytest.mark.parametrize(
    ("reason", "has_left"),
    [("EvictionRefused", False), ("NoReplacement", True), ("ReplacementNotReady", True)],
)
def test_a_failed_move_says_whether_the_pod_has_left(reason: str, has_left: bool) -> None:
    said = move_sentence(a_record("a", "Failed", reason=reason), NOW.timestamp())

    assert said.startswith("it was evicted from n1" if has_left else "policy tidy (")
    assert ("did not move it off n1" in said) is not has_left


def test_the_digest_counts_outcomes_and_times_what_settled() -> None:
    """Each policy and strategy has one row; only settled moves have a duration that counts."""
    found = history(
        a_record("a", took=10),
        a_record("b", took=20),
        a_record("c", took=900),
        a_record("d", "Returned", took=5000, landed="n1"),
        a_record("e", "Failed", reason="NoReplacement"),
        a_record("f", "Planned"),
        a_record("g", strategy="LowNodeUtilization"),
    )

    other, first = found.digest
    assert (first.policy, first.strategy, first.moves) == ("tidy", "RemoveDuplicates", 6)
    assert (first.settled, first.returned, first.failed, first.open) == (3, 1, 1, 1)
    assert (first.p50_seconds, first.p95_seconds) == (20, 900)
    assert (other.strategy, other.moves) == ("LowNodeUtilization", 1)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ((), 50, None),
        ((7.0,), 95, 7.0),
        # ceil(50*4/100) = 2, ceil(95*4/100) = 4
        ((1.0, 2.0, 3.0, 4.0), 50, 2.0),
        ((1.0, 2.0, 3.0, 4.0), 95, 4.0),
    ],
)
def test_percentiles_are_of_the_nearest_rank(
    values: tuple[float, ...], percent: int, expected: float | None
) -> None:
    """The smallest value that so many percent do not exceed."""
    assert percentile(values, percent) == expected


def test_a_replacement_that_was_moved_again_differs_from_a_second_replica() -> None:
    """The chain is by uid of the replacement; ``back`` says that it is where the first move left."""
    found = history(
        a_record("a", minutes_ago=60, replacement="uid-b"),
        a_record("b", minutes_ago=50, uid="uid-b", fromNode="n2", targetNode="n1", landed="n1"),
        a_record("c", minutes_ago=45, fromNode="n3"),
        a_record("d", minutes_ago=44, owner="other"),
    )

    (chained,) = found.moved_again
    assert (chained.pod, chained.first, chained.second) == ("shop/b", "shop/a", "shop/b")
    assert chained.back
    assert chained.seconds == 540
    assert [(each.workload, each.moves) for each in found.owners] == [
        ("ReplicaSet shop/web", 3),
        ("ReplicaSet shop/other", 1),
    ]


def test_moves_of_a_pod_far_apart_are_not_moved_again() -> None:
    """The time runs from the end of the earlier move to the plan of the later one."""
    records = a_record("a", minutes_ago=60, replacement="uid-b"), a_record("b", minutes_ago=50, uid="uid-b")

    assert history(*records, again=540.0).moved_again
    assert not history(*records, again=539.0).moved_again


def test_only_pods_that_left_count_as_moved() -> None:
    """A blocked or cancelled move left its pod alone, as did one that the server refused."""
    found = history(
        a_record("a", "Blocked", reason="PodDisruptionBudget"),
        a_record("b", "Cancelled", reason="Gone"),
        a_record("c", "Failed", reason="EvictionRefused"),
        a_record("d", "Failed", reason="ReplacementNotReady"),
    )

    assert [each.moves for each in found.owners] == [1]
    assert len(found.moves) == 4


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        pytest.param({}, ["old", "open", "new", "late"], id="all"),
        pytest.param({"since": NOW.timestamp() - 3600}, ["open", "new", "late"], id="open-moves-are-of-now"),
        pytest.param({"until": NOW.timestamp() - 600}, ["old", "open", "new"], id="until"),
        pytest.param({"policy": "other"}, ["new"], id="policy"),
        pytest.param({"namespace": "bank"}, [], id="namespace"),
        pytest.param(
            {"labels": parse_selector("plimsoll.dev/strategy=LowNodeUtilization")}, ["late"], id="labels"
        ),
    ],
)
def test_records_are_selected(selection: dict[str, Any], names: list[str]) -> None:
    """By time of end, time of plan, policy, namespace and the labels that the operator gives to records."""
    records = [
        a_record("old", minutes_ago=300),
        a_record("open", "Planned", minutes_ago=200),
        a_record("new", minutes_ago=30, policy="other"),
        a_record("late", minutes_ago=5, strategy="LowNodeUtilization"),
    ]

    chosen = RecordSelection(**{"until": NOW.timestamp(), **selection})
    found = history_of(records, chosen, "test")

    assert [each.pod.removeprefix("shop/") for each in found.moves] == names


def test_predictions_moved_nothing() -> None:
    """Records of dry runs are counted and left out."""
    found = history(a_record("a"), a_record("b", "Predicted", mode="DryRun"))

    assert [each.record for each in found.moves] == ["shop/a"]
    assert found.predictions == 1


def test_forecasts_are_counted_by_where_their_replacements_went() -> None:
    """A move whose target was proven, and one whose replacement has no node, do not count."""
    found = history(
        a_record("hit", forecast=True),
        a_record("as-good", forecast=True, landed="n3", equalTargets=["n3"]),
        a_record("miss", forecast=True, landed="n4", equalTargets=["n3"]),
        a_record("proven", landed="n4"),
        a_record("lost", "Failed", forecast=True),
    )

    assert (found.forecasts, found.forecasts_hit) == (3, 2)
    assert history_view(found)[-1] == (
        "forecasts: of 3 replacements that other schedulers placed, 2 on the expected node, or on one as good"
    )
