"""Waiting pods of a replay are tried again in time, and its report agrees with plain counts."""

from __future__ import annotations

from typing import Any

import pytest

from inspection.contents import a_node_document, content_of
from plimsoll.inspection.plans.answer import LimitAllowance
from plimsoll.inspection.state import ClusterState
from plimsoll.simulation.allowances import BY_SUBJECT, NAMED, AllowanceTally
from plimsoll.simulation.report import replayed
from simulation.test_allowances import NODES, a_budget, outcomes_of, pods_of
from simulation.test_replay import HOUR, arriving, replay_of

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
    assert found.evictions == outcome.evicted == sum(each.evicted for each in outcome.budgets)
    assert outcome.blocked == sum(each.blocked for each in outcome.budgets)


def test_each_limit_with_too_many_workloads_hides_none_of_the_next() -> None:
    """Two policies of a hundred workloads and more: the names that are left out are of one of them only."""
    tally = AllowanceTally()
    for policy in ("a", "b"):
        found = [
            LimitAllowance(limit=BY_SUBJECT[0], subject=f"w{n:03}", allowed=1, used=1, left=0)
            for n in range(NAMED + 5)
        ]
        tally.count_run(policy, (), found)

    shown = [(each.policy, each.subject) for each in tally.limits()]

    assert [policy for policy, _ in shown] == ["a"] * NAMED + ["b"] * NAMED
