"""Contexts of plans: the outcome of each fact; none is left out."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning import context
from plimsoll.planning.context import SETTLING_S, PlanningFacts, SentMove, under_way
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.moves import PlanningContext, standing
from plimsoll.planning.surges import Deployments
from plimsoll.testing.builders import a_pod

NOW = 1_000_000.0


def context_of(**given: Any) -> PlanningContext:
    """The context of facts of which nothing is known but this."""
    nothing: dict[str, Any] = {
        "now": NOW,
        "unplaced": (),
        "served": (),
        "moves": (),
        "in_flight": {},
        "followed": frozenset(),
        "moving": frozenset(),
        "memory": MoveHistory(),
        "recent": 0,
        "hourly": {},
        "unready": {},
        "gangs": {},
        "over_for": {},
        "others": {},
        "measurements": Measurements(),
        "deployments": Deployments(),
        "monotonic": standing,
    }
    return context.of(PlanningFacts(**nothing | given))


def test_no_fact_has_a_default() -> None:
    """Who builds a context says all of it; each of the three builders once left something out."""
    with pytest.raises(TypeError, match="Missing required argument"):
        PlanningFacts(now=NOW)  # type: ignore[call-arg]


def test_nodes_of_moves_under_way_are_touched_now_and_of_finished_ones_when_they_ended() -> None:
    """The latest move of a node counts; an end in the future, by another clock, counts as now."""
    found = context_of(
        moves=[
            SentMove("w", ("a", "b"), NOW - 500.0),
            SentMove("w", ("b", "c"), NOW - 90.0),
            SentMove("w", ("d",)),
            SentMove("w", ("e",), NOW + 60.0),
        ]
    )

    assert found.touched == {"a": NOW - 500.0, "b": NOW - 90.0, "c": NOW - 90.0, "d": NOW, "e": NOW}


def test_replacements_stay_for_an_hour_and_while_their_move_is_followed() -> None:
    """One without a replacement, or whose pod came back, keeps nothing."""
    found = context_of(
        moves=[
            SentMove("w", ("a",), NOW - SETTLING_S + 1.0, "young"),
            SentMove("w", ("a",), NOW - SETTLING_S, "old"),
            SentMove("w", ("a",), NOW),
        ],
        followed=frozenset({"followed"}),
    )

    assert found.moved == {"young", "followed"}


def test_victims_of_preemption_are_of_no_workload() -> None:
    """Limits count moves that wait for their replacement."""
    moves = [SentMove("w", ("a",)), SentMove("", ("a",)), SentMove("w", ("a",), NOW), SentMove("w", ("b",))]

    assert under_way(moves) == {"w": 2}


def test_pods_for_which_room_is_reserved_need_none() -> None:
    """No second room is made for them."""
    waits, served = (Cluster().templates.info(a_pod(name)) for name in ("waits", "served"))

    assert context_of(unplaced=[waits, served], served={served.uid}).unplaced == (waits,)
