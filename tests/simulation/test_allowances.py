"""Budgets and limits of a replay: of the run that left the least, and summed over the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.plans.answer import LimitAllowance
from plimsoll.inspection.state import ClusterState
from plimsoll.simulation.allowances import NAMED, AllowanceTally
from plimsoll.simulation.replay import ReplaySettings
from plimsoll.simulation.report import replayed

if TYPE_CHECKING:
    from inspection.contents import Document
    from plimsoll.simulation.report import PolicySetOutcome

NODES = [a_node_document("n1"), a_node_document("n2")]


def a_budget(allowed: int, **selector: str) -> Document:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 4 - allowed, "selector": {"matchLabels": selector}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 4,
            "desiredHealthy": 4 - allowed,
            "expectedPods": 4,
        },
    }


def outcomes_of(*documents: Document, mode: str = "Enforce", sets: int = 1) -> list[PolicySetOutcome]:
    """One hour under a policy that runs every ten minutes."""
    policy = a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={
            "mode": mode,
            "schedule": {"intervalSeconds": 600},
            "strategies": [{"name": "RemoveDuplicates"}],
        },
    )
    state = ClusterState.of(content_of([*documents, policy]))
    return list(replayed([("all", state)] * sets, ReplaySettings(3600.0)).outcomes)


def pods_of(owner: str, count: int) -> list[Document]:
    """Duplicates on one node."""
    return [a_pod_document(f"{owner}-{each}", node="n1", owner=owner) for each in range(count)]


def test_a_budget_that_allows_nothing_refuses_in_every_run() -> None:
    """Four on one of two nodes, two of which should move, in each of 6 runs: 12 refusals."""
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 4), a_budget(0, app="web"))

    (found,) = outcome.budgets
    assert (found.policy, found.budget) == ("all", "shop/web")
    assert (found.allowed, found.used, found.left) == (0, 0, 0)
    assert (found.runs_without, found.refusals, found.evicted, found.blocked) == (6, 12, 0, 0)
    assert found.left_at_end == 0


def test_a_budget_that_moves_use_says_how_much_one_run_took() -> None:
    """One eviction a run by the limit of a workload: two runs move one pod each, and each leaves one of 2."""
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 4), a_budget(2, app="web"))

    (found,) = outcome.budgets
    assert outcome.evicted == 2
    assert (found.allowed, found.used, found.left, found.runs_without) == (2, 1, 1, 0)
    assert (found.evicted, found.refusals, found.left_at_end) == (2, 0, 2)
    (workload,) = [each for each in outcome.limits if each.limit == "perWorkload"]
    assert (workload.subject, workload.allowed, workload.used) == ("ReplicaSet shop/web", 1, 1)
    assert workload.runs_without == 2


def test_a_budget_that_no_run_touches_is_named_without_a_policy() -> None:
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 4), a_budget(1, app="db"))

    (found,) = outcome.budgets
    assert (found.policy, found.allowed, found.used, found.left) == ("", 1, 0, 1)


def test_moves_that_are_only_predicted_use_budgets_of_their_run_alone() -> None:
    """A dry run predicts the same move in each of 6 runs; nothing is evicted."""
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 4), a_budget(1, app="web"), mode="DryRun")

    (found,) = outcome.budgets
    assert (found.allowed, found.used, found.left, found.runs_without) == (1, 1, 0, 6)
    assert (found.evicted, found.left_at_end) == (0, 1)


def test_limits_on_the_run_are_named_though_nothing_moves() -> None:
    """The whole run and the minute; those on nodes and workloads only where they are used up."""
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 1))

    assert {each.subject for each in outcome.limits} == {None}
    assert all(each.left == each.allowed > 0 and not each.runs_without for each in outcome.limits)


def test_a_hundred_workloads_are_named_and_those_with_room_are_not() -> None:
    """Those that were used up most often first."""

    def of(number: int, left: int) -> LimitAllowance:
        subject = f"ReplicaSet shop/web-{number:03}"
        return LimitAllowance(limit="perWorkload", subject=subject, allowed=1, used=1 - left, left=left)

    tally = AllowanceTally()
    tally.count_run("all", [], [of(each, 0) for each in range(NAMED + 5)])
    tally.count_run("all", [], [of(NAMED + 4, 0), of(NAMED + 5, 1)])
    found = list(tally.limits())

    assert len(found) == NAMED
    assert [(each.subject, each.runs_without) for each in found[:2]] == [
        ("ReplicaSet shop/web-104", 2),
        ("ReplicaSet shop/web-000", 1),
    ]


def test_a_second_set_of_policies_starts_from_the_same_budgets() -> None:
    first, second = outcomes_of(*NODES, *pods_of("web", 4), a_budget(1, app="web"), sets=2)

    assert first.budgets == second.budgets
