"""The load in the program is what plain arithmetic over the nodes finds."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from planning.load_worlds import AROUND, LoadWorld
from planning.optimal import test_by_load
from planning.optimal.test_by_load import LOW as LOW_BY_LOAD
from planning.optimal.test_by_load import by_load
from plimsoll.load.load_book import LoadBook
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll_optimal.load_encoding import LoadEncoding
from plimsoll_optimal.problem import HEAT

LOW = "LowNodeUtilization"
HOT = frozenset({(LOW, "n0"), (LOW, "n1")})


def encoded(
    objective: str, price: float, over: Any = HOT, settling: Any = frozenset()
) -> tuple[LoadWorld, LoadEncoding]:
    """Two nodes at 70 %, one at 20 %, one at 5 %."""
    world = LoadWorld([[5_000, 2_000], [7_000], [1_000, 1_000], [500]])
    policy = by_load(objective, price)
    context = PlanBuilder(policy, world.cluster, AROUND).context
    book = world.cluster.index(LoadBook)
    known = frozenset({LOW})
    return world, LoadEncoding(policy, context, book, context.nodes, over, known, {"cpu": 60.0}, settling)


@pytest.mark.parametrize("price", [0.0, 0.5, 15.0, 1_000.0])
@pytest.mark.parametrize("over", [frozenset(), frozenset({(LOW, "n0")}), HOT], ids=len)
@pytest.mark.parametrize("objective", ["FewestViolations", "SmallestSpread"])
def test_a_move_is_worth_its_price_by_what_its_pod_uses(objective: str, price: float, over: Any) -> None:
    """Heat where its node is over-used, one of several; evenness at both ends, where the goal is that."""
    world, encoding = encoded(objective, price, over)
    for pod, row in world.cluster.placed():
        node = world.cluster.nodes[row].name
        cpu, memory = world.uses[pod.name] / 100, 100 / 64
        gain = HEAT * (cpu + memory) if (LOW, node) in over else 0.0
        if objective == "SmallestSpread":
            gain += 2 * cpu

        assert encoding.is_worth(pod, node) is (gain > price)


@pytest.mark.parametrize("settling", [frozenset(), frozenset({"n3"}), frozenset({"n0", "n2"})], ids=sorted)
def test_nodes_give_and_get_pods_unless_they_settle(settling: Any) -> None:
    """The hot ones and those above the mean give; any measured one may get."""
    _, encoding = encoded("SmallestSpread", 1.0, settling=settling)

    assert encoding.sources() == {"n0", "n1"} - settling
    assert encoding.targets() == {"n0", "n1", "n2", "n3"} - settling


def test_wishes_name_how_far_the_node_is_above_its_target() -> None:
    """Each pod of each hot node, and of no other."""
    world, encoding = encoded("FewestViolations", 1.0)

    found = encoding.wishes()

    hot = {pod.uid for pod, row in world.cluster.placed() if row in {0, 1}}
    assert found.keys() == hot
    assert {each.reason for each in found.values()} == {"its node is over-used: cpu 70.0% (target 60.0%)"}


def test_wishes_say_nothing_of_a_resource_whose_use_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """However low its target."""
    name, args = LOW_BY_LOAD
    more = {"thresholds": {"cpu": 30, "pods": 0}, "targetThresholds": {"cpu": 60, "pods": 0}}
    monkeypatch.setattr(test_by_load, "LOW", (name, {**args, **more}))
    _, encoding = encoded("FewestViolations", 1.0)

    found = encoding.wishes()

    assert {each.reason for each in found.values()} == {"its node is over-used: cpu 70.0% (target 60.0%)"}


@pytest.mark.parametrize("ways", [[0], [0, 1], [1, 2, 3], [3, 4]], ids=str)
def test_the_level_after_moves_is_the_sum_of_what_the_pods_use_where_they_are(ways: list[int]) -> None:
    """Also where a pod comes from, or goes to, a node that the program does not have."""
    world, encoding = encoded("SmallestSpread", 1.0)
    names = list(encoding.nodes)
    level = {name: [float(each) for each in encoding.used[at][:2]] for at, name in enumerate(names)}
    moves: list[Any] = []
    for (pod, row), way in zip(world.cluster.placed(), ways, strict=False):
        source, target = world.cluster.nodes[row].name, ["n3", "n2", "n0", "", "elsewhere"][way]
        moves.append(SimpleNamespace(pod=pod, source=source if way != 1 else "gone", target=target))
        for place, sign in ((moves[-1].source, -1), (target, 1)):
            if place in level:
                level[place] = [
                    has + sign * own for has, own in zip(level[place], encoding.book.of(pod)[:2], strict=True)
                ]

    assert encoding.level_after(moves).tolist() == [level[name] for name in names]


@pytest.mark.parametrize(("ago_s", "is_settling"), [(100.0, True), (5_000.0, False), (None, False)])
def test_a_node_settles_until_it_was_read_twice(ago_s: Any, is_settling: bool) -> None:
    """Only the one that was touched, and only for a while."""
    world = LoadWorld([[5_000, 2_000], [500]])
    touched = {} if ago_s is None else {"n0": world.now - ago_s}
    around = replace(AROUND, now=datetime.fromtimestamp(world.now, UTC), touched=touched)
    load = PlanBuilder(by_load(), world.cluster, around).load

    assert (load.is_settling("n0"), load.is_settling("n1")) == (is_settling, False)
