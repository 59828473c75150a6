"""ConsolidateNodes weighs money against restarts, keeps room, and waits for nodes to be removed."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from planning.rounds import UNLIMITED, a_policy
from planning.test_rounds import AROUND, a_replica, refusals
from plimsoll.framework import Node
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.prices import PRICE
from plimsoll.planning.history import (
    FILLED_S,
    LEFT_BEHIND_S,
    REMOVED_WITHIN_S,
    MoveHistory,
    MoveOutcome,
    PastMove,
)
from plimsoll.planning.moves import EvictionPlan, PlanningContext
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.strategies.consolidate_nodes import ConsolidateNodesArgs
from plimsoll.testing.builders import a_cluster, a_node
from plimsoll.toolkit.scheduling.topology_levels import ZONE

NOW = AROUND.now


def a_machine(name: str, price: str = "", *, zone: str = "", age_s: float = 1e6, cpu: str = "10") -> Node:
    """A node of ten cores."""
    created = (NOW - timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {ZONE: zone} if zone else {}
    annotations = {PRICE: price} if price else {}
    return a_node(
        name,
        cpu=cpu,
        memory="64Gi",
        labels=labels,
        annotations=annotations,
        creationTimestamp=created,
    )


def pods_on(node: str, count: int, cpu: str) -> list[Pod]:
    return [a_replica(f"{node}-{n}", node, cpu=cpu, owner=f"ReplicaSet/{node}-{n}") for n in range(count)]


def emptied(cluster: Cluster, around: PlanningContext = AROUND, **args: Any) -> tuple[set[str], EvictionPlan]:
    """The nodes that a plan empties, and the plan."""
    policy = a_policy(("ConsolidateNodes", {"nodes": 9, **args}), limits=UNLIMITED, evictor={})
    made = plan(policy, cluster, around)
    return {move.source for move in made.moves}, made


def priced(many: str = "0.2 EUR", few: str = "0.1 EUR") -> Cluster:
    """A busy node; one with four small pods, and one with a single larger one."""
    return a_cluster(
        [a_machine("busy"), a_machine("many", many), a_machine("few", few)],
        [*pods_on("busy", 6, "1"), *pods_on("many", 4, "100m"), *pods_on("few", 1, "500m")],
    )


@pytest.mark.parametrize(
    ("least", "nodes"),
    [
        (None, {"many", "few"}),
        ("1.2 EUR/day", {"many", "few"}),  # 4.8 EUR a day for four restarts
        ("1.3 EUR/day", {"few"}),
        ("2.4 EUR/day", {"few"}),
        ("0.1 EUR/hour", {"few"}),
        ("72 EUR/month", {"few"}),
        ("2.5 EUR/day", set()),
        ("1 USD/day", set()),
    ],
)
def test_a_node_must_save_enough_for_each_restart(least: str | None, nodes: set[str]) -> None:
    args: dict[str, Any] = {} if least is None else {"minSavingPerRestart": least}

    found, _ = emptied(priced(), **args)

    assert found == nodes


def test_who_saves_most_for_a_restart_comes_first() -> None:
    """By use alone it would be the one with four pods."""
    assert emptied(priced(), nodes=1)[0] == {"many"}
    assert emptied(priced(), nodes=1, minSavingPerRestart="0.1 EUR/day")[0] == {"few"}


def test_moves_that_empty_a_node_have_its_price() -> None:
    """For the record, as the node is gone later; one that is drained on request saves nothing."""
    _, made = emptied(priced(many=""))
    ordered = plan(
        a_policy(("DrainNodes", {"nodes": ["few"]}), limits=UNLIMITED, evictor={}), priced(), AROUND
    )

    assert {(move.source, move.price) for move in made.moves} == {("many", ""), ("few", "0.1 EUR")}
    assert {(move.source, move.price) for move in ordered.moves} == {("few", "")}


@pytest.mark.parametrize(
    ("many", "why"),
    [
        ("", "its price is not known, and minSavingPerRestart is 2 EUR/day"),
        ("0.2 USD", "its price is in USD, and minSavingPerRestart is in EUR"),
        ("0.2 EUR", "it saves 0.2 EUR an hour, and 4 restarts must save 0.3333 EUR by minSavingPerRestart"),
    ],
)
def test_why_a_node_is_too_dear_is_said(many: str, why: str) -> None:
    _, made = emptied(priced(many), minSavingPerRestart="2 EUR/day")

    assert ("ConsolidateNodes", f"node many is not emptied: {why}") in made.remarks


@pytest.mark.parametrize(
    ("age_s", "args", "nodes"),
    [
        (599, {"minSavingPerRestart": "1 EUR/day"}, set()),
        (601, {"minSavingPerRestart": "1 EUR/day"}, {"idle"}),
        (1, {"youngSeconds": 0, "minSavingPerRestart": "1 EUR/day"}, {"idle"}),
        (1, {}, {"idle"}),
        (599, {"youngSeconds": 600}, set()),
    ],
)
def test_a_young_node_is_not_emptied(age_s: float, args: dict[str, Any], nodes: set[str]) -> None:
    cluster = a_cluster(
        [a_machine("busy"), a_machine("idle", "1 EUR", age_s=age_s)],
        [*pods_on("busy", 6, "1"), *pods_on("idle", 1, "1")],
    )

    found, made = emptied(cluster, **args)

    assert found == nodes
    why = "node idle is not emptied: it is 599 s old, less than youngSeconds 600"
    assert (("ConsolidateNodes", why) in made.remarks) == (not nodes)


@pytest.mark.parametrize(
    ("headroom", "nodes"),
    [
        ([{"pods": 3, "requests": {"cpu": "1"}}], {"idle"}),  # 3.5 cores are left on the busy node
        ([{"pods": 4, "requests": {"cpu": "1"}}], set()),
        ([{"pods": 1, "requests": {"cpu": "3500m", "memory": "1Gi"}}], {"idle"}),
        ([{"pods": 1, "requests": {"cpu": "3501m"}}], set()),
        ([{"pods": 3, "requests": {"cpu": "1"}}, {"pods": 1, "requests": {"cpu": "4"}}], set()),
        # What fits nowhere now does not keep nodes for ever.
        ([{"pods": 1, "requests": {"cpu": "11"}}], {"idle"}),
        ([{"pods": 1, "requests": {"example.com/gpu": 1}}], {"idle"}),
        ([{"pods": 3, "requests": {"cpu": "1"}, "perZone": True}], set()),  # zone b has none left
    ],
)
def test_headroom_is_kept_for_pods_of_a_size(headroom: list[dict[str, Any]], nodes: set[str]) -> None:
    cluster = a_cluster(
        [a_machine("busy", zone="a"), a_machine("idle", zone="b")],
        [*pods_on("busy", 6, "1"), *pods_on("idle", 1, "500m")],
    )

    found, made = emptied(cluster, headroom=headroom)

    assert found == nodes
    assert bool(nodes) == (("idle-0", "NoHeadroom") not in refusals(made))


@pytest.mark.parametrize(
    "closed", [{"taints": ["plimsoll.dev/consolidating=:NoSchedule"]}, {"unschedulable": True}]
)
def test_room_on_a_closed_node_does_not_count(closed: dict[str, Any]) -> None:
    cluster = a_cluster(
        [a_machine("busy"), a_machine("idle"), a_node("shut", cpu="10", memory="64Gi", **closed)],
        [*pods_on("busy", 6, "1"), *pods_on("idle", 1, "500m")],
    )

    assert emptied(cluster, headroom=[{"pods": 4, "requests": {"cpu": "1"}}])[0] == set()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            {"minSavingPerRestart": "1 € a day"},
            'no saving; write an amount, a currency and a unit, such as "1 EUR/day"',
        ),
        ({"headroom": [{"pods": 0, "requests": {"cpu": "1"}}]}, "greater than or equal to 1"),
        ({"headroom": [{"pods": 1, "requests": {}}]}, "at least 1 item"),
        ({"headroom": [{"pods": 1, "requests": {"cpu": "x"}}]}, "requests.cpu"),
        ({"headroom": [{"pods": 1, "requests": {"cpu": "0"}}]}, "requests.cpu: 0 is not more than 0"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(args: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ConsolidateNodesArgs.model_validate(args)

    assert said in str(refused.value)


def test_no_pod_is_sent_to_a_node_that_is_to_be_drained() -> None:
    """The fullest is one: the pods go to the next, rather than stay."""
    cluster = a_cluster(
        [a_machine("idle"), a_machine("half"), a_machine("full")],
        [*pods_on("idle", 1, "1"), *pods_on("half", 6, "1"), *pods_on("full", 7, "1")],
    )
    policy = a_policy(("ConsolidateNodes", {}), limits=UNLIMITED, evictor={})

    targets = [
        [move.target for move in plan(replace(policy, leaving=leaving), cluster, AROUND).moves]
        for leaving in (frozenset[str](), frozenset(("full",)))
    ]

    assert targets == [["full"], ["half"]]


# -- nodes that stay -------------------------------------------------------------------------------------


def past(node: str, ago_s: float, fate: MoveOutcome = MoveOutcome.SETTLED, name: str = "a") -> PastMove:
    moment = NOW.timestamp() - ago_s
    return PastMove("p", "ConsolidateNodes", f"default/{name}", f"ReplicaSet {name}", node, fate, moment)


@pytest.mark.parametrize(
    ("moves", "stays"),
    [
        ([], False),
        ([past("gone", 2000)], False),
        ([past("busy", REMOVED_WITHIN_S - 1)], False),  # an autoscaler still has time
        ([past("busy", REMOVED_WITHIN_S)], True),
        ([past("busy", LEFT_BEHIND_S - 1)], True),
        ([past("busy", LEFT_BEHIND_S)], False),
        ([past("busy", 2000), past("busy", 2100, MoveOutcome.RETURNED, "b")], False),  # opened, not emptied
        ([past("busy", 2000), past("busy", 9000, MoveOutcome.RETURNED, "b")], True),
        ([past("new", 2000)], False),  # a new machine of that name
        ([replace(past("busy", 2000), strategy="DrainNodes")], False),
    ],
)
def test_consolidation_stops_where_an_emptied_node_stays(moves: list[PastMove], *, stays: bool) -> None:
    """For a day, and the policy's status says of which node."""
    cluster = a_cluster(
        [a_machine("busy"), a_machine("idle"), a_machine("new", age_s=1000)],
        [*pods_on("busy", 6, "1"), *pods_on("idle", 1, "1")],
    )
    around = replace(AROUND, memory=MoveHistory(sorted(moves, key=lambda each: each.ended), NOW.timestamp()))

    found, made = emptied(cluster, around)

    assert found == (set() if stays else {"idle"})
    said = [text for _, text in made.remarks if "is still there" in text]
    assert len(said) == stays


# -- nodes that were filled ------------------------------------------------------------------------------


def to(target: str, ago_s: float, fate: MoveOutcome = MoveOutcome.SETTLED) -> PastMove:
    """A move from a machine that is gone."""
    return replace(past("gone", ago_s, fate), target=target)


@pytest.mark.parametrize(
    ("moves", "stays"),
    [
        ([to("idle", 0)], True),
        ([to("idle", FILLED_S - 1)], True),
        ([to("idle", FILLED_S)], False),
        ([to("idle", FILLED_S), to("idle", 9000)], True),
        ([to("busy", 9000)], False),
        ([to("idle", 9000, MoveOutcome.RETURNED)], False),
        ([to("idle", 9000, MoveOutcome.STRANDED)], False),
        ([to("young", 9000)], False),  # a new machine of that name
        ([replace(to("idle", 9000), strategy="RemoveDuplicates")], False),
    ],
)
def test_a_node_to_which_pods_were_moved_is_left_alone_for_a_day(
    moves: list[PastMove], *, stays: bool
) -> None:
    """So no node is filled and emptied again, and no pod restarts twice for it; it is still a target."""
    cluster = a_cluster(
        [a_machine("busy"), a_machine("idle"), a_machine("young", age_s=1000)],
        [*pods_on("busy", 6, "1"), *pods_on("idle", 1, "1"), *pods_on("young", 1, "500m")],
    )
    around = replace(AROUND, memory=MoveHistory(moves, NOW.timestamp()))

    found, made = emptied(cluster, around)

    assert found == ({"young"} if stays else {"idle", "young"})
    said = [text for _, text in made.remarks if "less than filledSeconds 86400" in text]
    assert len(said) == stays
    within_an_hour = moves[0].ended > NOW.timestamp() - 3600
    asked, _ = emptied(cluster, around, filledSeconds=3600)
    assert asked == ({"young"} if within_an_hour else {"idle", "young"})


@pytest.mark.parametrize(("ago_s", "stays"), [(3_599, True), (3_600, False)])
def test_where_money_is_weighed_a_filled_node_is_left_alone_for_an_hour(ago_s: float, *, stays: bool) -> None:
    """Then that says which restarts are worth it."""
    nodes = [a_machine("busy", "0.1 EUR"), a_machine("idle", "1 EUR")]
    cluster = a_cluster(nodes, [*pods_on("busy", 6, "1"), *pods_on("idle", 1, "1")])
    around = replace(AROUND, memory=MoveHistory([to("idle", ago_s)], NOW.timestamp()))

    found, _ = emptied(cluster, around, minSavingPerRestart="1 EUR/day")

    assert found == (set() if stays else {"idle"})


# -- laws ------------------------------------------------------------------------------------------------


def test_whatever_the_cluster_each_emptied_node_is_worth_it_and_room_is_left() -> None:
    """And who asks for more saving has no more restarts."""
    tried = 0
    for seed in range(12):
        random = Random(seed)
        names = [f"n{at}" for at in range(8)]
        prices = {name: round(random.uniform(0.05, 0.6), 2) for name in names}
        nodes = [a_machine(name, f"{price} EUR") for name, price in prices.items()]
        pods = [
            pod
            for name in names
            for pod in pods_on(name, random.randint(1, 6), random.choice(("300m", "800m", "1500m")))
        ]
        cluster, before = a_cluster(nodes, pods), None
        for least in (0.5, 2.0, 5.0):
            asked = [{"pods": 5, "requests": {"cpu": "1"}}]
            found, made = emptied(cluster, minSavingPerRestart=f"{least} EUR/day", headroom=asked)
            restarts = [move.source for move in made.moves]
            for name in found:
                assert 24 * prices[name] >= least * restarts.count(name) - 1e-6
            free = {
                name: 10_000 - cluster.requested[cluster.rows[name], cluster.axis_of("cpu")] for name in names
            }
            for move in made.moves:
                free[move.target] -= move.pod.requests["cpu"]
            assert not found or sum(free[name] // 1000 for name in names if name not in found) >= 5
            assert before is None or len(restarts) <= before
            before, tried = len(restarts), tried + len(found)
    assert tried > 20
