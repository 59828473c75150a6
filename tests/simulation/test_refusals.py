"""Refusals of a replay: summed over runs, by different pods, and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.planning_scenes import LOW
from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.state import ClusterState
from plimsoll.simulation.replay import ReplaySettings
from plimsoll.simulation.report import RefusedMoves, replayed

if TYPE_CHECKING:
    from inspection.contents import Document

BUDGET: Document = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4},
}


def refused_of(
    *documents: Document,
    strategies: tuple[Document, ...] = ({"name": "RemoveDuplicates"},),
    hours: float = 1.0,
    cron: str = "",
) -> tuple[RefusedMoves, ...]:
    """What a policy refuses that runs every ten minutes, or by its cron."""
    policy = a_policy_document(
        scheduling={"schedulerName": "plimsoll"},
        rebalancing={
            "mode": "Enforce",
            "schedule": {"cron": cron} if cron else {"intervalSeconds": 600},
            "strategies": list(strategies),
        },
    )
    state = ClusterState.of(content_of([*documents, policy]))
    (outcome,) = replayed([("all", state)], ReplaySettings(3600.0 * hours)).outcomes
    return outcome.refused


def pods_of(owner: str, count: int) -> list[Document]:
    """Duplicates on one node."""
    return [a_pod_document(f"{owner}-{each}", node="n1", owner=owner) for each in range(count)]


NODES = [a_node_document("n1"), a_node_document("n2")]


def test_a_pod_counts_once_in_each_run() -> None:
    """Four on one of two nodes, two of which should move: 2 pods, in each of 6 runs, so 12 refusals."""
    (found,) = refused_of(*NODES, *pods_of("web", 4), BUDGET)

    assert (found.policy, found.reason) == ("all", "Budget")
    assert (found.runs, found.refusals, found.pods, found.at_end) == (6, 12, 2, 2)
    assert "shop/web" in found.message


def test_a_pod_that_two_strategies_want_moved_counts_once() -> None:
    """All four are on a node that is too full, and two are duplicates: 4 pods in each of 6 runs."""
    full = [a_pod_document(f"web-{each}", node="n1", cpu="900m") for each in range(4)]

    (found,) = refused_of(*NODES, *full, BUDGET, strategies=({"name": "RemoveDuplicates"}, LOW))

    assert (found.runs, found.refusals, found.pods, found.at_end) == (6, 24, 4, 4)


def test_a_limit_that_only_delays_refuses_nothing_at_the_end() -> None:
    """One eviction of the workload in a run: the second pod stays in the first run, then it moves."""
    (found,) = refused_of(*NODES, *pods_of("web", 4))

    assert found.reason == "WorkloadLimit"
    assert (found.runs, found.refusals, found.pods, found.at_end) == (1, 1, 1, 0)


def test_what_no_run_refuses_is_that_of_the_end() -> None:
    """It is noon, and the first run is an hour away; the end is judged all the same."""
    (found,) = refused_of(*NODES, *pods_of("web", 4), BUDGET, hours=0.5, cron="0 * * * *")

    assert (found.runs, found.refusals, found.pods, found.at_end) == (0, 0, 2, 2)
