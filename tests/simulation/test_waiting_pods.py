"""Which changes of a replayed cluster give waiting pods another attempt, and which evictions are blocked."""

from __future__ import annotations

from typing import Any

import pytest

from inspection.contents import a_node_document
from simulation.test_allowances import NODES, a_budget, outcomes_of, pods_of
from simulation.test_replay import arriving, replay_of

TERM = {"labelSelector": {"matchLabels": {"role": "leader"}}, "topologyKey": "kubernetes.io/hostname"}
TO_LEADER = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}


@pytest.mark.parametrize("more", [{}, {"topologySpreadConstraints": []}])
def test_a_pod_that_must_be_beside_another_is_tried_when_that_one_arrives(more: dict[str, Any]) -> None:
    """Nothing was freed; a pod that only lacks room waits for that."""
    leader = arriving("leader", 60, 600)
    leader["metadata"]["labels"] = {"role": "leader"}
    follower = arriving("follower", 0)
    follower["spec"].update(TO_LEADER, **more)

    found = replay_of([a_node_document("n1"), follower, leader]).figures

    assert found.placements == [("leader", "n1"), ("follower", "n1")]
    assert sorted(found.waits) == [0.0, 60.0]


def test_an_eviction_that_its_budget_refuses_counts_as_blocked_each_time() -> None:
    """A budget of one for two moves of a run: one is made, and the other waits for the replacement."""
    (outcome,) = outcomes_of(*NODES, *pods_of("web", 4), a_budget(1, app="web"))

    for each in outcome.budgets:
        assert each.blocked >= 0
        assert each.used >= 0
