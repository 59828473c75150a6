"""The figures of pictures, against sums and loops: heights, thicknesses, curves, and rows of allowances."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspection.contents import a_node_document, a_pod_document, content_of
from plimsoll.inspection.state import ClusterState
from plimsoll.web_pages.heat_map import NAMED, OVER, STEPS, HeatMap, step_of
from plimsoll.web_pages.move_arrows import DRAWN, ROW, _width, move_arrows
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


def test_the_largest_pods_of_a_node_are_listed_first_and_those_without_requests_last() -> None:
    sizes = {"a": None, "b": "1m", "c": "2", "d": None}
    documents = [a_pod_document(name, "n", **({"cpu": cpu} if cpu else {})) for name, cpu in sizes.items()]
    for each in documents:
        if sizes[each["metadata"]["name"]] is None:
            each["spec"]["containers"][0].pop("resources", None)

    index = pod_index(ClusterState.of(content_of([a_node_document("n"), *documents])), [], [])

    assert [row[0].rpartition("/")[2] for row in index["pods"]] == ["c", "b", "a", "d"]


def test_a_column_without_names_has_no_width() -> None:
    assert _width(()) == 0
    assert _width([("ab", 1)]) < _width([("abc", 1)])


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_nodes_have_names_as_long_as_they_are_few(more: int) -> None:
    tiles: Any = [None] * (NAMED + more)

    assert HeatMap("cpu", tiles).named is (more <= 0)
