"""The Optimal planner of policies that move pods by load."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from planning.load_worlds import AROUND, MEASURED, LoadWorld, a_policy
from planning.optimal.test_milp import every_solution
from planning.rounds import PLACE
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.load.load_book import LoadBook
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.moves import EvictionPlan, Objective, RebalancingConfig, workload_of
from plimsoll.planning.planners import ask_again, make_plan
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.rebalancing.runs.load_conditions import by_load_conditions
from plimsoll.testing.builders import a_node
from plimsoll_optimal.load_terms import LoadTerms
from plimsoll_optimal.milp import CLOSE, solve
from plimsoll_optimal.problem import PlacementProblem, PodGroupCount, value_of

LOW: tuple[str, dict[str, Any]] = (
    "LowNodeUtilization",
    {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}, **MEASURED},
)


def by_load(objective: str = "FewestViolations", price: float = 1.0, **spec: Any) -> RebalancingConfig:
    optimizer = {"objective": objective, "movePrice": price, "timeLimitSeconds": 600}
    return a_policy(LOW, planner="Optimal", optimizer=optimizer, **spec)


def by_requests() -> Profile:
    """kube-scheduler's default profile."""
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return build_profile(ProfileConfig(PLACE), Registry(IN_TREE), defaults)


def moved(made: EvictionPlan) -> dict[str, str]:
    return {move.pod.name: move.target for move in made.moves}


def planned(world: LoadWorld, policy: RebalancingConfig) -> EvictionPlan:
    """The plan, each of whose moves still stands when it is asked again."""
    made = make_plan(policy, world.cluster, AROUND)
    for move in made.moves[:1]:
        assert getattr(ask_again(move, policy, world.cluster, AROUND), "target", "") == move.target
    return made


@st.composite
def loaded_problems(draw: Callable[..., Any]) -> PlacementProblem:
    """One or two templates, two or three nodes, at most five pods; requests never stand in the way."""
    nodes, templates = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    places = st.tuples(st.integers(0, templates - 1), st.integers(0, nodes - 1))
    pods = draw(st.lists(places, min_size=1, max_size=5))
    stocks = [
        PodGroupCount(template, node, pods.count((template, node))) for template, node in sorted(set(pods))
    ]
    uses = np.asarray([[float(draw(st.integers(1, 30)))] * 4 for _ in range(templates)])
    leaving = np.asarray([uses[each.template] for each in stocks])
    used = np.asarray([[float(draw(st.integers(0, 40)))] * 4 for _ in range(nodes)])
    for stock, use in zip(stocks, leaving, strict=True):
        used[stock.node] += stock.count * use
    lines = np.asarray([[draw(st.sampled_from([50.0, 70.0, np.inf]))] * 4 for _ in range(nodes)])
    hot = np.asarray([[draw(st.sampled_from([60.0, np.inf])), np.inf] for _ in range(nodes)])
    counts = np.asarray([True, *(draw(st.booleans()) for _ in range(nodes - 1))])
    return PlacementProblem(
        requests=np.ones((templates, 1)),
        used=np.zeros((nodes, 1)),
        allocatable=np.full((nodes, 1), 100.0),
        most=np.asarray([[draw(st.sampled_from([0, 5, 5])) for _ in range(nodes)] for _ in range(templates)]),
        stocks=tuple(stocks),
        objective=draw(st.sampled_from([Objective.FEWEST_VIOLATIONS, Objective.SMALLEST_SPREAD])),
        move_price=draw(st.sampled_from([0.5, 7.0])),
        staying=np.zeros(nodes, dtype=np.bool_),
        loads=LoadTerms(uses, leaving, used, np.full((nodes, 4), 100.0), lines, hot, counts, (0,)),
    )


def keeps_lines(problem: PlacementProblem, leaving: Iterable[int], arriving: np.ndarray[Any, Any]) -> bool:
    assert problem.loads is not None
    loads = problem.loads
    after = loads.used + arriving.T @ loads.arriving
    for at, (stock, gone) in enumerate(zip(problem.stocks, leaving, strict=True)):
        after[stock.node] -= gone * loads.leaving[at]
    comes = arriving.sum(axis=0) > 0
    return not (after > np.maximum(loads.lines, loads.used) + 1e-6)[comes].any()


@given(problem=loaded_problems())
@settings(deadline=None)
def test_no_solution_is_better_and_lines_are_kept(problem: PlacementProblem) -> None:
    found = solve(problem, 60.0)
    assert keeps_lines(problem, found.leaving.tolist(), found.arriving)
    best = min(
        value_of(problem, np.asarray(leaving), arriving)
        for leaving, arriving in every_solution(problem)
        if keeps_lines(problem, leaving, arriving)
    )
    assert found.value <= best * (1 + CLOSE) + 1e-6
    assert found.value == pytest.approx(value_of(problem, found.leaving, found.arriving))


def test_spread_is_evened_out_by_use_and_not_by_requests() -> None:
    """n0 requests little and uses 50 %, n1 requests much and uses 10 %: a pod of 20 % evens that out."""
    asked = {"p0-0": 10, "p0-1": 10, "p1-0": 8_000}
    world = LoadWorld([[3_000, 2_000], [1_000]], asked)
    assert moved(planned(world, by_load("SmallestSpread"))) == {"p0-1": "n1"}
    even = LoadWorld([[1_500, 1_500], [3_000]], asked)
    assert moved(planned(even, by_load("SmallestSpread"))) == {}


def test_one_large_pod_moves_instead_of_many_small_ones() -> None:
    """72 % of 60: one pod of 20 or 30 % does, where the least important ones first would be seven of 2 %."""
    world = LoadWorld([[*[200] * 11, 3_000, 2_000], [500], [3_000]])
    (pod,) = moved(planned(world, by_load()))
    assert pod in {"p0-11", "p0-12"}


def test_what_strategies_want_is_the_reason() -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    (move,) = planned(world, by_load()).moves
    assert (move.strategy, move.is_directed) == ("LowNodeUtilization", True)
    assert move.reason == "its node is over-used: cpu 70.0% (target 60.0%)"


def test_targets_keep_the_distance_from_the_line() -> None:
    """54 % are left with one pod of 20 %, so 55 - 54 % is no room for any; and n1 would be the mean."""
    world = LoadWorld([[5_000, 2_000], [4_000]])
    for objective in ("FewestViolations", "SmallestSpread"):
        made = make_plan(by_load(objective, 0.0), world.cluster, AROUND)
        assert moved(made) == {}


def test_memory_and_peaks_count_at_targets() -> None:
    """A node that reaches 95 % at times is no target, even though no threshold is about memory."""
    world = LoadWorld([[5_000, 2_000], [500]])
    policy = by_load()
    assert moved(planned(world, policy)) != {}
    small = LoadWorld([[5_000, 2_000], [500]])
    small.cluster.set_node(a_node("n1", cpu="10", memory="2Gi", pods=110))
    small.settle()
    assert moved(make_plan(policy, small.cluster, AROUND)) == {}


@pytest.mark.parametrize("silent", [frozenset({"n0"}), frozenset({"n1"}), frozenset({"p0-0", "p0-1"})])
def test_only_what_is_measured_moves_and_only_there(silent: frozenset[str]) -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    world.read(400.0, silent)
    for _ in range(3):
        world.read(without=silent)
    for objective in ("FewestViolations", "SmallestSpread"):
        assert moved(make_plan(by_load(objective), world.cluster, AROUND)) == {}


def test_a_node_must_be_over_used_often_enough() -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    policy = by_load(anomalyRounds=3)
    assert moved(make_plan(policy, world.cluster, AROUND)) == {}
    later = replace(AROUND, over_for={("LowNodeUtilization", "n0"): 2})
    assert len(make_plan(policy, world.cluster, later).moves) == 1


def test_namespaces_whose_pods_stay_keep_them() -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    name, args = LOW
    spared = (name, args | {"evictableNamespaces": {"exclude": ["default"]}})
    assert moved(make_plan(a_policy(spared, planner="Optimal"), world.cluster, AROUND)) == {}


BOTH = pytest.mark.parametrize("objective", ["FewestViolations", "SmallestSpread"])


@BOTH
def test_a_spot_that_heals_itself_is_left_alone(objective: str) -> None:
    """Its smoothed load is above the line yet, its recent readings are not."""
    world = LoadWorld([[5_000, 2_000], [500]])
    assert moved(make_plan(by_load(objective), world.cluster, AROUND)) != {}
    world.uses |= {"p0-0": 3_000, "p0-1": 1_000}
    for _ in range(3):
        world.read(60.0)
    assert world.cluster.index(LoadBook).load_on(0)[0] > 6 * 10**9
    assert moved(make_plan(by_load(objective), world.cluster, AROUND)) == {}


@BOTH
@pytest.mark.parametrize("node", ["n0", "n1"])
def test_nodes_rest_until_they_were_read_twice_since_a_move(objective: str, node: str) -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    around = replace(AROUND, now=datetime.fromtimestamp(world.now, UTC), touched={node: world.now - 200.0})
    assert moved(make_plan(by_load(objective), world.cluster, around)) != {}
    around = replace(around, touched={node: world.now - 100.0})
    assert moved(make_plan(by_load(objective), world.cluster, around)) == {}


@BOTH
def test_an_owner_gets_two_moves_an_hour(objective: str) -> None:
    """Whatever the plans were called that moved its pods."""
    world, now = LoadWorld([[5_000, 2_000], [500]]), AROUND.now.timestamp()
    owners = [workload_of(pod).key for pod in world.cluster.pods.values()]
    past = [
        PastMove("p", name, owner, "", "n9", MoveOutcome.SETTLED, now - 900.0, target="n8")
        for owner in owners
        for name in ("LowNodeUtilization", objective)
    ]
    around = replace(AROUND, memory=MoveHistory(past, now))
    assert moved(make_plan(by_load(objective), world.cluster, around)) == {}


@BOTH
def test_one_run_moves_a_fiftieth_of_the_load_or_one_pod(objective: str) -> None:
    """Of 14.5 cores, a fiftieth is less than two pods of 200."""
    world = LoadWorld([[200] * 35, [200] * 35, [500], [0]])
    assert len(make_plan(by_load(objective, 0.1), world.cluster, AROUND).moves) == 1


@BOTH
def test_pods_that_are_placed_without_looking_at_load_stay(objective: str) -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    policy = by_load(objective, profile=by_requests())
    assert moved(make_plan(policy, world.cluster, AROUND)) == {}
    assert "so they are not moved for that" in by_load_conditions(policy, world.cluster)["TwoYardsticks"]


def test_a_pod_that_was_moved_within_the_hour_stays() -> None:
    world = LoadWorld([[5_000, 2_000], [500]])
    moves = make_plan(by_load(), world.cluster, AROUND).moves
    around = replace(AROUND, moved=frozenset(pod.uid for pod in world.cluster.pods.values()))
    assert moves
    for objective in ("FewestViolations", "SmallestSpread"):
        assert moved(make_plan(by_load(objective), world.cluster, around)) == {}


def test_the_same_plan_each_time() -> None:
    """Time decides nothing: the same moves in the same order."""
    world = LoadWorld([[150 + 37 * (n * k % 11) for n in range(k + 3)] for k in range(1, 4)])
    policy = by_load("SmallestSpread")
    first = [(move.pod.key, move.target) for move in make_plan(policy, world.cluster, AROUND).moves]
    again = [(move.pod.key, move.target) for move in make_plan(policy, world.cluster, AROUND).moves]
    assert first
    assert first == again


def test_no_pod_of_an_owner_goes_where_another_was_moved_off() -> None:
    """Within the hour, however much that would even out."""
    world = LoadWorld([[3_000, 2_000], [1_000]])
    policy = by_load("SmallestSpread")
    (move,) = make_plan(policy, world.cluster, AROUND).moves
    now = AROUND.now.timestamp()
    past = PastMove("p", move.strategy, move.workload.key, "", move.target, MoveOutcome.SETTLED, now - 60.0)
    around = replace(AROUND, memory=MoveHistory([past], now))
    again = make_plan(policy, world.cluster, around).moves
    assert (move.pod.name, move.target) not in {(each.pod.name, each.target) for each in again}
