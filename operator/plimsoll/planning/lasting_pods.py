"""Leaves pods that may not last on their nodes out of the cluster that a plan starts from.

Users may assign a pod to a node by ``spec.nodeName``. No scheduler checks whether it fits, and a kubelet may
refuse it in the same second, so it is no reason to move other pods. Planners and strategies see a pod only

* once a scheduler has bound it or its kubelet has started it, if its node has what all of its pods request;
* once it has existed for ``LASTS_S`` in any case.

The room of such a pod counts again when a move is judged right before the eviction.
"""

from datetime import datetime, timedelta

import numpy as np

from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster

#: Seconds after its creation from which a pod counts in each plan.
LASTS_S = 300.0


def lasting(cluster: Cluster, now: datetime) -> Cluster:
    """The cluster without pods that may not last; the given one if all do."""
    young = timedelta(seconds=LASTS_S)
    over = _over_committed(cluster)
    passing = [
        pod
        for pod in cluster.pods.values()
        if (created := pod.pod.metadata.creation_timestamp) is not None
        and -young < now - created < young  # the clocks of two machines differ
        and pod.pod.node_name
        and (_is_stray(pod) or _adds_to(over.get(pod.pod.node_name, frozenset()), pod))
    ]
    if not passing:
        return cluster
    rest = cluster.fork()
    for pod in passing:
        rest.displace(pod.uid)
    return rest


def _over_committed(cluster: Cluster) -> dict[str, frozenset[str]]:
    """By node whose pods request more than it has: the resources."""
    count = len(cluster)
    is_over = cluster.requested[:count] > cluster.allocatable[:count]
    return {
        cluster.nodes[row].name: frozenset(cluster.resources[axis] for axis in np.flatnonzero(is_over[row]))
        for row in np.flatnonzero(is_over.any(axis=1))
    }


def _adds_to(resources: frozenset[str], pod: PodInfo) -> bool:
    """Whether the pod requests one of these resources; each pod takes one of the node's pods."""
    return "pods" in resources or any(pod.requests.get(each, 0) for each in resources)


def _is_stray(pod: PodInfo) -> bool:
    """Whether neither a scheduler has bound it nor a kubelet has started it."""
    status, bound = pod.pod.status, pod.pod.condition("PodScheduled")
    return (
        status.start_time is None and status.phase != "Running" and (bound is None or bound.status != "True")
    )
