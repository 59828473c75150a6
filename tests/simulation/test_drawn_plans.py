"""Runs that are drawn toward branches which no seed takes."""

from __future__ import annotations

from random import Random

from simulation.branches import Line
from simulation.drawn_plans import drawn, left
from simulation.run import Plan


def differences(one: Plan, other: Plan) -> int:
    """In how many things two plans differ."""
    features = frozenset(one.features or ()) ^ frozenset(other.features or ())
    kinds = frozenset(one.kinds or ()) ^ frozenset(other.kinds or ())
    return (one.seed != other.seed) + len(features) + len(kinds) + (one.faulty_s != other.faulty_s)


def test_half_of_the_runs_differ_from_a_kept_one_in_a_single_thing() -> None:
    """The others are new ones, each of a few features and kinds of faults."""
    random, first = Random(1), drawn(Random(1), [])
    runs = [drawn(random, [first]) for _ in range(200)]

    assert 70 < sum(differences(each, first) == 1 for each in runs) < 130
    assert all(len(each.features or ()) <= 5 and each.kinds for each in runs)


def test_draws_are_the_same_again() -> None:
    runs = [[drawn(random, []) for _ in range(5)] for random in (Random("a"), Random("a"), Random("b"))]

    assert runs[0] == runs[1] != runs[2]


def test_branches_are_counted() -> None:
    lines = [Line("a.py", 1, "if a:", 2, 1), Line("b.py", 4, "for b in c:", 3, 1)]

    assert left(lines) == "2 branches taken, 3 left in modules that were reached"
