"""The choice of a target on many nodes, against all of them sorted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.engine.decision import Ranking
from plimsoll.framework.descheduling.proposals import Candidate, Destinations, Refusal
from plimsoll.planning.proven.target_choice import TRIES, TargetChoice, TargetRows, best_admitted
from plimsoll.testing.builders import a_cluster, a_node, a_pod

#: More nodes than are sorted whole.
CLUSTER = a_cluster([a_node(f"n{(7 * n) % 90:02}") for n in range(90)], [a_pod(node="n07")])
POD = next(iter(CLUSTER.pods.values()))

rows = st.sets(st.integers(0, 89), min_size=2)


@given(
    rows,
    st.lists(st.integers(0, 5), min_size=90, max_size=90),
    rows,
    st.booleans(),
    st.booleans(),
    st.integers(0, TRIES + 2),
)
def test_the_best_are_tried_first_whatever_their_number(
    feasible: set[int], points: list[int], serving: set[int], known: bool, returns: bool, accepted: int
) -> None:
    """At most twelve are tried, by total and name; targets and destinations narrow them, as sets or asked."""
    chosen = np.array(sorted(feasible), dtype=np.intp)
    ranking = Ranking(CLUSTER, chosen, np.array(points, dtype=np.int64)[chosen])
    names = frozenset(CLUSTER.nodes[row].name for row in serving)
    serves = Destinations.among(names) if known else Destinations(names.__contains__)
    targets = TargetRows(CLUSTER, lambda node: node.name != "n11")
    tried: list[str] = []

    def objection(name: str) -> Refusal | None:
        tried.append(name)
        return None if len(tried) == accepted else Refusal("No", name)

    found = best_admitted(
        Candidate(POD, "n07", "", destinations=serves), ranking, targets, objection, may_return=returns
    )

    order = sorted(feasible, key=lambda row: (-points[row], CLUSTER.nodes[row].name))
    wanted = [
        name
        for name in (CLUSTER.nodes[row].name for row in order)
        if name in names and name != "n11" and (returns or name != "n07")
    ][:TRIES]
    if 0 < accepted <= len(wanted):
        assert isinstance(found, TargetChoice)
        assert (found.target, tried) == (wanted[accepted - 1], wanted[:accepted])
    else:
        assert tried == wanted
        assert not wanted or found == Refusal("No", wanted[0])


@pytest.mark.parametrize(
    ("admitted", "serving", "reason", "count"),
    [
        pytest.param(frozenset({"n07"}), frozenset({"n03"}), "NotATarget", "89 nodes", id="no-target"),
        pytest.param(frozenset({"n07", "n08"}), frozenset({"n07"}), "NoDestination", "1 node", id="no-use"),
    ],
)
def test_refusals_count_the_nodes_that_are_left(admitted: Any, serving: Any, reason: str, count: str) -> None:
    """The pod's own node counts for none of them."""
    ranking = Ranking(CLUSTER, np.arange(90), np.zeros(90, dtype=np.int64))
    targets = TargetRows(CLUSTER, lambda node: node.name in admitted)

    found = best_admitted(
        Candidate(POD, "n07", "", destinations=Destinations.among(serving)),
        ranking,
        targets,
        lambda _: None,
        may_return=False,
    )

    assert isinstance(found, Refusal)
    assert found.reason == reason
    assert f"fits {count} besides" in found.message
