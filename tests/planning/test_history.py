"""History of moves: hold-back, suspension, pauses, ping-pong, and back-off of budgets."""

from typing import Any

import pytest

from plimsoll.planning.history import (
    BUDGET_MEMORY_S,
    HOLD_BACK_S,
    MAX_BUDGET_S,
    PING_PONG_S,
    REST_AFTER,
    REST_S,
    MoveHistory,
    MoveOutcome,
    PastMove,
)

NOON = 1_750_000_000.0


def a_move(fate: MoveOutcome, ago: float = 0.0, **given: Any) -> PastMove:
    """A move of the ReplicaSet web that ended so many seconds before noon."""
    told = {
        "policy": "tidy", "strategy": "Balance", "owner": "uid-web", "name": "ReplicaSet default/web",
        "source": "a", "fate": fate, "ended": NOON - ago, **given,
    }  # fmt: skip
    return PastMove(**told)


def test_an_empty_memory_objects_to_nothing() -> None:
    """A first run has nothing to learn from."""
    memory = MoveHistory()

    assert memory.held_back("uid-web", "Balance") is None
    assert memory.ping_pong("uid-web", "Balance", "a") is None
    assert memory.budget("default/web") is None
    assert memory.rest("tidy") == ("", False)


@pytest.mark.parametrize(
    ("times", "seconds"), [(1, HOLD_BACK_S), (2, 2 * HOLD_BACK_S), (3, 4 * HOLD_BACK_S), (4, 8 * HOLD_BACK_S)]
)
def test_each_move_that_returns_doubles_the_time_that_its_owner_is_held_back(
    times: int, seconds: float
) -> None:
    """Counted from the end of the last one."""
    past = [a_move(MoveOutcome.RETURNED, ago=n) for n in range(times)]

    just_before = MoveHistory(past, NOON + seconds - 1).held_back("uid-web", "Balance")

    assert just_before.reason == "HeldBack"
    assert "came back to node a" in just_before.message
    assert MoveHistory(past, NOON + seconds).held_back("uid-web", "Balance") is None


def test_another_strategy_and_another_owner_are_not_held_back() -> None:
    """The lesson is about this owner and this strategy."""
    memory = MoveHistory([a_move(MoveOutcome.RETURNED)], NOON + 1)

    assert memory.held_back("uid-web", "Other") is None
    assert memory.held_back("uid-api", "Balance") is None


def test_a_replacement_that_went_astray_holds_its_owner_back() -> None:
    """As one that returned: the plan would be made again."""
    refusal = MoveHistory([a_move(MoveOutcome.ASTRAY)], NOON + 1).held_back("uid-web", "Balance")

    assert refusal.reason == "HeldBack"
    assert "was placed on another node than the plan was made for" in refusal.message


def test_what_a_surge_teaches_holds_for_its_replica_set_as_well() -> None:
    """And counts once for its policy."""
    surges = [a_move(MoveOutcome.STRANDED, controller="uid-web-1", ago=n) for n in range(REST_AFTER - 1)]
    memory = MoveHistory(surges, NOON + 1)

    assert memory.held_back("uid-web", "Balance").reason == "HeldBack"
    assert memory.held_back("uid-web-1", "Balance") == memory.held_back("uid-web", "Balance")
    assert memory.rest("tidy") == ("", False)
    settled = MoveHistory([*surges, a_move(MoveOutcome.SETTLED, controller="uid-web-1", ago=-1)], NOON + 2)
    assert settled.held_back("uid-web-1", "Balance") is None
    assert settled.ping_pong("uid-web-1", "Balance", "a").reason == "PingPong"


def test_a_move_that_settles_clears_the_slate() -> None:
    """Only moves in a row count, in the order in which they ended."""
    past = [
        a_move(MoveOutcome.SETTLED),
        a_move(MoveOutcome.RETURNED, ago=10),
        a_move(MoveOutcome.STRANDED, ago=20),
    ]

    assert MoveHistory(past, NOON + 1).held_back("uid-web", "Balance") is None


def test_after_five_fruitless_moves_the_strategy_leaves_the_owner_alone() -> None:
    """However long ago they were: until their records are gone."""
    past = [a_move(MoveOutcome.RETURNED, ago=n) for n in range(5)]

    memory = MoveHistory(past, NOON + 30 * 86_400)

    assert memory.held_back("uid-web", "Balance").reason == "Suspended"
    assert memory.suspended("tidy") == [
        "Balance leaves ReplicaSet default/web alone: its last 5 moves were unsuccessful"
    ]
    assert memory.suspended("another") == []


def test_no_pod_is_brought_to_a_node_that_its_owner_has_just_left() -> None:
    """From a to b and back again is no balance."""
    past = [a_move(MoveOutcome.SETTLED)]

    assert MoveHistory(past, NOON + PING_PONG_S - 1).ping_pong("uid-web", "Balance", "a").reason == "PingPong"
    assert MoveHistory(past, NOON + PING_PONG_S - 1).ping_pong("uid-web", "Balance", "b") is None
    assert MoveHistory(past, NOON + PING_PONG_S).ping_pong("uid-web", "Balance", "a") is None


def test_a_budget_that_says_no_is_asked_less_and_less_often() -> None:
    """30 s, a minute, two; half an hour at most, and an hour of peace is forgiven."""
    refused = [a_move(MoveOutcome.BLOCKED, ago=n, budget="default/web") for n in range(3)]

    assert MoveHistory(refused, NOON + 119).budget("default/web").message == (
        "PodDisruptionBudget default/web said no 3 times within the hour;"
        " asked again after 2025-06-15T15:08:40Z"
    )
    assert MoveHistory(refused, NOON + 120).budget("default/web") is None
    assert MoveHistory(refused, NOON + 1).budget("default/api") is None
    many = [a_move(MoveOutcome.BLOCKED, ago=n, budget="default/web") for n in range(20)]
    assert MoveHistory(many, NOON + MAX_BUDGET_S - 1).budget("default/web") is not None
    assert MoveHistory(many, NOON + BUDGET_MEMORY_S).budget("default/web") is None


def test_a_policy_whose_moves_keep_failing_rests_and_then_tries_one() -> None:
    """Five in a row, of whichever owner and strategy."""
    past = [a_move(MoveOutcome.STRANDED, ago=n, owner=f"uid-{n}", strategy=f"S{n}") for n in range(5)]

    said, may_try = MoveHistory(past, NOON + REST_S - 1).rest("tidy")
    assert said.startswith(
        "the last 5 moves were unsuccessful, the latest one of ReplicaSet default/web; no pod"
    )
    assert not may_try
    assert MoveHistory(past, NOON + REST_S).rest("tidy")[1]
    assert MoveHistory(past, NOON + 1).rest("another") == ("", False)
    assert MoveHistory([*past, a_move(MoveOutcome.SETTLED)], NOON + 1).rest("tidy") == ("", False)


@pytest.mark.parametrize("ages", [(10.0, 500.0), (500.0, 10.0), (500.0, 10.0, 90.0), (70.0,)], ids=str)
def test_a_node_was_filled_when_the_last_pod_came(ages: tuple[float, ...]) -> None:
    """Of moves of one owner and of several, in any order."""
    for owners in ("one", "own"):
        past = [
            a_move(MoveOutcome.SETTLED, ago, target="t", owner="uid-web" if owners == "one" else f"uid-{ago}")
            for ago in ages
        ]

        assert MoveHistory(past, NOON).filled({"Balance"}, lambda _: 0.0) == {"t": NOON - min(ages)}
        assert MoveHistory(past, NOON).filled({"Balance"}, lambda _: NOON) == {}


def test_a_node_was_filled_by_whichever_owner_came_last() -> None:
    """The owner that came first comes again after the other one; what returned does not count."""
    story = [("uid-a", 500.0), ("uid-b", 90.0), ("uid-a", 10.0)]
    past = [a_move(MoveOutcome.SETTLED, ago, target="t", owner=owner) for owner, ago in story]
    others = [
        a_move(MoveOutcome.RETURNED, 5.0, target="t"),
        a_move(MoveOutcome.SETTLED, 5.0, target="t", strategy="Another"),
        a_move(MoveOutcome.SETTLED, 5.0, target="u", source="t"),
    ]

    found = MoveHistory([*past, *others], NOON).filled({"Balance"}, lambda _: 0.0)

    assert found == {"t": NOON - 10.0, "u": NOON - 5.0}
