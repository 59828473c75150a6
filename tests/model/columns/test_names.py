"""Names in pods cost a column only where nodes have them; sums stay right while names come and go."""

import numpy as np
import pytest

from plimsoll.model.columns import cluster as columns
from plimsoll.model.columns.cluster import ABSENT_RESOURCES, FIXED_RESOURCES, Cluster
from plimsoll.model.columns.snapshot import ABSENT, Snapshot
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate

GPU = "example.com/gpu"


def wanting(cluster: Cluster, name: str, count: int, amount: str = "1", node: str = "n1") -> None:
    """Place a pod that requests so many resources that no node has."""
    resources = {f"{name}.example.com/{number}": amount for number in range(count)}
    cluster.place(cluster.templates.info(a_pod(name, requests=resources)), node)


@pytest.mark.parametrize("amount", ["0", "1"])
def test_names_that_no_node_has_cost_no_column(amount: str) -> None:
    """Resources of any amount, and labels; cached results hold, as nothing has changed its meaning."""
    cluster = a_cluster([a_node("n1"), a_node("n2")])
    wanting(cluster, "first", 1)
    epoch = cluster.epoch

    wanting(cluster, "many", 500, amount)
    found = [Snapshot(cluster).label_ids(f"key-{number}") for number in range(500)]

    assert cluster.resources == (*FIXED_RESOURCES, ABSENT_RESOURCES)
    assert cluster.labels == {}
    assert cluster.epoch == epoch
    assert all((ids == ABSENT).all() for ids in found)
    assert all(cluster.axis_of(f"many.example.com/{number}") is None for number in range(500))
    validate(cluster)


def test_a_request_that_no_node_can_meet_fits_nowhere() -> None:
    """In a vector of requests it counts on an axis of which no node has any."""
    cluster = a_cluster([a_node("n1")])

    wanted = cluster.requests_row({"cpu": 1, GPU: 1})

    assert (wanted > cluster.allocatable[0]).any()
    assert not (cluster.requests_row({"cpu": 1, GPU: 0}) > cluster.allocatable[0]).any()


def test_a_node_that_brings_a_resource_finds_what_was_requested() -> None:
    """Pods that were placed before count on the new axis, and leave it again."""
    cluster = a_cluster([a_node("n1")])
    pod = cluster.templates.info(a_pod("a", requests={GPU: "2", "example.com/other": "1"}))
    cluster.place(pod, "n1")
    fork = cluster.fork()

    cluster.set_node(a_node("n2", allocatable={GPU: "4"}))
    cluster.place(cluster.templates.info(a_pod("b", requests={GPU: "1"})), "n2")

    axis = cluster.axis_of(GPU)
    assert axis is not None
    assert cluster.requested[:2, axis].tolist() == [2, 1]
    assert cluster.allocatable[:2, axis].tolist() == [0, 4]
    assert fork.axis_of(GPU) is None
    validate(cluster)
    cluster.displace(pod.uid)
    cluster.remove_node("n2")
    assert not cluster.requested[0].any()
    validate(cluster)
    validate(fork)


def test_a_node_with_resources_without_end_has_a_bounded_number_of_axes() -> None:
    """Further ones get theirs when a pod requests them, up to a limit, beyond which there is no room."""
    many = {f"example.com/{number}": "1" for number in range(300)}
    cluster = a_cluster([a_node("n1", allocatable=many), a_node("n2")])
    eager = len(cluster.resources)

    late = cluster.axis_of("example.com/299")
    wanted = cluster.requests_row(dict.fromkeys(many, 1))

    assert eager == len(FIXED_RESOURCES) + columns.EAGER_SCALARS
    assert late is not None
    assert cluster.allocatable[:2, late].tolist() == [1, 0]
    assert len(cluster.resources) <= len(FIXED_RESOURCES) + columns.MOST_SCALARS + 1
    assert (wanted > cluster.allocatable[0]).any()
    validate(cluster)


def test_axes_that_no_pod_requests_are_dropped_when_they_are_many() -> None:
    """Other nodes' resources get axes again; those in use stay."""
    many = {f"example.com/{number}": "1" for number in range(300)}
    cluster = a_cluster([a_node("n1", allocatable=many)])
    cluster.requests_row(dict.fromkeys(many, 1))
    cluster.place(cluster.templates.info(a_pod("a", requests={"example.com/7": "1"})), "n1")

    cluster.remove_node("n2")
    cluster.set_node(a_node("n2", allocatable={GPU: "1"}))
    cluster.set_node(a_node("n3", allocatable={GPU: "1"}))

    assert len(cluster.resources) < len(FIXED_RESOURCES) + columns.EAGER_SCALARS
    assert cluster.axis_of("example.com/7") is not None
    assert cluster.axis_of(GPU) is not None
    validate(cluster)


def test_columns_of_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are dropped between attempts, and made again when they are requested."""
    monkeypatch.setattr(columns, "FEWEST_LABELS", 8)
    monkeypatch.setattr(columns, "LABEL_BYTES", 0)
    cluster = a_cluster([a_node("n1", labels={f"key-{number}": "v" for number in range(20)})])
    for number in range(20):
        cluster.label(f"key-{number}")
    epoch = cluster.epoch

    cluster.trim()

    assert len(cluster.labels) <= 8
    assert cluster.epoch > epoch
    assert np.flatnonzero(Snapshot(cluster).label_ids("key-0") != ABSENT).tolist() == [0]
    validate(cluster)


def test_columns_of_labels_that_cost_little_stay() -> None:
    """A small cluster keeps more than the fewest: their rows are few."""
    count = columns.FEWEST_LABELS * 3
    cluster = a_cluster([a_node("n1", labels={f"key-{number}": "v" for number in range(count)})])
    for number in range(count):
        cluster.label(f"key-{number}")
    epoch = cluster.epoch

    cluster.trim()

    assert (len(cluster.labels), cluster.epoch) == (count, epoch)


def test_the_last_of_the_first_resources_gets_an_axis_though_it_comes_alone() -> None:
    """Nodes bring one each."""
    cluster = a_cluster()
    for number in range(columns.EAGER_SCALARS + 1):
        cluster.set_node(a_node(f"n{number}", allocatable={f"example.com/{number}": "1"}))

    assert len(cluster.resources) == len(FIXED_RESOURCES) + columns.EAGER_SCALARS
    validate(cluster)
