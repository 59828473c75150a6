"""The figures of pictures, against sums and loops: heights, thicknesses, curves, and rows of allowances."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspection.contents import a_node_document, a_pod_document, content_of
from plimsoll.inspection.picture import PicturedBudget
from plimsoll.inspection.state import ClusterState
from plimsoll.simulation.allowances import ReplayedBudget, ReplayedLimit
from plimsoll.web_pages.allowances import Allowance, allowances, replayed_allowances
from plimsoll.web_pages.heat_map import OVER, STEPS, step_of
from plimsoll.web_pages.move_arrows import DRAWN, ROW, move_arrows
from plimsoll.web_pages.pod_index import pod_index
from plimsoll.web_pages.time_line import HEIGHT, WIDTH, time_line


@pytest.mark.parametrize(
    ("percent", "step"),
    [
        (None, 0),
        (-3.0, 0),
        (0.0, 0),
        (0.1, 1),
        (50.0, STEPS // 2),
        (99.9, STEPS),
        (100.0, STEPS),
        (100.1, OVER),
    ],
)
def test_a_bar_is_as_high_as_its_percent(percent: float | None, step: int) -> None:
    assert step_of(percent) == step


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("vwxyz")), max_size=40))
def test_arrows_count_moves_and_lie_in_the_rows_of_their_nodes(moves: list[tuple[str, str]]) -> None:
    drawn = move_arrows(moves)

    lefts, rights = sorted({each for each, _ in moves}), sorted({each for _, each in moves})
    assert drawn.height == 22 * max(len(lefts), len(rights))
    assert [each for each, _ in drawn.left] == lefts
    assert [each for each, _ in drawn.right] == rights
    for arrow in drawn.arrows:
        assert arrow.moves == moves.count((arrow.source, arrow.target))
        assert arrow.thickness == (1 + arrow.moves / 2 if arrow.moves < 10 else 6)
        assert arrow.start == 22 * lefts.index(arrow.source) + 11
        assert arrow.end == 22 * rights.index(arrow.target) + 11
    assert [each.moves for each in drawn.arrows] == sorted(
        (each.moves for each in drawn.arrows), reverse=True
    )
    assert drawn.left_out == 0


def test_of_too_many_pairs_those_with_the_most_moves_are_drawn() -> None:
    pairs = [(f"s{n}", f"t{n}") for n in range(DRAWN + 5)]

    drawn = move_arrows([*pairs, *pairs[5:], *pairs[5:]])

    assert (len(drawn.arrows), drawn.left_out, drawn.height) == (DRAWN, 5, ROW * DRAWN)


@given(
    lines=st.lists(st.lists(st.integers(0, 900), max_size=6), max_size=3),
    least=st.sampled_from((0.0, 0.25, 400.0)),
    small=st.booleans(),
)
def test_a_curve_ends_at_the_edges_of_its_drawing(lines: list[list[int]], least: float, small: bool) -> None:
    """The highest figure is at the upper edge, also if below 1, and the last moment at the right one."""
    unit = 1000 if small else 1
    told = [(f"line {n}", [(60 * at, y / unit) for at, y in enumerate(ys)]) for n, ys in enumerate(lines)]

    drawn = time_line("pods", told, least)

    figures = [y / unit for ys in lines for y in ys]
    top = max([*figures, least]) or 1.0
    seconds = max((60 * (len(ys) - 1) for ys in lines), default=0)
    assert (drawn.top, drawn.seconds) == (top, seconds if seconds > 0 else 1)
    assert [(each.last, each.highest) for each in drawn.curves] == [
        (ys[-1] / unit, max(ys) / unit) for ys in lines if ys
    ]
    for curve, ys in zip(drawn.curves, filter(None, lines), strict=True):
        points = [tuple(map(float, each.split(","))) for each in curve.points.split()]
        for (x, y), (at, figure) in zip(points, enumerate(ys), strict=True):
            assert x == pytest.approx(WIDTH * 60 * at / drawn.seconds, abs=0.06)
            assert y == pytest.approx(HEIGHT - HEIGHT * figure / unit / top, abs=0.06)


def a_limit(draw: random.Random, name: str) -> dict[str, Any]:
    """A limit with anything left."""
    subject = draw.choice((None, name))
    limit = draw.choice(("budgets", "total", "perNode"))
    allowed = draw.randint(0, 3)
    used = draw.randint(0, allowed)
    return {"limit": limit, "subject": subject, "allowed": allowed, "used": used, "left": allowed - used}


@given(seed=st.integers(0, 2**32))
def test_a_replay_shows_each_budget_and_limit_and_what_is_used_up_first(seed: int) -> None:
    draw = random.Random(seed)
    limits = [
        ReplayedLimit(policy=f"p{n}", runs_without=draw.randint(0, 2), **a_limit(draw, f"l{n}"))
        for n in range(draw.randint(0, 4))
    ]
    budgets = [
        ReplayedBudget(
            policy=draw.choice(("", "p")),
            budget=f"shop/b{n}",
            allowed=3,
            used=3 - left,
            left=left,
            runs_without=draw.randint(0, 2),
            refusals=draw.randint(0, 2),
            evicted=4,
            blocked=5,
            left_at_end=6,
        )
        for n, left in enumerate(draw.choices((0, 1, 2), k=draw.randint(0, 4)))
    ]
    without = ("every run left some", "nothing left in 1 run", "nothing left in 2 runs")
    expected = [
        Allowance(
            "EvictionBudget" if each.limit == "budgets" else each.limit,
            each.subject or "the run",
            each.policy,
            without[each.runs_without],
            each.allowed,
            each.used,
            each.left,
        )
        for each in limits
    ] + [
        Allowance(
            "PodDisruptionBudget",
            each.budget,
            each.policy,
            f"{without[each.runs_without]}; 4 evicted, 5 stopped; allows 6 at the end"
            if each.policy
            else "no run touched it",
            3,
            3 - each.left,
            each.left,
            each.refusals,
        )
        for each in budgets
    ]

    shown = replayed_allowances(cast("Any", SimpleNamespace(limits=limits, budgets=budgets)))

    used_up = [each for each in expected if each.left == 0]
    order = [
        sorted(some, key=lambda each: (-each.refused, each.left, each.kind, each.name))
        for some in (used_up, [each for each in expected if each.left > 0])
    ]
    assert shown == order[0] + order[1]
    assert [each.label for each in shown] == [f"{each.left} of {each.allowed} left" for each in shown]


def test_a_plan_shows_budgets_that_it_uses_and_those_that_it_does_not() -> None:
    used = SimpleNamespace(budget="shop/a", used=1, left=0, refused=2)
    rows: list[dict[str, Any]] = [
        {"limit": "budgets", "subject": "b", "allowed": 2, "used": 0, "left": 2},
        {"limit": "total", "subject": None, "allowed": 1, "used": 1, "left": 0},
    ]
    plan = SimpleNamespace(policy="p", budgets=[used], limits=[SimpleNamespace(**each) for each in rows])
    budgets = [
        PicturedBudget(budget=f"shop/{name}", allowed=1, healthy=2, expected=3, desired=1) for name in "ab"
    ]

    shown = allowances(budgets, [cast("Any", plan)])

    detail = "2 of 3 healthy, 1 must be"
    assert shown == [
        Allowance("PodDisruptionBudget", "shop/a", "p", detail, 1, 1, 0, 2),
        Allowance("total", "the run", "p", "a limit of the policy", 1, 1, 0),
        Allowance("PodDisruptionBudget", "shop/b", "", detail, 1, 0, 1, 0),
        Allowance("EvictionBudget", "b", "p", "open now", 2, 0, 2),
    ]


def test_the_largest_pods_of_a_node_are_listed_first_and_those_without_requests_last() -> None:
    sizes = {"a": None, "b": "1m", "c": "2", "d": None}
    documents = [a_pod_document(name, "n", **({"cpu": cpu} if cpu else {})) for name, cpu in sizes.items()]
    for each in documents:
        if sizes[each["metadata"]["name"]] is None:
            each["spec"]["containers"][0].pop("resources", None)

    index = pod_index(ClusterState.of(content_of([a_node_document("n"), *documents])), [], [])

    assert [row[0].rpartition("/")[2] for row in index["pods"]] == ["c", "b", "a", "d"]
