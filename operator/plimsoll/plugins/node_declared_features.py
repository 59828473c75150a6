"""NodeDeclaredFeatures: a pod that needs a kubelet feature goes where the kubelet declares it.

Formula: a node is refused when ``status.declaredFeatures`` lacks a feature that follows from the pod's spec::

    a container has a restart rule with action RestartAllContainers  -> RestartAllContainersOnContainerExits
    hostNetwork and hostUsers: false                                 -> UserNamespacesHostNetworkSupport

Units: none.
Edges: a pod from which nothing follows is skipped; features that only a resize needs are not looked at.
Source: kube-scheduler v1.36, ``nodedeclaredfeatures/nodedeclaredfeatures.go`` and
``component-helpers/nodedeclaredfeatures``; KEP 5328.
Differs: not at all.
"""

from typing import ClassVar

import numpy as np

from plimsoll.framework import (
    SKIP,
    SUCCESS,
    ActionType,
    ClusterEvent,
    CycleState,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    FilterPlugin,
    IntArray,
    NoArgs,
    PodInfo,
    PreFilterPlugin,
    QueueingHint,
    Reads,
    Snapshot,
    Status,
    unresolvable,
)

LACKING = "node(s) didn't match Pod's required features"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Refuse nodes that lack a feature the pod needs."""

    name: ClassVar = "NodeDeclaredFeatures"
    args_model: ClassVar = NoArgs
    reads: ClassVar = Reads.NODE

    def __init__(self, args: NoArgs) -> None:
        """Take no arguments."""

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Skip when nothing is needed."""
        return SUCCESS if _needed(pod) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
        """1 where a needed feature is not declared, shape (N,)."""
        needed = _needed(pod)
        lacking = [not needed.issubset(node.status.declared_features) for node in snapshot.nodes]
        return np.array(lacking, dtype=np.int64)

    def refusal(self, code: int, state: CycleState, pod: PodInfo) -> Status:
        """The only refusal there is."""
        return unresolvable(LACKING)

    def events_to_register(self) -> tuple[EventWithHint, ...]:
        """Nodes that declare other features, and a pod that needs others."""
        node = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            EventWithHint(EventResource.NODE, node),
            EventWithHint(
                EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE, _after_update, by_template=True
            ),
        )


def _after_update(pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """What the pod needs has changed."""
    return QueueingHint.of(_needed(change.old) != _needed(change.new))


def _needed(pod: PodInfo) -> frozenset[str]:
    spec = pod.pod.spec
    needed = set()
    if any(
        rule.get("action") == "RestartAllContainers"
        for container in (*spec.init_containers, *spec.containers)
        for rule in container.restart_policy_rules
    ):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)
