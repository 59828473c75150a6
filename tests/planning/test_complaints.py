"""Complaints count for planner Optimal even if their strategy no longer proposes candidates."""

from collections import Counter

import pytest

from planning.optimal.test_planner import AROUND, optimal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import EvictionPlan, Objective
from plimsoll.planning.planners import make_plan
from plimsoll.testing.builders import a_cluster, a_node, a_pod

LOW = ("LowNodeUtilization", {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}})
HIGH = ("HighNodeUtilization", {"thresholds": {"cpu": 20}})
VIOLATION = 1000


def a_cluster_of(sizes: list[int], *, alike: bool) -> Cluster:
    """Nodes of ten cores with so many pods of one core, of one workload or each of its own."""
    pods = [
        a_pod(f"p{i}-{n}", node=f"n{i}", cpu="1", owner="ReplicaSet/web" if alike else f"ReplicaSet/r{i}-{n}")
        for i, size in enumerate(sizes)
        for n in range(size)
    ]
    return a_cluster([a_node(f"n{i}", cpu="10") for i in range(len(sizes))], pods)


def sizes_after(sizes: list[int], made: EvictionPlan) -> list[int]:
    """Pods by node when all moves are made."""
    after = Counter({f"n{i}": size for i, size in enumerate(sizes)})
    for move in made.moves:
        after[move.source] -= 1
        after[move.target] += 1
    return [after[f"n{i}"] for i in range(len(sizes))]


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("sizes", [[10, 4, 3], [10, 7, 2, 4], [10, 6, 3, 4], [10, 7, 2, 5]])
def test_filling_the_last_under_used_node_mends_no_over_used_one(sizes: list[int], alike: bool) -> None:
    """There is room below the target for every pod that is too many, though not on the under-used node."""
    made = make_plan(optimal(LOW, evictor={"minReplicas": 0}), a_cluster_of(sizes, alike=alike), AROUND)

    assert max(sizes_after(sizes, made)) <= 6
    assert made.optimisation.before == VIOLATION * sum(max(size - 6, 0) for size in sizes)
    assert made.optimisation.value == len(made.moves) == sum(max(size - 6, 0) for size in sizes)


@pytest.mark.parametrize("alike", [True, False])
def test_what_cannot_be_mended_stays_in_the_objective(alike: bool) -> None:
    """Five too many and room for three: the strategy is silent then, and two are left to complain of."""
    sizes = [8, 9, 3]
    made = make_plan(optimal(LOW, evictor={"minReplicas": 0}), a_cluster_of(sizes, alike=alike), AROUND)

    assert sum(sizes_after(sizes, made)) == sum(sizes)
    assert made.optimisation.before == 5 * VIOLATION
    assert made.optimisation.value == 2 * VIOLATION + 3
    assert len(made.moves) == 3


def test_a_silent_strategy_moves_nothing_and_its_complaint_is_reported() -> None:
    """Without an under-used node LowNodeUtilization proposes nothing; the run says what is wrong."""
    made = make_plan(optimal(LOW, evictor={"minReplicas": 0}), a_cluster_of([9, 5, 5], alike=True), AROUND)

    assert made.moves == ()
    assert made.optimisation.before == made.optimisation.value == 3 * VIOLATION


@pytest.mark.parametrize("alike", [True, False])
def test_making_all_nodes_under_used_compacts_nothing(alike: bool) -> None:
    """An even spread would silence HighNodeUtilization; what it asks for is that a node is emptied."""
    policy = optimal(HIGH, objective=Objective.SMALLEST_SPREAD, evictor={"minReplicas": 0})
    made = make_plan(policy, a_cluster_of([3, 1], alike=alike), AROUND)

    assert sizes_after([3, 1], made) == [4, 0]
