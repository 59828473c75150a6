"""Imbalance of nodes: the standard deviation of their utilization, in percentage points."""

import pytest

from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import EVERYTHING
from plimsoll.planning.imbalance import imbalance
from plimsoll.testing.builders import a_cluster, a_node, a_pod

NOTHING = Measurements()


def drifted() -> Cluster:
    """Requested cpu: 1 of 4 and 3 of 4; a third node is not ready, a fourth has another label."""
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    return a_cluster(
        [
            a_node("a", cpu="4", memory="8Gi", labels={"pool": "x"}),
            a_node("b", cpu="4", memory="8Gi", labels={"pool": "x"}),
            a_node("broken", cpu="4", labels={"pool": "x"}, status=unready),
            a_node("other", cpu="4", labels={"pool": "y"}),
        ],
        [a_pod("one", cpu="1", memory="4Gi", node="a"), a_pod("three", cpu="3", memory="4Gi", node="b")],
    )


def test_requests_over_the_nodes_that_the_policy_considers() -> None:
    """cpu: 25 % and 75 % are 25 points from their mean; memory: both 50 %."""
    found = imbalance(drifted(), parse_selector("pool=x"), NOTHING)

    assert found["cpu", "requests"] == pytest.approx(25.0)
    assert found["memory", "requests"] == pytest.approx(0.0)
    assert set(found) == {("cpu", "requests"), ("memory", "requests"), ("pods", "requests")}


def test_all_ready_nodes_count_without_a_selector() -> None:
    """25 %, 75 % and 0 %: mean 33.3, variance (69.4 + 1736.1 + 1111.1) / 3 = 972.2, root 31.2."""
    assert imbalance(drifted(), EVERYTHING, NOTHING)["cpu", "requests"] == pytest.approx(31.18, abs=0.01)


def test_actual_usage_where_the_policy_has_it_measured() -> None:
    """2 of 4 and 1 of 4 cpus: 12.5 points from their mean; a node without measurement does not count."""
    measured = {"a": {"cpu": 2 * 10**9, "memory": 4 * 2**30 * 10**9}, "b": {"cpu": 10**9}}

    found = imbalance(drifted(), EVERYTHING, Measurements(nodes=measured))

    assert found["cpu", "actual"] == pytest.approx(12.5)
    assert found["memory", "actual"] == 0.0
    assert found["cpu", "requests"] == pytest.approx(31.18, abs=0.01)


@pytest.mark.parametrize("nodes", [[], [a_node("only")], [a_node("a", cpu="0"), a_node("b", cpu="0")]])
def test_without_two_nodes_to_compare_there_is_no_imbalance(nodes: list[Node]) -> None:
    """Neither a division by zero nor a NaN."""
    found = imbalance(a_cluster(nodes), EVERYTHING, Measurements(nodes={}))

    assert found["cpu", "requests"] == 0.0
    assert found["cpu", "actual"] == 0.0
