"""Targets by what nodes use: of moves by load, and of moves that need not be made."""

from typing import Any

import pytest
from msgspec.structs import replace

from planning.load_worlds import ALL, AROUND, MEASURED, LoadWorld, a_policy
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import make_plan
from plimsoll.testing.builders import a_node

LOW: tuple[str, dict[str, Any]] = (
    "LowNodeUtilization",
    {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}, **MEASURED},
)
HIGH: tuple[str, dict[str, Any]] = ("HighNodeUtilization", {"thresholds": {"cpu": 20}, **MEASURED})


def targets(made: EvictionPlan) -> dict[str, str]:
    return {move.pod.name: move.target for move in made.moves}


def reasons(made: EvictionPlan) -> set[str]:
    return {each.refusal.reason for each in made.refused}


def requesting(**amounts: int) -> dict[str, int]:
    return {name.replace("_", "-"): amount for name, amount in amounts.items()}


@pytest.mark.parametrize("planner", Planner)
@pytest.mark.parametrize(("strategy", "by_load"), [(LOW, True), (("ConsolidateNodes", {}), False)])
def test_a_plan_by_load_says_what_nodes_use(planner: Planner, strategy: Any, by_load: bool) -> None:
    """Upstream does not plan by the load book, and says nothing by it."""
    world = LoadWorld([[8_500], [100]])
    made = make_plan(replace(a_policy(strategy), planner=planner), world.cluster, AROUND)

    says = by_load and planner is not Planner.UPSTREAM
    assert (made.load is not None, made.hot) == (says, ("n0",) if says else ())


def test_nodes_are_consolidated_onto_cool_ones() -> None:
    """By requests n1 is the fullest in use, but it uses 85 %: 10 % must stay free with the pod's 8 %."""
    world = LoadWorld([[800], [8_500], [100]], requesting(p0_0=100, p1_0=3_000, p2_0=1_000))
    made = make_plan(a_policy(("ConsolidateNodes", {})), world.cluster, AROUND)
    assert targets(made) == {"p0-0": "n2"}


def test_consolidation_keeps_the_distance_from_the_policys_line() -> None:
    """n1 would use 58 % of 60; 5 points must lie between, so the pod goes to n2, which is emptier."""
    world = LoadWorld([[800], [5_000], [100]], requesting(p0_0=100, p1_0=3_000, p2_0=1_000))
    alone = make_plan(a_policy(("ConsolidateNodes", {})), world.cluster, AROUND)
    assert targets(alone) == {"p0-0": "n1"}
    made = make_plan(a_policy(LOW, ("ConsolidateNodes", {})), world.cluster, AROUND)
    assert targets(made) == {"p0-0": "n2"}


def test_without_measurements_requests_decide_alone() -> None:
    world = LoadWorld([[800], [8_500], [100]], requesting(p0_0=100, p1_0=3_000, p2_0=1_000))
    world.keeper.observe(world.now + 10_000.0)
    made = make_plan(a_policy(("ConsolidateNodes", {})), world.cluster, AROUND)
    assert targets(made) == {"p0-0": "n1"}


def test_high_node_utilization_by_use_empties_what_is_used_little() -> None:
    """n0 requests most and uses 5 %; by requests it is no source. n1 is the fullest by use."""
    world = LoadWorld([[500], [3_000, 2_000], [3_000]], requesting(p0_0=6_000, p1_0=10, p1_1=10, p2_0=10))
    assert targets(make_plan(a_policy(HIGH), world.cluster, AROUND)) == {"p0-0": "n1"}


@pytest.mark.parametrize(("use", "moves"), [(2_400, {}), (2_600, {"p0-0": "n1"})])
def test_nodes_within_the_band_neither_give_nor_get(use: int, moves: dict[str, str]) -> None:
    """The threshold is 20 %: a node that uses 24 % is not far enough above it to be filled."""
    world = LoadWorld([[500], [use]])
    assert targets(make_plan(a_policy(HIGH), world.cluster, AROUND)) == moves


def test_high_node_utilization_by_use_leaves_out_what_is_not_measured() -> None:
    world = LoadWorld([[500], [3_000], [4_000]])
    world.read(400.0, frozenset({"n2"}))
    world.read(without=frozenset({"n2"}))
    assert targets(make_plan(a_policy(HIGH), world.cluster, AROUND)) == {"p0-0": "n1"}
    world.read(400.0, frozenset({"n0", "n2"}))
    world.read(without=frozenset({"n0", "n2"}))
    assert targets(make_plan(a_policy(HIGH), world.cluster, AROUND)) == {}


def test_high_node_utilization_by_use_fills_no_hot_node() -> None:
    """The fullest would be above its peak; with LowNodeUtilization 60 % is the line."""
    world = LoadWorld([[500], [9_300], [5_300], [4_000]])
    assert targets(make_plan(a_policy(HIGH), world.cluster, AROUND)) == {"p0-0": "n2"}
    assert targets(make_plan(a_policy(HIGH, LOW), world.cluster, AROUND))["p0-0"] == "n3"


def test_following_scores_by_load_needs_measurements() -> None:
    """n1 counts with the median while it is not measured, which is better than n0: that is a guess."""
    asked = requesting(p0_0=10, p0_1=10, p1_0=10, p2_0=9_995)
    world = LoadWorld([[8_000, 100], [100], [5_000]], asked)
    policy = a_policy(("FollowScore", {"marginPercent": 1}))
    assert targets(make_plan(policy, world.cluster, AROUND)) == {"p0-1": "n1"}
    world.read(400.0, frozenset({"n1"}))
    world.read(without=frozenset({"n1"}))
    made = make_plan(policy, world.cluster, AROUND)
    assert (targets(made), reasons(made)) == ({}, {"Stale"})


def test_more_hot_nodes_than_are_tried_hide_no_cool_one() -> None:
    """Twenty nodes score better and have no memory left at times; the last one has."""
    world = LoadWorld([[5_000, 2_000], *([10] for _ in range(20)), [2_500]])
    for number in range(1, 21):
        world.cluster.set_node(a_node(f"n{number}", cpu="10", memory="2Gi", pods=110))
    world.settle()
    made = make_plan(a_policy(LOW), world.cluster, AROUND)
    assert set(targets(made).values()) == {"n21"}


#: Large pods of the hot n0 fit on n1 if two of its small ones go to n2, which uses too much for a large one.
FULL_BY_REQUESTS = [[4_500, 4_500], [200] * 5, [4_500]]
ASKED = {"p0-0": 4_000, "p0-1": 4_000, **{f"p1-{each}": 2_000 for each in range(5)}, "p2-0": 5_000}


def test_small_pods_make_room_on_a_cool_node_for_a_large_one() -> None:
    """By requests the cool node is full: no single move relieves the hot one."""
    world = LoadWorld(FULL_BY_REQUESTS, ASKED)
    made = make_plan(a_policy(LOW), world.cluster, AROUND)
    assert targets(made) == {"p1-0": "n2", "p1-1": "n2", "p0-0": "n1"}
    assert [move.part for move in made.moves] == [(1, 3), (2, 3), (3, 3)]
    world.carry_out(made)
    world.settle()
    assert [world.share(node) for node in ("n0", "n1", "n2")] == [45.0, 51.0, 49.0]
    assert not make_plan(a_policy(LOW), world.cluster, AROUND).moves


@pytest.mark.parametrize(
    ("uses", "asked", "spec"),
    [
        pytest.param([*FULL_BY_REQUESTS[:2], [5_400]], ASKED, {}, id="no-cool-place-for-the-small-ones"),
        pytest.param([[5_400, 5_400], [200] * 5, [4_500]], ASKED, {}, id="would-be-hot-itself"),
        pytest.param(FULL_BY_REQUESTS, ASKED | {"p2-0": 7_000}, {}, id="no-room-for-the-small-ones"),
        pytest.param(FULL_BY_REQUESTS, ASKED, {"anomalyRounds": 2}, id="not-often-enough"),
        pytest.param(FULL_BY_REQUESTS, ASKED, {"limits": ALL | {"total": 2}}, id="not-all-in-one-run"),
    ],
)
def test_pods_are_exchanged_together_or_not_at_all(
    uses: list[list[int]], asked: dict[str, int], spec: dict[str, Any]
) -> None:
    world = LoadWorld(uses, asked)
    assert targets(make_plan(a_policy(LOW, **spec), world.cluster, AROUND)) == {}


@pytest.mark.parametrize(("small", "moves"), [(440, 3), (450, 0), (460, 0)])
def test_pods_that_make_room_use_less_together_than_the_one_that_comes(small: int, moves: int) -> None:
    """Two of them leave for a pod that uses 900; for the other pod of the hot node n1 would be hot itself."""
    world = LoadWorld([[900, 5_600], [small] * 5, [4_500]], {**ASKED, "p0-1": 6_000})
    assert len(make_plan(a_policy(LOW), world.cluster, AROUND).moves) == moves


def test_an_exchange_that_is_refused_leaves_the_share_of_the_run_to_others() -> None:
    """Room for a pod of n0 needs two small ones to go, and one has no place; n3 needs only one to go."""
    uses = [[4_500, 4_500], [200] * 5, [4_500], [4_500, 100, 2_800]]
    asked = ASKED | {"p2-0": 7_000, "p3-0": 4_000, "p3-1": 500, "p3-2": 2_000}
    made = make_plan(a_policy(LOW), LoadWorld(uses, asked).cluster, AROUND)
    assert targets(made) == {"p1-0": "n2", "p3-2": "n1"}


def with_priority(world: LoadWorld, priorities: dict[str, int]) -> LoadWorld:
    """The same pods, some of them more important."""
    for pod, row in [*world.cluster.placed()]:
        if pod.name in priorities:
            spec = replace(pod.pod.spec, priority=priorities[pod.name])
            world.cluster.displace(pod.uid)
            info = world.cluster.templates.info(replace(pod.pod, spec=spec))
            world.cluster.place(info, world.cluster.nodes[row].name)
    world.settle()
    return world


SMALL = [f"p1-{each}" for each in range(5)]


@pytest.mark.parametrize(
    ("priorities", "makes_room"),
    [
        ({}, True),
        (dict.fromkeys(SMALL, 1), False),
        ({**dict.fromkeys(SMALL, 1), "p0-0": 1, "p0-1": 1}, True),
        (dict.fromkeys(SMALL[1:], 1), False),
    ],
)
def test_no_pod_makes_room_for_a_less_important_one(priorities: dict[str, int], makes_room: bool) -> None:
    """Two small pods have to leave."""
    world = with_priority(LoadWorld(FULL_BY_REQUESTS, ASKED), priorities)
    made = make_plan(a_policy(LOW), world.cluster, AROUND)
    assert ("p0-0" in targets(made) or "p0-1" in targets(made)) is makes_room
    assert bool(targets(made)) is makes_room


@pytest.mark.parametrize("excluded", ["default", "another"])
def test_pods_of_excluded_namespaces_neither_leave_nor_make_room(excluded: str) -> None:
    strategy = (LOW[0], {**LOW[1], "evictableNamespaces": {"exclude": [excluded]}})
    made = make_plan(a_policy(strategy), LoadWorld(FULL_BY_REQUESTS, ASKED).cluster, AROUND)
    assert bool(targets(made)) is (excluded != "default")


def test_a_node_is_relieved_by_exchanges_until_it_is_below_its_target() -> None:
    """Each of two cool nodes could take a large pod, and one is enough; what has left counts immediately."""
    world = LoadWorld([[4_500, 4_500], [200] * 5, [200] * 5, [4_500]], REQUESTS_WITH_TWO)
    made = make_plan(a_policy(LOW), world.cluster, AROUND)
    large = [name for name in targets(made) if name.startswith("p0-")]
    assert len(large) == 1
    world.carry_out(made)
    world.settle()
    assert all(world.share(node.name) <= 60.0 for node in world.cluster.nodes)
    assert not make_plan(a_policy(LOW), world.cluster, AROUND).moves


REQUESTS_WITH_TWO = {
    "p0-0": 4_000,
    "p0-1": 4_000,
    **{f"p{node}-{each}": 2_000 for node in (1, 2) for each in range(5)},
    "p3-0": 5_000,
}
