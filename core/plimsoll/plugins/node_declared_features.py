"""NodeDeclaredFeatures: place pods that need a kubelet feature on nodes that declare it.

Formula: a node is refused if ``status.declaredFeatures`` lacks a feature that the pod's spec implies::

    a container has a restart rule with action RestartAllContainers  -> RestartAllContainersOnContainerExits
    hostNetwork and hostUsers: false                                 -> UserNamespacesHostNetworkSupport

Units: none.
Edges: a pod that implies no feature is skipped; features that only a resize needs are not checked.
Source: kube-scheduler v1.36, ``nodedeclaredfeatures/nodedeclaredfeatures.go`` and
``component-helpers/nodedeclaredfeatures``; KEP 5328.
Differs: not at all.
"""

from typing import ClassVar

import numpy as np

from plimsoll import framework as fwk

LACKING = "node(s) didn't match Pod's required features"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Refuse nodes that lack a feature that the pod needs."""

    name: ClassVar = "NodeDeclaredFeatures"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip if the pod needs no feature."""
        return fwk.SUCCESS if _needed(pod) else fwk.SKIP

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where a needed feature is not declared, shape (N,)."""
        needed = _needed(pod)
        lacking = [not needed.issubset(node.status.declared_features) for node in snapshot.nodes]
        return np.array(lacking, dtype=np.int64)

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal of this plugin."""
        return fwk.unresolvable(LACKING)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nodes that declare other features, and updates of the pod's needs."""
        node = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            fwk.EventWithHint(fwk.EventResource.NODE, node),
            fwk.EventWithHint(
                fwk.EventResource.UNSCHEDULABLE_POD, fwk.ActionType.UPDATE, _after_update, by_template=True
            ),
        )


def _after_update(pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
    """The features that the pod needs have changed."""
    return fwk.QueueingHint.of(_needed(change.old) != _needed(change.new))


def _needed(pod: fwk.PodInfo) -> frozenset[str]:
    spec = pod.pod.spec
    needed = set()
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.init_containers, *spec.containers)
        for rule in container.restart_policy_rules
    ):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)
