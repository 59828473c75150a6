"""The program against every solution there is, on problems small enough to try them all."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.moves import Objective
from plimsoll_optimal.milp import _Model, solve
from plimsoll_optimal.problem import (
    NOWHERE,
    VIOLATION,
    PlacementProblem,
    PodGroupCount,
    Solution,
    SpreadProblem,
    value_of,
)


@st.composite
def small_problems(draw: Callable[..., Any]) -> PlacementProblem:
    """One or two templates, two or three nodes, at most five pods, one resource."""
    nodes, templates = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    requests = np.asarray([[float(draw(st.integers(1, 3)))] for _ in range(templates)])
    pods = draw(
        st.lists(st.tuples(st.integers(0, templates - 1), st.integers(0, nodes - 1)), min_size=1, max_size=5)
    )
    used = np.zeros((nodes, 1))
    stocks = []
    for template, node in sorted(set(pods)):
        count = pods.count((template, node))
        used[node] += count * requests[template]
        stocks.append(PodGroupCount(template, node, count, draw(st.integers(0, count))))
    allocatable = used + np.asarray([[float(draw(st.integers(0, 4)))] for _ in range(nodes)])
    most = np.asarray([[draw(st.sampled_from([0, 5, 5])) for _ in range(nodes)] for _ in range(templates)])
    sizes = np.asarray(
        [sum(s.count for s in stocks if s.node == node and s.template == 0) for node in range(nodes)]
    )
    return PlacementProblem(
        requests=requests,
        used=used,
        allocatable=np.maximum(allocatable, 1.0),
        most=most,
        stocks=tuple(stocks),
        spreads=(SpreadProblem(1, sizes, np.arange(nodes), (0,)),) if draw(st.booleans()) else (),
        objective=draw(st.sampled_from(Objective)),
        move_price=draw(st.sampled_from([0.5, 1.0, 7.0])),
        staying=np.asarray([draw(st.booleans()) for _ in range(nodes)]),
    )


def is_allowed(
    problem: PlacementProblem, leaving: tuple[int, ...] | np.ndarray[Any, Any], arriving: np.ndarray[Any, Any]
) -> Any:
    """Whether a solution keeps every rule, by plain arithmetic."""
    used = problem.used + arriving.T @ problem.requests
    for stock, gone in zip(problem.stocks, leaving, strict=True):
        used[stock.node] -= gone * problem.requests[stock.template]
        if stock.unwanted and arriving[stock.template, stock.node]:
            return False
    fuller = used > np.maximum(problem.allocatable, problem.used) + 1e-9
    for spread in problem.spreads:
        sizes = spread.sizes.copy()
        for template in spread.templates:
            sizes += arriving[template]
            for stock, gone in zip(problem.stocks, leaving, strict=True):
                if stock.template == template:
                    sizes[stock.node] -= gone
        if spread.excess(sizes) > spread.excess(spread.sizes):
            return False
    return not fuller.any() and (arriving <= problem.most).all()


def every_solution(problem: PlacementProblem) -> Iterator[tuple[np.ndarray[Any, Any], ...]]:
    """Each choice of what leaves and where it arrives that keeps the rules."""
    nodes = len(problem.used)
    for leaving in product(*(range(stock.count + 1) for stock in problem.stocks)):
        total = [
            sum(gone for stock, gone in zip(problem.stocks, leaving, strict=True) if stock.template == t)
            for t in range(len(problem.requests))
        ]
        choices = [
            [each for each in product(range(count + 1), repeat=nodes) if sum(each) == count]
            for count in total
        ]
        for arrivals in product(*choices):
            arriving = np.asarray(arrivals, dtype=np.int64)
            if is_allowed(problem, leaving, arriving):
                yield np.asarray(leaving, dtype=np.int64), arriving


@given(small_problems())
def test_no_solution_is_better_than_the_one_found(problem: PlacementProblem) -> None:
    """Its value is the least of all, its bound says so, and it keeps every rule."""
    found = solve(problem, 20)

    least = min(value_of(problem, *each) for each in every_solution(problem))  # type: ignore[arg-type] # fields as in the API
    assert is_allowed(problem, found.leaving, found.arriving)
    assert found.value == pytest.approx(least, abs=1e-4)
    assert found.bound <= least + 1e-4
    assert found.gap == pytest.approx(0, abs=1e-4)


def test_nodes_that_nothing_changes_count_in_the_bound() -> None:
    """The last two are uneven for ever; with them counted wrongly the bound would exceed what is possible."""
    problem = PlacementProblem(
        requests=np.asarray([[1.0]]),
        used=np.asarray([[3.0], [1.0], [0.0], [4.0]]),
        allocatable=np.full((4, 1), 4.0),
        most=np.asarray([[5, 5, 0, 0]]),
        stocks=(PodGroupCount(0, 0, 3, unwanted=0), PodGroupCount(0, 1, 1, unwanted=0)),
        staying=np.zeros(4, dtype=np.bool_),
        objective=Objective.SMALLEST_SPREAD,
    )

    nothing = Solution(np.zeros(2, dtype=np.int64), np.zeros_like(problem.most), 0.0, 0.0)

    _, _, bound, _ = _Model(problem).run(20, nothing)

    least = min(value_of(problem, *each) for each in every_solution(problem))  # type: ignore[arg-type] # fields as in the API
    assert bound == pytest.approx(least)


def test_a_search_without_time_gives_back_what_it_was_given() -> None:
    """Never worse than the solution that it begins with."""
    problem = PlacementProblem(
        requests=np.asarray([[1.0]]),
        used=np.asarray([[2.0], [0.0]]),
        allocatable=np.asarray([[2.0], [2.0]]),
        most=np.asarray([[2, 2]]),
        stocks=(PodGroupCount(0, 0, 2, unwanted=2),),
        staying=np.zeros(2, dtype=np.bool_),
    )
    start = Solution(np.asarray([1]), np.asarray([[0, 1]]), 0.0, 0.0)

    assert solve(problem, 0.0, start).value <= value_of(problem, start.leaving, start.arriving)
    assert solve(problem, 10.0).value == 2.0


def waiting_for_room(phases: int = 0) -> PlacementProblem:
    """A pod of ten waits for node 0; six leave it for node 1, if five leave that for node 2."""
    return PlacementProblem(
        requests=np.asarray([[10.0], [6.0], [5.0]]),
        used=np.asarray([[6.0], [5.0], [5.0]]),
        allocatable=np.asarray([[10.0], [9.0], [10.0]]),
        most=np.full((3, 3), 5),
        stocks=(PodGroupCount(0, NOWHERE, 2, 2), PodGroupCount(1, 0, 1), PodGroupCount(2, 1, 1)),
        staying=np.zeros(3, dtype=np.bool_),
        phases=phases,
    )


def test_who_waits_counts_as_wrong_and_moves_for_nothing() -> None:
    """Two wait: 2,000. One gets a place by two moves: 1,000 and the price of both; its own is no move."""
    problem = waiting_for_room()
    found = solve(problem, 5.0)

    assert value_of(problem, np.zeros(3, dtype=np.int64), np.zeros((3, 3), dtype=np.int64)) == 2 * VIOLATION
    assert found.value == found.bound == VIOLATION + 2
    assert found.leaving.tolist() == [1, 1, 1]
    assert found.arriving.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(("phases", "value"), [(1, 2 * VIOLATION), (2, 2 * VIOLATION), (3, VIOLATION + 2)])
def test_three_that_wait_for_each_other_take_three_steps(phases: int, value: float) -> None:
    """What leaves in a step makes room for the next one only."""
    assert solve(waiting_for_room(phases), 5.0).value == value


@pytest.mark.parametrize(("phases", "moves"), [(0, 2), (3, 0)])
def test_a_swap_takes_no_number_of_steps(phases: int, moves: int) -> None:
    """Two pods that fill their nodes are unwanted there: each would have to go first."""
    problem = PlacementProblem(
        requests=np.asarray([[3.0], [2.0]]),
        used=np.asarray([[3.0], [2.0]]),
        allocatable=np.asarray([[3.0], [3.0]]),
        most=np.full((2, 2), 5),
        stocks=(PodGroupCount(0, 0, 1, 1), PodGroupCount(1, 1, 1, 1)),
        staying=np.zeros(2, dtype=np.bool_),
        phases=phases,
    )

    assert solve(problem, 5.0).moves == moves
