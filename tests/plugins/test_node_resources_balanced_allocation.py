"""NodeResourcesBalancedAllocation, against upstream's own arithmetic and the conformance laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.framework import SKIP, SUCCESS, CycleState, Snapshot
from plimsoll.plugins.node_resources_balanced_allocation import (
    FEW,
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import ScorePluginConformance

GPU = "example.com/gpu"


def over(*names: str) -> NodeResourcesBalancedAllocation:
    args = {"resources": [{"name": name} for name in names]}
    return NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs.model_validate(args))


PLUGIN = over("cpu", "memory")


@pytest.mark.parametrize(
    ("node", "taken", "pod", "points"),
    [
        pytest.param(
            # after 6000/10000, 5000/20000: std 0.175 -> 82; before 0.3, 0: 0.15 -> 85; 50 + (50-3)//2
            (10, 20000), ("3", 0), ("3", 5000), 73, id="a-little-worse"
        ),
        pytest.param(
            # after 0.6, 0.5: 95; before 0.3, 0.25: 97; 50 + (50-2)//2
            (10, 20000), ("3", 5000), ("3", 5000), 74, id="hardly-worse"
        ),
        pytest.param(
            # after 0.6, 0.2: 80; before 0.3, 0.1: 90; 50 + (50-10)//2
            (10, 50000), ("3", 5000), ("3", 5000), 70, id="worse"
        ),
        pytest.param(
            # after 1, 1: 100; before 1, 0: 50; 50 + (50+50)//2
            (3, 5000), ("3", 0), ("0", 5000), 100, id="perfectly-balanced"
        ),
        pytest.param(
            # after 0, 1: 50; before 0, 0: 100; 50 + (50-50)//2
            (3, 5000), ("0", 0), ("0", 5000), 50, id="perfectly-unbalanced"
        ),
        pytest.param(
            # one resource only: balance 100 before and after; 50 + 50//2
            (0, 5000), ("0", 0), ("0", 5000), 75, id="one-resource-is-always-balanced"
        ),
        pytest.param(
            # fractions are capped at 1: after 1, 1; before 1, 0
            (3, 5000), ("9", 0), ("0", 9000), 100, id="overcommitted"
        ),
    ],
)  # fmt: skip
def test_scores_match_worked_examples(
    node: tuple[int, ...], taken: tuple[str, int], pod: tuple[str, int], points: int
) -> None:
    """Each case states its arithmetic; most are upstream's own table."""
    cpu, memory = node
    other = a_pod("other", node="n1", cpu=taken[0], memory=taken[1])
    snapshot = a_snapshot(a_node("n1", cpu=str(cpu), memory=memory), pods=[other])

    scores = PLUGIN.score(CycleState(), the_info(a_pod(cpu=pod[0], memory=pod[1])), snapshot)

    assert scores.tolist() == [points]


def test_three_resources_use_the_standard_deviation() -> None:
    """After 0.5, 0.25, 0: mean 0.25, std sqrt(0.125/3) = 0.204 -> 79; before 100; 50 + (50-21)//2."""
    plugin = over("cpu", "memory", "ephemeral-storage")
    node = a_node(cpu="4", memory=4000, allocatable={"ephemeral-storage": 10})

    scores = plugin.score(CycleState(), the_info(a_pod(cpu="2", memory=1000)), a_snapshot(node))

    assert scores.tolist() == [64]


def test_scalar_resources_count_when_the_pod_requests_them() -> None:
    """Of cpu and gpu, a pod without gpus leaves one resource: 75 everywhere."""
    plugin = over("cpu", GPU)
    node = a_node(cpu="4", allocatable={GPU: 4})

    assert plugin.score(CycleState(), the_info(a_pod(cpu="4")), a_snapshot(node)).tolist() == [75]
    # after 1 and 0.25: std 0.375 -> 62; before 100; 50 + (50-38)//2
    assert plugin.score(
        CycleState(), the_info(a_pod(cpu="4", requests={GPU: 1})), a_snapshot(node)
    ).tolist() == [56]


def test_a_pod_that_requests_nothing_is_skipped() -> None:
    """It changes no balance; what a container takes at least is not assumed."""
    snapshot = a_snapshot(a_node())

    assert PLUGIN.pre_score(CycleState(), the_info(a_pod()), snapshot) == SKIP
    assert PLUGIN.pre_score(CycleState(), the_info(a_pod(cpu="0")), snapshot) == SKIP
    assert PLUGIN.pre_score(CycleState(), the_info(a_pod(memory="1")), snapshot) == SUCCESS


@pytest.mark.parametrize(
    ("resources", "sentence"),
    [
        ([{"name": "cpu"}, {"name": "cpu"}], "named twice"),
        ([{"name": "cpu", "weight": 2}], "Input should be 1"),
    ],
)
def test_bad_arguments_are_refused(resources: list[dict[str, Any]], sentence: str) -> None:
    """The sentence says what is allowed."""
    with pytest.raises(ValidationError, match=sentence):
        NodeResourcesBalancedAllocationArgs.model_validate({"resources": resources})


def test_without_resources_cpu_and_memory_are_compared() -> None:
    """An empty list says no more than none."""
    assert NodeResourcesBalancedAllocationArgs(resources=()) == NodeResourcesBalancedAllocationArgs()


class TestConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = PLUGIN


class TestThreeResourcesConformance(ScorePluginConformance):
    """The laws every score plugin obeys, with nodes that lack some of the resources."""

    plugin = over("cpu", "memory", GPU)


@given(
    st.lists(
        st.tuples(st.integers(0, FEW + 2), st.integers(0, 6000), st.integers(0, 9000)), min_size=1, max_size=6
    )
)
def test_points_after_each_placement_are_those_of_a_new_look(placed: list[tuple[int, int, int]]) -> None:
    """Kept sums are renewed for the nodes that changed, also where these are over-committed."""
    nodes = [a_node(f"n{at}", cpu="4", memory=5000 + at) for at in range(FEW + 3)]
    cluster = a_cluster(nodes)
    pod = cluster.templates.info(a_pod(cpu="1", memory=1000))
    PLUGIN.score(CycleState(), pod, Snapshot(cluster))
    for number, (node, cpu, memory) in enumerate(placed):
        other = a_pod(f"p{number}", node=f"n{node}", cpu=f"{cpu}m", memory=memory)
        cluster.place(cluster.templates.info(other), other.node_name)
        kept = PLUGIN.score(CycleState(), pod, Snapshot(cluster)).tolist()
        rows = [cluster.rows[each.name] for each in nodes]
        alone = [PLUGIN.score(CycleState(), pod, Snapshot(cluster).at(np.array([row])))[0] for row in rows]

        assert [kept[row] for row in rows] == alone
