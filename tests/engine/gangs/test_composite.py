"""The search for composite groups ends, and groups start with their own minimum."""

from collections import defaultdict
from typing import Any

import pytest

from planning.device_worlds import a_made_claim, a_user, a_world
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs import composite
from plimsoll.engine.gangs.composite import MOST_ORDERS, Branch, Leaf, place_unit
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.plugin_calls import METER, AttemptBudget, OverBudgetError, PluginCalls
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from whole_groups.topology import BLOCK, PROFILE


def a_tree(groups: int, *, depth: int = 1, placed: tuple[str, ...] = ()) -> tuple[Branch, Any]:
    """Groups of one pod each that fit nowhere, below so many composite groups, and their cluster."""
    cluster = a_cluster([a_node("n", cpu="1")])
    scheduler = ProfileScheduler(PROFILE, cluster)
    leaves = tuple(
        Leaf(str(at), 1, ((cluster.templates.info(a_pod(f"p{at}", cpu="2")), scheduler),), placed)
        for at in range(groups)
    )
    root = Branch("root", groups, leaves)
    for level in range(depth - 1):
        root = Branch(f"above {level}", 1, (root,))
    return root, cluster


def test_a_search_in_several_orders_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """After eight further orders; after one call when the processor time is used up."""
    calls: list[int] = []
    error: OverBudgetError | None = None

    def refused(members: Any, *_: Any, **__: Any) -> GangDecision:
        calls.append(1)
        decisions = (
            Decision(pod, AttemptOutcome.UNSCHEDULABLE, message="no", error=error) for pod, _ in members
        )
        return GangDecision((), tuple(decisions), 1)

    monkeypatch.setattr(composite, "place_together", refused)
    root, cluster = a_tree(20)
    assert not place_unit(root, cluster).is_feasible
    assert len(calls) == 20 * (MOST_ORDERS + 1)

    calls.clear()
    error = OverBudgetError("used up")
    found = place_unit(a_tree(20, depth=3)[0], cluster)
    assert (len(calls), found.is_feasible) == (1, False)
    assert [each.error for each in found.refused] == [error]


def test_a_search_without_calls_of_plugins_ends() -> None:
    """Groups that lack pods are refused before any call; the processor time is looked at between groups."""
    calls = PluginCalls(defaultdict(int), budget=(budget := AttemptBudget()))
    budget.begin("uid-default-p0")
    budget.spent = budget.attempt
    root, cluster = a_tree(3)
    lacking = tuple(Leaf(each.key, 2, each.waiting) for each in root.leaves)
    token = METER.set(calls)
    try:
        found = place_unit(Branch("root", 3, lacking), cluster)
    finally:
        METER.reset(token)

    assert [type(each.error) for each in found.refused] == [OverBudgetError]
    assert found.refused[0].pod.pod.name == "p0"


@pytest.mark.parametrize(
    ("least", "uids", "ready"),
    [
        (2, {"uid-default-p0"}, None),
        (1, {"uid-default-p0"}, {"0"}),
        (2, {"uid-default-p0", "uid-default-p1"}, {"0", "1"}),
        (0, set(), set()),
    ],
)
def test_groups_start_with_their_own_minimum(least: int, uids: set[str], ready: set[str] | None) -> None:
    """And only if enough groups have theirs."""
    root, _ = a_tree(2)

    assert Branch("root", least, root.children).ready(uids) == ready


def leaf(
    cluster: Cluster, key: str, least: int, *pods: Pod, placed: tuple[str, ...] = (), within: str = ""
) -> Leaf:
    """A group with these members that wait."""
    scheduler = ProfileScheduler(PROFILE, cluster)
    waiting = tuple((cluster.templates.info(pod), scheduler) for pod in pods)
    return Leaf(key, least, waiting, placed, within)


def equals(group: str, count: int, **more: Any) -> list[Pod]:
    return [a_pod(f"{group}-{at}", **{"cpu": "1", **more}) for at in range(count)]


@pytest.mark.parametrize(("devices", "starts"), [(1, False), (2, True)])
def test_a_group_sees_the_devices_that_the_group_before_it_gets(devices: int, starts: bool) -> None:
    """Each asks for one of the same node by a claim of its own."""
    cluster = a_world({"n": devices}, (), *(a_made_claim(name) for name in "ab"))
    parts = tuple(leaf(cluster, name, 1, a_user(name, template="t")) for name in "ab")

    assert place_unit(Branch("root", 2, parts), cluster).is_feasible is starts


@pytest.mark.parametrize("is_member", [False, True])
def test_a_member_that_runs_makes_no_room_for_one_that_waits(is_member: bool) -> None:
    """However much more important that one is; another pod of the same priority does."""
    runs = a_pod("a-0", cpu="1", node="n", priority=1)
    cluster = a_cluster([a_node("n", cpu="1")], [runs])
    a = leaf(cluster, "a", 1 if is_member else 0, placed=(runs.uid,) if is_member else ())
    b = leaf(cluster, "b", 1, *equals("b", 1, priority=9))

    assert place_unit(Branch("root", 2, (a, b)), cluster, is_preempting=True).is_feasible is not is_member


def test_a_group_that_has_enough_members_is_no_obstacle_for_the_others() -> None:
    """Its further member fits nowhere."""
    runs = a_pod("a-0", cpu="1", node="n")
    cluster = a_cluster([a_node("n", cpu="2")], [runs])
    a = leaf(cluster, "a", 1, *equals("a", 2, cpu="9")[1:], placed=(runs.uid,))
    b = leaf(cluster, "b", 1, *equals("b", 1))

    found = place_unit(Branch("root", 2, (a, b)), cluster)

    assert [each.decision.pod.name for each in found.placements] == ["b-0"]


def test_of_the_domains_the_one_that_takes_the_most_members_is_chosen() -> None:
    """By count both blocks take all three; in the first one no single node does, as the group asks."""
    sizes = {"x0": 2, "x1": 1, "y0": 3}
    nodes = [a_node(name, cpu=str(cpu), labels={BLOCK: name[0]}) for name, cpu in sizes.items()]
    cluster = a_cluster(nodes)
    one = leaf(cluster, "a", 1, *equals("a", 3), within="kubernetes.io/hostname")

    found = place_unit(Branch("root", 1, (one,), BLOCK), cluster)

    assert [each.node for each in found.placements] == ["y0"] * 3


@pytest.mark.parametrize("room", [5, 6, 7, 8, 9])
def test_further_members_come_after_what_all_groups_need(room: int) -> None:
    """In any order two groups of three take what the third one needs; each needs two."""
    cluster = a_cluster([a_node("n", cpu=str(room))])
    parts = tuple(leaf(cluster, name, 2, *equals(name, 3)) for name in "abc")

    found = place_unit(Branch("root", 3, parts), cluster)

    assert len(found.placements) == (room if room >= 6 else 0)
    assert len({each.decision.pod.uid for each in found.placements}) == len(found.placements)


def test_a_group_that_is_not_needed_costs_no_victim() -> None:
    """Of d and e one is enough; together they would take the room that leaves a with one victim."""
    low = [a_pod(f"low-{at}", cpu="1", node=node, priority=-1) for at, node in enumerate(("n0", "n1", "n1"))]
    cluster = a_cluster([a_node("n0", cpu="3"), a_node("n1", cpu="2")], low)
    inner = Branch("inner", 1, tuple(leaf(cluster, name, 1, *equals(name, 1)) for name in "de"))
    root = Branch("root", 2, (inner, leaf(cluster, "a", 1, *equals("a", 1, cpu="2"))))

    found = place_unit(root, cluster, is_preempting=True)

    assert sum(len(each.victims) for each in found.placements) == 1
