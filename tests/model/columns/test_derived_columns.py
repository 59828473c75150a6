"""Derived columns: computed for all nodes once, then where something changed, and never of another time."""

from typing import Any

import numpy as np
import pytest

from plimsoll.model.columns import derived_columns
from plimsoll.model.columns.cluster import CPU
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.testing.builders import a_cluster, a_node, a_pod


@pytest.fixture
def cluster() -> Any:
    return a_cluster([a_node(f"n{number}", cpu="4") for number in range(5)])


@pytest.fixture
def asked() -> Any:
    """The rows of every computation, in turn."""
    return []


@pytest.fixture
def free(asked: Any) -> Any:
    """Free cpu of each node."""

    def compute(snapshot: Any) -> Any:
        asked.append(snapshot.rows.tolist())
        return snapshot.allocatable[:, CPU] - snapshot.requested[:, CPU]

    return compute


def place(cluster: Any, node: Any, cpu: Any = "1") -> Any:
    pod = a_pod(f"on-{node}-{cpu}", cpu=cpu)
    cluster.place(cluster.templates.info(pod), node)
    return pod


def test_only_rows_that_changed_are_computed_again(cluster: Any, asked: Any, free: Any) -> None:
    """And the column is the same as if all had been."""
    Snapshot(cluster).kept("free", free)
    place(cluster, "n3")
    column = Snapshot(cluster).kept("free", free)

    assert asked == [[0, 1, 2, 3, 4], [3]]
    assert column.tolist() == [4000, 4000, 4000, 3000, 4000]
    assert not column.flags.writeable


def test_pods_do_not_concern_what_is_of_nodes_alone(cluster: Any, asked: Any, free: Any) -> None:
    """Only a node that changed does."""
    Snapshot(cluster).kept("free", free, of_nodes=True)
    place(cluster, "n3")
    Snapshot(cluster).kept("free", free, of_nodes=True)
    cluster.set_node(a_node("n1", cpu="8"))
    column = Snapshot(cluster).kept("free", free, of_nodes=True)

    assert asked == [[0, 1, 2, 3, 4], [1]]
    assert column.tolist() == [4000, 8000, 4000, 4000, 4000]


def test_rows_that_move_are_computed_again(cluster: Any, free: Any) -> None:
    """Another node may stand in the row."""
    Snapshot(cluster).kept("free", free)
    place(cluster, "n4")
    cluster.remove_node("n0")
    cluster.set_node(a_node("new", cpu="2"))

    assert Snapshot(cluster).kept("free", free).tolist() == [3000, 4000, 4000, 4000, 2000]


def test_some_nodes_and_suppositions_are_computed_for_themselves(cluster: Any, free: Any) -> None:
    """What is kept is of all nodes, as they are."""
    Snapshot(cluster).kept("free", free)
    some = Snapshot(cluster).at(np.array([1, 2]))
    supposed = Snapshot(cluster).if_requested(np.full((5, len(cluster.resources)), 1000))

    assert some.kept("free", free).tolist() == [4000, 4000]
    assert supposed.kept("free", free).tolist() == [3000] * 5
    assert Snapshot(cluster).kept("free", free).tolist() == [4000] * 5


def test_forks_have_their_own(cluster: Any, free: Any) -> None:
    """Neither sees the other's changes."""
    Snapshot(cluster).kept("free", free)
    fork = cluster.fork()
    place(fork, "n0")
    place(cluster, "n1")

    assert Snapshot(fork).kept("free", free).tolist() == [3000, 4000, 4000, 4000, 4000]
    assert Snapshot(cluster).kept("free", free).tolist() == [4000, 3000, 4000, 4000, 4000]


def test_columns_are_bounded(cluster: Any, asked: Any, free: Any, monkeypatch: Any) -> None:
    """Keys that are no longer used do not stay."""
    monkeypatch.setattr(derived_columns, "MOST_COLUMNS", 3)
    for key in range(10):
        Snapshot(cluster).kept(key, free)

    assert len(cluster.kept) <= 3
    assert len(asked) == 10
