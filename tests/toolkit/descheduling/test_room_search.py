"""The search for room equals plain sums over all nodes and all sets of pods."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.model.columns.cluster import PODS
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.best_fit import SCARCE, BestFit
from plimsoll.toolkit.descheduling.eviction_order import eviction_cost
from plimsoll.toolkit.descheduling.room_search import moves_off, promising
from strategies.builders import a_context, an_evictor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.framework import PodInfo
    from plimsoll.framework.descheduling.context import StrategyContext
    from plimsoll.model.columns.columns import IntArray

GPU = "example.com/gpu"
HIGHEST = 5


def a_world(seed: int) -> tuple[StrategyContext, Random]:
    """Nodes of a few sizes, some with GPUs, with pods of round amounts, so that many sums are equal."""
    random = Random(seed)
    names = random.sample("abcdef", random.randint(3, 6))
    nodes = [
        a_node(
            name,
            cpu=str(random.choice([6, 6, 8])),
            memory="8Gi",
            allocatable={GPU: 2} if random.random() < 0.4 else {},
        )
        for name in names
    ]
    pods = [
        a_pod(
            f"p{number}",
            node=random.choice(names[:3]),
            cpu=random.choice([None, "1", "1500m", "2"]),
            memory=random.choice([None, "1Gi", "1536Mi", "2Gi"]),
            priority=random.choice([0, 0, 4, HIGHEST, HIGHEST + 1]),
            owner=f"ReplicaSet/r{number}",
            annotations={"plimsoll.dev/never-evict": "true"} if random.random() < 0.1 else {},
        )
        for number in range(random.randint(4, 12))
    ]
    return a_context(nodes, pods, evictor=an_evictor(minReplicas=0), exact=False), random


def amounts(pods: Iterable[PodInfo], context: StrategyContext) -> IntArray:
    rows = [context.snapshot.requests_row(each.requests) for each in pods]
    return np.sum(rows, axis=0) if rows else np.zeros_like(context.snapshot.requested[0])


def a_deficit(context: StrategyContext, random: Random) -> IntArray:
    """Some of cpu, of memory, of both, or nothing."""
    wanted = a_pod(
        "wanted", cpu=random.choice([None, "1", "2", "3"]), memory=random.choice([None, "1Gi", "3Gi"])
    )
    row = context.snapshot.requests_row(context.cluster.templates.info(wanted).requests)
    row[PODS] = 0
    return row


def test_rows_are_promising_where_enough_may_leave_the_fewest_first() -> None:
    found_any = 0
    for seed in range(90):
        context, random = a_world(seed)
        snapshot, nodes = context.snapshot, context.cluster.nodes
        rows = np.array(random.sample(range(len(nodes)), random.randint(1, len(nodes))), dtype=np.intp)
        deficits = np.array([a_deficit(context, random) for _ in rows])
        most = random.randint(1, 3)
        largest = np.maximum(snapshot.allocatable.max(axis=0), 1)
        ranked = []
        for row, deficit in zip(rows.tolist(), deficits, strict=True):
            movable = [each for each in snapshot.pods(row) if each.priority <= HIGHEST]
            if not deficit.any() or not (amounts(movable, context) >= deficit).all():
                continue
            axes = np.flatnonzero(deficit)
            worth = sorted(
                (
                    sum(min(1.0, amounts([each], context)[axis] / deficit[axis]) for axis in axes)
                    for each in movable
                ),
                reverse=True,
            )
            count = next(n for n in range(1, len(worth) + 1) if sum(worth[:n]) >= len(axes) - 1e-9)
            if count <= most:
                ranked.append((count, float((deficit / largest).sum()), nodes[row].name, row, deficit))

        some, lacking = promising(rows, deficits, snapshot, most, HIGHEST)

        assert some.tolist() == [row for *_, row, _ in sorted(ranked, key=lambda each: each[:3])]
        assert [each.tolist() for each in lacking] == [
            each.tolist() for *_, each in sorted(ranked, key=lambda each: each[:3])
        ]
        found_any += len(some) > 1
    assert found_any > 10


def best_fits(pod: PodInfo, source: int, free: IntArray, context: StrategyContext) -> list[str]:
    """The names of the nodes that the pod leaves with the least room, in order."""
    snapshot, nodes = context.snapshot, context.cluster.nodes
    wanted = amounts([pod], context)
    largest = np.maximum(snapshot.allocatable.max(axis=0), 1)
    names = context.cluster.resources
    left = {
        nodes[row].name: sum(
            (SCARCE if name == GPU else 1.0) * (free[row, axis] - wanted[axis]) / largest[axis]
            for axis, name in enumerate(names)
            if axis != PODS
        )
        for row in range(len(nodes))
        if row != source and all(free[row, axis] >= wanted[axis] for axis in np.flatnonzero(wanted))
    }
    least = min(left.values(), default=0.0)
    return sorted(name for name, room in left.items() if room <= least + 1e-9)


def test_moves_cover_what_is_lacking_and_none_is_superfluous() -> None:
    """Each goes to its best fit, those before it counted; moves that are not made leave no trace."""
    made = 0
    for seed in range(120):
        context, random = a_world(seed)
        snapshot, nodes = context.snapshot, context.cluster.nodes
        row = random.randrange(len(nodes))
        deficit, most = a_deficit(context, random), random.randint(1, 3)
        pods = list(snapshot.pods(row))
        stays = random.choice(pods).uid if pods and random.random() < 0.3 else ""
        fit = BestFit(context)
        before = fit.free.copy()

        moves = moves_off(row, deficit, context, fit, most=most, highest=HIGHEST, reason="why", stays=stays)

        assert (fit.free == before).all()
        again = moves_off(row, deficit, context, fit, most=most, highest=HIGHEST, reason="why", stays=stays)
        assert again == moves
        movable = [
            each for each in pods if each.priority <= HIGHEST and each.uid != stays and context.may_go(each)
        ]
        some = [each.pod for each in moves]
        if moves:
            made += 1
            assert {each.uid for each in some} <= {each.uid for each in movable}
            assert len({each.uid for each in some}) == len(some) <= most
            assert (amounts(some, context) >= deficit).all()
            for each in some:
                rest = [other for other in some if other is not each]
                assert not (amounts(rest, context) >= deficit).all(), "one may stay"
            for move in moves:
                assert (move.node, move.reason) == (nodes[row].name, "why")
                assert move.target != nodes[row].name
            arriving = {name: [each.pod for each in moves if each.target == name] for name in context.nodes}
            for name, here in arriving.items():
                free = before[context.cluster.rows[name]]
                needed = amounts(here, context)
                assert all(free[axis] >= needed[axis] for axis in np.flatnonzero(needed))
            if len(moves) == 1:
                assert moves[0].target == best_fits(moves[0].pod, row, before, context)[0]
        elif deficit.any() and len(movable) <= 1:
            able = [each for each in movable if best_fits(each, row, before, context)]
            assert not any((amounts(few, context) >= deficit).all() for few in combinations(able, 1)), (
                "one pod makes room"
            )
    assert made > 20


def test_of_equal_pods_the_cheapest_goes() -> None:
    """Of a lower priority, then by what its eviction costs; whichever is listed first."""
    for cheap in range(3):
        pods = [
            a_pod(f"p{n}", node="a", cpu="1", priority=3 if n != cheap else 1, owner=f"ReplicaSet/r{n}")
            for n in range(3)
        ]
        context = a_context(
            [a_node("a", cpu="3"), a_node("b", cpu="4")], pods, evictor=an_evictor(minReplicas=0), exact=False
        )
        deficit = amounts([next(iter(context.cluster.pods.values()))], context)
        deficit[PODS] = 0

        (move,) = moves_off(
            context.cluster.rows["a"],
            deficit,
            context,
            BestFit(context),
            most=2,
            highest=HIGHEST,
            reason="why",
        )

        assert move.pod.name == f"p{cheap}"
        costs = {each.name: eviction_cost(each) for each in context.cluster.pods.values()}
        assert min(costs, key=lambda name: costs[name]) == f"p{cheap}"


def test_a_pod_that_fits_nowhere_is_not_looked_for_again() -> None:
    """Nor one like it, also by copies; one that found all feasible nodes full is tried again."""
    context = a_context(
        [a_node("a", cpu="4"), a_node("b", cpu="4")],
        [
            a_pod("large", node="a", cpu="3"),
            a_pod("twin", node="a", cpu="1"),
            a_pod("full", node="b", cpu="2"),
        ],
        exact=False,
    )
    pods = {each.name: each for each in context.cluster.pods.values()}
    fit = BestFit(context)
    assert fit.move(pods["large"], context.cluster.rows["a"], "why") is None
    copied = fit.copy()
    first = copied.move(pods["twin"], context.cluster.rows["a"], "why")

    assert first is not None
    assert first.target == "b"
    assert fit.knows_no_place_for(pods["large"]) == copied.knows_no_place_for(pods["large"])
    assert not fit.knows_no_place_for(pods["twin"])
    assert (fit.free - copied.free)[context.cluster.rows["b"]].tolist() == amounts(
        [pods["twin"]], context
    ).tolist()
    assert (fit.free == copied.free)[context.cluster.rows["a"]].all()


def test_what_later_moves_made_superfluous_stays() -> None:
    """The pod that covered the most of all goes first, until two others cover each one half."""
    wanted = {"both": ("2", "2Gi"), "cpu": ("3", None), "memory": (None, "3Gi")}
    pods = [
        a_pod(name, node="a", cpu=cpu, memory=memory, owner=f"ReplicaSet/{name}")
        for name, (cpu, memory) in wanted.items()
    ]
    context = a_context(
        [a_node("a", cpu="8"), a_node("b", cpu="8")], pods, evictor=an_evictor(minReplicas=0), exact=False
    )
    deficit = context.snapshot.requests_row(
        context.cluster.templates.info(a_pod("x", cpu="3", memory="3Gi")).requests
    )
    deficit[PODS] = 0

    for most, leaving in ((3, ["cpu", "memory"]), (2, [])):
        moves = moves_off(
            context.cluster.rows["a"], deficit, context, BestFit(context), most=most, highest=9, reason="why"
        )
        assert [each.pod.name for each in moves] == leaving
