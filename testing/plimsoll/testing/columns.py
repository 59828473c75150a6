"""Compares incrementally updated columns with columns recomputed from the objects."""

from collections import Counter

from plimsoll.model.columns.cluster import ABSENT_RESOURCES, FIXED_RESOURCES, Cluster
from plimsoll.model.kinds.node import allocatable_of
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.requests import LARGEST_AMOUNT


def validate(cluster: Cluster) -> None:
    """Compare every column with one recomputed from the objects.

    Raises:
        AssertionError: An incremental update was wrong.
    """
    fresh = Cluster(cluster.templates)
    for node in cluster.nodes:
        fresh.set_node(node)
    for pod, row in cluster.placed():
        fresh.place(pod, cluster.nodes[row].name)
    validate_pods(cluster)
    _validate_names(cluster)
    n = len(cluster)
    assert len(cluster.rows) == n
    assert all(cluster.rows[node.name] == row for row, node in enumerate(cluster.nodes))
    for axis, name in enumerate(cluster.resources):
        for row, node in enumerate(cluster.nodes):
            sums = [_counted(pod, name, cluster) for pod in cluster.pods_on(row)]
            assert cluster.requested[row, axis] == min(sum(sums), LARGEST_AMOUNT), name
            assert cluster.allocatable[row, axis] == allocatable_of(node).get(name, 0), name
    assert (cluster.nonzero_requested[:n] == fresh.nonzero_requested[:n]).all()
    assert (cluster.unschedulable[:n] == fresh.unschedulable[:n]).all()
    for row, node in enumerate(cluster.nodes):
        assert cluster.taints.values[cluster.taints.ids[row]] == tuple(node.spec.taints)
        for key, column in cluster.labels.items():
            value = node.labels.get(key)
            assert (column.values[column.ids[row]] if column.ids[row] >= 0 else None) == value
    known = {pod.uid for pod, _ in cluster.placed()}
    aside = {uid for pods in cluster.strays.values() for uid in pods}
    assert all(cluster.row_of_pod(pod.uid) == row for pod, row in cluster.placed())
    assert known | aside == set(cluster.pods)
    assert not known & aside
    assert all(cluster.row_of_pod(uid) is None for uid in aside)


def validate_pods(cluster: Cluster) -> None:
    """Check that each placed pod is on one row.

    Raises:
        AssertionError: An incremental update was wrong.
    """
    assert len(cluster._pods_on) == len(cluster)  # noqa: SLF001 - what a cluster keeps for itself
    assert len(cluster._row_of_pod) == sum(1 for _ in cluster.placed())  # noqa: SLF001 - likewise


def _validate_names(cluster: Cluster) -> None:
    """Check the counts of resources and labels that nodes have."""
    amounts = [allocatable_of(node).items() for node in cluster.nodes]
    scalars = [name for each in amounts for name, amount in each if amount and name not in FIXED_RESOURCES]
    labels = [key for node in cluster.nodes for key in node.labels]
    assert cluster._holders.counts == Counter(scalars)  # noqa: SLF001 - what a cluster keeps for itself
    assert cluster._labelled.counts == Counter(labels)  # noqa: SLF001 - likewise


def _counted(pod: PodInfo, resource: str, cluster: Cluster) -> int:
    """What a pod adds to its node's sum."""
    if resource == "pods":
        return 1
    if resource == ABSENT_RESOURCES:
        return sum(bool(amount) and name not in cluster.resources for name, amount in pod.requests.items())
    return pod.requests.get(resource, 0)
