"""The summary of a cluster's load: states of nodes, and shares of those that are known."""

import pytest

from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.load.states import LoadState
from plimsoll.load.summary import summary_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.testing.builders import a_node
from plimsoll.usage.load_keeper import LoadKeeper

NOW, CORE, GIB = 1_000_000.0, 10**9, 2**30


def test_shares_of_the_nodes_that_are_known() -> None:
    """cpu: 0.25 and 0.75; a node without a reading counts in no mean."""
    cluster = Cluster()
    for name in ("n1", "n2", "n3"):
        cluster.set_node(a_node(name, cpu="4", memory="8Gi"))
    keeper = LoadKeeper(cluster)
    readings = [LoadReading("n1", CORE, 2 * GIB, NOW), LoadReading("n2", 3 * CORE, 2 * GIB, NOW)]
    keeper.observe(NOW, nodes=LoadReadings.of(readings), pods=LoadReadings.of(()))

    found = summary_of(cluster)

    assert found is not None
    assert found.nodes == {"unknown": 1, "stale": 0, "estimated": 0, "measured": 2}
    assert (found.mean["cpu"], found.highest["cpu"], found.spread["cpu"]) == pytest.approx((0.5, 0.75, 0.25))
    assert (found.mean["memory"], found.spread["memory"]) == pytest.approx((0.25, 0.0))
    assert found.hottest == {"cpu": "n2", "memory": "n1"}
    assert found.left_out == {LoadState.UNKNOWN: ("n3",)}
    some = summary_of(cluster, ["n1", "n3"])
    assert some is not None
    assert (some.hottest["cpu"], some.highest["cpu"], some.nodes["measured"]) == ("n1", 0.25, 1)


def test_nothing_is_said_where_nothing_is_collected() -> None:
    """And no book is made for the question."""
    cluster = Cluster()
    cluster.set_node(a_node("n1"))

    assert summary_of(cluster) is None
    assert not cluster.has_index(LoadBook)


def test_no_node_is_known() -> None:
    """There is no mean of nothing."""
    cluster = Cluster()
    cluster.set_node(a_node("n1", cpu="4"))
    LoadKeeper(cluster)

    found = summary_of(cluster)

    assert found is not None
    assert (found.nodes["unknown"], found.mean, found.highest, found.spread) == (1, {}, {}, {})
