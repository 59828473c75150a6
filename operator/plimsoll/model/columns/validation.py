"""Compares incrementally updated columns with columns recomputed from the objects."""

from plimsoll.model.columns.cluster import Cluster


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
    for name in cluster.resources:
        mine = cluster.axis_of(name)
        theirs = fresh.axis_of(name)
        if theirs is None:
            assert not cluster.requested[:n, mine].any()
            assert not cluster.allocatable[:n, mine].any()
            continue
        assert (cluster.requested[:n, mine] == fresh.requested[:n, theirs]).all(), name
        assert (cluster.allocatable[:n, mine] == fresh.allocatable[:n, theirs]).all(), name
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
