"""Compares incrementally updated columns with columns recomputed from the objects."""

from plimsoll.model.columns.cluster import ABSENT_RESOURCES, Cluster
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
    cluster.validate_pods()
    n = len(cluster)
    assert len(cluster.rows) == n
    assert all(cluster.rows[node.name] == row for row, node in enumerate(cluster.nodes))
    cluster.validate_names()
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


def _counted(pod: PodInfo, resource: str, cluster: Cluster) -> int:
    """What a pod adds to its node's sum."""
    if resource == "pods":
        return 1
    if resource == ABSENT_RESOURCES:
        return sum(bool(amount) and name not in cluster.resources for name, amount in pod.requests.items())
    return pod.requests.get(resource, 0)
