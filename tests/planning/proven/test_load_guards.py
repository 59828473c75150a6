"""Bounds of moves by load: evidence, rest, number and amount."""

from typing import Any

import pytest
from msgspec.structs import replace

from planning.builders import NOW, SURROUNDINGS, Named, a_profile
from planning.proven.test_load_lines import a_world, by_load, measured, planned, reasons, settle, uses
from plimsoll.framework.descheduling.measurements import NodeClasses
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.moves import EvictionPlan, workload_of
from plimsoll.records.over_used_rounds import OverUsedRounds
from plimsoll.testing.builders import a_cluster, a_node
from plimsoll.usage.load_keeper import LoadKeeper

HOT = ([2_000] * 4, [100])
STRATEGY = "LowNodeUtilization"
AT = NOW.timestamp()


def a_hot_world(start: float = AT - 300.0) -> tuple[Cluster, LoadKeeper]:
    """Two nodes, one over-used, measured until now."""
    cluster, keeper = a_world(*HOT)
    settle(keeper, uses(*HOT), start)
    return cluster, keeper


def an_owner(cluster: Cluster, name: str) -> str:
    pod = next(each for each in cluster.pods.values() if each.name == name)
    return workload_of(pod).key


def moved(owner: str, ago: float, source: str = "n9", target: str = "n8") -> PastMove:
    return PastMove(
        "policy",
        STRATEGY,
        owner,
        f"StatefulSet {owner}",
        source,
        MoveOutcome.SETTLED,
        AT - ago,
        target=target,
    )


def sentences(found: EvictionPlan) -> str:
    return " ".join(said for _, said in found.remarks)


def test_a_spot_that_heals_itself_is_left_alone() -> None:
    """The smoothed load is still above the target, the latest readings are not."""
    cluster, keeper = a_world(*HOT)
    now = settle(keeper, uses(*HOT))
    calm = uses([1_300] * 4, [100])
    for later in (60.0, 120.0, 180.0):
        measured(keeper, now + later, calm)

    assert keeper.book.load_on(0)[0] > 6_000_000_000

    found = planned(cluster)

    assert not found.moves
    assert reasons(found) == {"HealsItself"}
    others = planned(cluster, by_load(), Named()).refused
    assert "HealsItself" not in {each.refusal.reason for each in others if each.strategy == "Named"}


def test_a_spot_that_has_just_begun_to_fall_is_moved_off() -> None:
    cluster, keeper = a_world(*HOT)
    now = settle(keeper, uses(*HOT))
    for later in (60.0, 120.0, 180.0):
        measured(keeper, now + later, uses([1_900] * 4, [100]))

    assert planned(cluster).moves


def test_a_node_that_is_above_its_target_by_no_more_than_it_varies_is_left_alone() -> None:
    cluster, keeper = a_world(*HOT)
    for turn in range(20):
        used = 1_850 if turn % 2 else 1_350
        measured(keeper, 1_000.0 + 60 * turn, uses([used] * 4, [100]))

    found = planned(cluster)

    assert not found.moves
    assert reasons(found) == {"WithinSpread"}


def test_nodes_rest_until_they_were_measured_twice_since_a_move() -> None:
    """The source and the target alike; a node that no reading comes of is refused for that."""
    cluster, keeper = a_hot_world()
    for node in ("n0", "n1"):
        found = planned(cluster, around=replace(SURROUNDINGS, touched={node: AT - 30.0}))
        assert reasons(found) == {"Settling"}
        assert not found.moves
    for later in (10.0, 20.0):
        measured(keeper, AT + later, uses(*HOT))

    assert planned(cluster, around=replace(SURROUNDINGS, touched={"n0": AT - 30.0})).moves


def test_an_owner_gets_two_moves_an_hour() -> None:
    cluster, _ = a_hot_world()
    owners = [an_owner(cluster, f"p0-{each}") for each in range(4)]
    past = [moved(owner, ago) for owner in owners for ago in (3_000.0, 1_500.0)]

    found = planned(cluster, around=replace(SURROUNDINGS, memory=MoveHistory(past, AT)))

    assert not found.moves
    assert reasons(found) == {"OwnerLimit"}
    older = [replace(each, ended=each.ended - 1_000.0) for each in past]
    assert planned(cluster, around=replace(SURROUNDINGS, memory=MoveHistory(older, AT))).moves


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_move_that_left_its_source_or_target_over_used_was_fruitless(side: str) -> None:
    cluster, _ = a_hot_world()
    nodes: dict[str, Any] = {side: "n0"}
    past = [moved(an_owner(cluster, f"p0-{each}"), 550.0, **nodes) for each in range(4)]

    found = planned(cluster, around=replace(SURROUNDINGS, memory=MoveHistory(past, AT)))

    assert not found.moves
    assert reasons(found) == {"HeldBack"}
    later = replace(SURROUNDINGS, memory=MoveHistory(past, AT + 60.0))
    assert planned(cluster, around=later).moves


def test_a_second_fruitless_move_holds_its_owner_back_twice_as_long() -> None:
    past = [moved("u", 5_000.0, "n0"), moved("u", 700.0, "n0")]

    assert MoveHistory(past, AT).still_over("u", STRATEGY, frozenset({"n0"})) is not None
    assert MoveHistory(past, AT).still_over("u", STRATEGY, frozenset({"n1"})) is None
    assert MoveHistory(past, AT + 501.0).still_over("u", STRATEGY, frozenset({"n0"})) is None


def test_one_run_moves_a_fiftieth_of_the_load_or_one_pod() -> None:
    """Of 16.2 cores that are used, a fiftieth is a third of one."""
    nodes = ([200] * 40, [200] * 40, [50], [50])
    cluster, keeper = a_world(*nodes)
    settle(keeper, uses(*nodes))

    found = planned(cluster)

    assert len(found.moves) == 1
    assert "LoadLimit" in reasons(found)


def test_pods_that_are_placed_without_looking_at_load_are_not_moved_by_it() -> None:
    cluster, _ = a_hot_world()

    found = planned(cluster, profiles={"default-scheduler": a_profile()})

    assert not found.moves
    assert reasons(found) == {"TwoYardsticks"}


def test_a_full_cluster_needs_more_nodes() -> None:
    """All nodes together may use 90 %: 95 is the most that counts as a target, less the band."""
    for others, has_room in (([8_400], True), ([8_600], False)):
        nodes = ([2_500] * 4, others, others)
        cluster, keeper = a_world(*nodes)
        settle(keeper, uses(*nodes))

        found = planned(cluster, by_load(88, 98))

        assert bool(found.classes[0][1].overutilized)
        assert ("Saturated: no room" in sentences(found)) is not has_room
        if not has_room:
            assert not found.moves
            assert not found.refused


def test_a_pod_that_no_node_could_take_below_its_target_is_no_candidate() -> None:
    nodes = ([5_950, 900], [100])
    cluster, keeper = a_world(*nodes)
    settle(keeper, uses(*nodes))

    found = planned(cluster)

    assert {each.pod.name: each.refusal.reason for each in found.refused}["p0-0"] == "TooLarge"
    assert [move.pod.name for move in found.moves] == ["p0-1"]


def test_few_moves_suffice() -> None:
    """The smallest pod that alone brings the node below its target; without one, the largest first."""
    for pods, first in (([400, 2_700, 1_900, 1_500], "p0-3"), ([1_000] * 6 + [1_100] * 2, "p0-6")):
        nodes = (pods, [100], [100])
        cluster, keeper = a_world(*nodes)
        settle(keeper, uses(*nodes))

        assert planned(cluster).moves[0].pod.name == first


def test_a_round_without_a_new_reading_does_not_count() -> None:
    cluster, keeper = a_hot_world()
    rounds, strategies, key = OverUsedRounds(), [by_load()], (STRATEGY, "n0")
    found = [(STRATEGY, NodeClasses((), ("n0",)))]
    for _ in range(3):
        rounds.learn(found, strategies, cluster.fork())

    assert rounds.before(strategies, cluster)[key] == 0

    measured(keeper, AT + 15.0, uses(*HOT))
    assert rounds.before(strategies, cluster)[key] == 1
    rounds.learn(found, strategies, cluster.fork())
    measured(keeper, AT + 30.0, uses(*HOT))
    assert rounds.before(strategies, cluster)[key] == 2


def test_rounds_count_where_nothing_is_read() -> None:
    """As in a replay, where no reading could be the same as before."""
    cluster, rounds, strategies = a_cluster([a_node("n0")]), OverUsedRounds(), [by_load()]
    for _ in range(3):
        rounds.learn([(STRATEGY, NodeClasses((), ("n0",)))], strategies, cluster)

    assert rounds.before(strategies, cluster)[STRATEGY, "n0"] == 3


def test_rounds_of_strategies_by_requests_count_without_readings() -> None:
    cluster, _ = a_hot_world()
    rounds, key = OverUsedRounds(), (STRATEGY, "n0")
    for _ in range(3):
        rounds.learn([(STRATEGY, NodeClasses((), ("n0",)))], [], cluster)

    assert rounds.before([], cluster)[key] == 3
