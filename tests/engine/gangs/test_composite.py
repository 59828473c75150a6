"""The search for composite groups ends, and groups start with their own minimum."""

from collections import defaultdict
from typing import Any

import pytest

from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs import composite
from plimsoll.engine.gangs.composite import MOST_ORDERS, Branch, Leaf, place_unit
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.plugin_calls import METER, AttemptBudget, OverBudgetError, PluginCalls
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from whole_groups.topology import PROFILE


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
