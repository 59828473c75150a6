"""Leaves pods that may not last on their nodes out of the cluster that a plan starts from.

Users may assign a pod to a node by ``spec.nodeName``. No scheduler checks whether it fits, and a kubelet may
refuse it in the same second, so it is no reason to move other pods. Planners and strategies see a pod only

* once a scheduler has bound it or its kubelet has started it, if its node has room for all of its pods;
* once it has existed for ``LASTS_S`` in any case.

The room of such a pod counts again when a move is judged right before the eviction.
"""

from datetime import datetime, timedelta

from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster

#: Seconds after its creation from which a pod counts in each plan.
LASTS_S = 300.0


def lasting(cluster: Cluster, now: datetime) -> Cluster:
    """The cluster without pods that may not last; the given one if all do."""
    since = now - timedelta(seconds=LASTS_S)
    count = len(cluster)
    is_over = (cluster.requested[:count] > cluster.allocatable[:count]).any(axis=1)
    passing = [
        pod
        for pod in cluster.pods.values()
        if (created := pod.pod.metadata.creation_timestamp) is not None
        and created > since
        and pod.pod.node_name
        and (_is_stray(pod) or ((row := cluster.row_of_pod(pod.uid)) is not None and is_over[row]))
    ]
    if not passing:
        return cluster
    rest = cluster.fork()
    for pod in passing:
        rest.displace(pod.uid)
    return rest


def _is_stray(pod: PodInfo) -> bool:
    """Whether neither a scheduler has bound it nor a kubelet has started it."""
    status, bound = pod.pod.status, pod.pod.condition("PodScheduled")
    return (
        status.start_time is None and status.phase != "Running" and (bound is None or bound.status != "True")
    )
