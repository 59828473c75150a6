"""Waiting pods of a replay are tried again in time, and its report agrees with plain counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.state import ClusterState
from plimsoll.simulation.replay import ReplaySettings
from plimsoll.simulation.report import replayed
from simulation.test_replay import HOUR, arriving, replay_of

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


TERM = {"labelSelector": {"matchLabels": {"role": "leader"}}, "topologyKey": "kubernetes.io/hostname"}
TO_LEADER = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}


@pytest.mark.parametrize("more", [{}, {"topologySpreadConstraints": []}])
def test_a_pod_that_must_be_near_another_is_tried_when_that_one_arrives(more: dict[str, Any]) -> None:
    """Nothing was freed; a pod that only lacks room waits for that."""
    leader = arriving("leader", 60, 600)
    leader["metadata"]["labels"] = {"role": "leader"}
    follower = arriving("follower", 0)
    follower["spec"].update(TO_LEADER, **more)

    found = replay_of([a_node_document("n1"), follower, leader]).figures

    assert found.placements == [("leader", "n1"), ("follower", "n1")]
    assert sorted(found.waits) == [0.0, 60.0]


@pytest.mark.parametrize("role", ["follower", "leader"])
def test_what_a_placed_pod_makes_feasible_is_placed_at_the_same_moment(role: str) -> None:
    """Also where it comes later in the order of the queue than the pod that waits for it."""
    older, younger = arriving("older", 60), arriving("younger", 60)
    younger["metadata"]["creationTimestamp"] = older["metadata"]["creationTimestamp"]
    leader, follower = (older, younger) if role == "follower" else (younger, older)
    leader["metadata"]["labels"] = {"role": "leader"}
    follower["spec"].update(TO_LEADER)

    found = replay_of([a_node_document("n1"), older, younger]).figures

    assert found.waits == [0.0, 0.0]


def test_nodes_in_use_are_those_with_pods() -> None:
    """A pod of three cores fills a node of four, so the share of the cores says how many."""
    documents = [a_node_document("n1"), a_node_document("n2")]
    arrivals = [
        arriving("a", 0, 300, cpu="3"),
        arriving("b", 600, 300, cpu="3"),
        arriving("c", 600, 300, cpu="3"),
    ]

    samples = replay_of([*documents, *arrivals]).figures.samples

    assert [each.nodes_in_use for each in samples] == [round(each.cpu * 8 / 3) for each in samples]
    assert {each.nodes_in_use for each in samples} >= {0, 1}


def test_waits_are_reported_to_the_millisecond() -> None:
    """Median, 95th percentile and maximum, compared with plain arithmetic."""
    documents = [a_node_document("n1"), arriving("a", 0, 1.23456789, cpu="3"), arriving("b", 0, 600, cpu="3")]

    (outcome,) = replayed([("all", ClusterState.of(content_of(documents)))], HOUR).outcomes

    assert outcome.pending_max_seconds == outcome.pending_p95_seconds == 1.235
    assert outcome.pending_p50_seconds in {0.0, 1.235}


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_strategies_and_budgets_of_a_report_add_up(allowed: int) -> None:
    """What is mended is gone at the end; what a budget forbids is left, and no eviction is counted for it."""
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 4), a_budget(allowed, app="web"))

    (found,) = outcome.strategies
    assert (found.violations, found.violations_at_end) == (2, 2 if allowed == 0 else 0)
    assert found.evictions == outcome.evicted == (0, 2, 2)[allowed]
    assert outcome.blocked == 0


def test_a_second_set_of_policies_starts_from_the_same_budgets() -> None:
    first, second = outcomes_of(*NODES, *pods_of("web", 4), a_budget(1, app="web"), sets=2)

    assert first.evicted == second.evicted > 0
    assert first.placements_digest == second.placements_digest
