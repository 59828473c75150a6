"""Comparisons of processes at rest with fresh ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from simulation.baselines import idle_leader, remembered, stray_tasks

FRESH = Counter({"heartbeat": 1, "condition writer": 8, "red.0": 1, "(Event.wait)": 4})


def test_tasks_of_a_process_are_those_of_a_fresh_one() -> None:
    """But for its own name, and for a few waiters."""
    assert list(stray_tasks(Counter({**FRESH, "red.0": 0, "blue.3": 1, "(Event.wait)": 6}), FRESH)) == []


def test_a_task_too_many_or_too_few_is_found() -> None:
    """A task without a name is found by the number of such tasks."""
    found = Counter({"condition writer": 8, "left behind": 2, "red.0": 1, "(Event.wait)": 20})

    assert list(stray_tasks(found, FRESH)) == [
        "0 tasks 'heartbeat', where a fresh process has 1",
        "2 tasks 'left behind', where a fresh process has 0",
        "20 tasks without a name, where a fresh process has 4: 16 (Event.wait)",
    ]


@pytest.mark.parametrize(
    ("seconds_left", "leads", "said"),
    [
        (8.0, True, []),
        (0.0, True, ["it says that it is ready and leads, and its fence is shut"]),
        (0.0, False, []),
        (8.0, False, ["it stands by, and its fence is open"]),
    ],
)
def test_who_leads_may_write(seconds_left: float, leads: bool, said: list[str]) -> None:
    """A leader at rest has renewed its lease a moment ago."""
    assert list(idle_leader(seconds_left, leads=leads)) == said


@dataclass
class Part:
    """Something that is held."""

    known: dict[str, int] = field(default_factory=dict)
    others: list[set[str]] = field(default_factory=list)


@dataclass(slots=True)
class Whole:
    """Something that holds it."""

    part: Part


def test_what_is_gone_is_found_wherever_it_is_a_key() -> None:
    """In dictionaries and sets, at any depth, also behind slots."""
    whole = Whole(Part({"gone": 1, "there": 2}, [{"gone", "gone, too"}, {"there"}]))

    assert remembered(whole, {"gone", "gone, too"}) == {
        "Whole.(Part).known": 1,
        "Whole.(Part).others[]": 2,
    }
