"""Summarizes a cluster for pages: nodes with their utilisation, and pods without a node."""

from collections import defaultdict
from collections.abc import Iterator

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.inspection.changes.changed_cluster import ChangedCluster
from plimsoll.inspection.placement.fit import pending_pods
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.offline.cluster import OfflineCluster
from plimsoll.planning.imbalance import BILLIONTHS, COLUMNS

#: Decimal places of figures, as in a plan.
PLACES = 1


class PicturedNode(AnswerPart):
    """One node."""

    node: str = Field(description="Name of the node.")
    state: str = Field(description="Ready, NotReady or Cordoned.")
    pods: int = Field(ge=0, description="Pods that are placed on it.")
    requested_percent: dict[str, float] = Field(
        description="Share of its allocatable amount that pods request, by resource."
    )
    used_percent: dict[str, float] = Field(
        description="Measured use in percent of the node's allocatable amount, by resource; empty where it"
        " is not measured."
    )


class PodsWithoutNode(AnswerPart):
    """Pods without a node, for one reason."""

    reason: str = Field(description="Why, in kube-scheduler's words.")
    pods: tuple[str, ...] = Field(
        description="The pods, as namespace/name, in the order in which they are tried."
    )


class ClusterPicture(Answer):
    """The utilisation of a cluster."""

    nodes: tuple[PicturedNode, ...] = Field(description="Every node, sorted by name.")
    pods: int = Field(ge=0, description="Pods that are placed.")
    waiting: tuple[PodsWithoutNode, ...] = Field(
        description="Reasons why pods have no node, the one with the most pods first."
    )
    placeable: int = Field(ge=0, description="Pods that wait and would find a place now.")
    spent_budgets: int = Field(ge=0, description="PodDisruptionBudgets that allow no disruption now.")
    resources: tuple[str, ...] = Field(description="What nodes have: cpu, memory, pods, then extended ones.")


def picture_of(state: ClusterState) -> ClusterPicture:
    """Summarize all nodes as they are, and try all waiting pods on a fork."""
    changed = ChangedCluster(state)
    changed.settle()
    nodes = tuple(sorted(_nodes(state.cluster, state), key=lambda each: each.node))
    named = {resource for each in nodes for resource in each.requested_percent}
    return ClusterPicture(
        nodes=nodes,
        pods=len(state.cluster.pods),
        waiting=tuple(
            sorted(_waiting(state, changed.queue), key=lambda each: (-len(each.pods), each.reason))
        ),
        placeable=len(changed.placed),
        spent_budgets=sum(
            not each.status.disruptions_allowed for each in state.cluster.objects.budgets.values()
        ),
        resources=(*COLUMNS, *sorted(named - set(COLUMNS))),
    )


def requested_percent(cluster: Cluster) -> dict[str, dict[str, float]]:
    """Requests on each node in percent of allocatable: cpu, memory, pods, extended resources."""
    pictured = {axis: name for axis, name in enumerate(cluster.resources) if name in COLUMNS or "/" in name}
    return {
        name: {
            resource: _percent(int(cluster.requested[row, axis]), room)
            for axis, resource in pictured.items()
            if (room := int(cluster.allocatable[row, axis]))
        }
        for name, row in cluster.rows.items()
    }


def _nodes(cluster: Cluster, state: ClusterState) -> Iterator[PicturedNode]:
    axes = {name: axis for axis, name in enumerate(cluster.resources)}
    used = {each.name: each.usage for each in state.content.usage.nodes}
    for name, requested in requested_percent(cluster).items():
        row = cluster.rows[name]
        node, measured = cluster.nodes[row], used.get(name, {})
        yield PicturedNode(
            node=name,
            state="Cordoned" if node.spec.unschedulable else "Ready" if node.is_ready else "NotReady",
            pods=sum(1 for _ in cluster.pods_on(row)),
            requested_percent=requested,
            used_percent={
                resource: _percent(measured[resource] / unit, int(cluster.allocatable[row, axes[resource]]))
                for resource, unit in BILLIONTHS.items()
                if resource in measured and resource in requested
            },
        )


def _percent(amount: float, room: int) -> float:
    return round(100 * amount / room, PLACES)


def _waiting(state: ClusterState, queue: OfflineCluster) -> Iterator[PodsWithoutNode]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pod in pending_pods(state):
        reason = state.unserved.get(pod.pod.spec.scheduler_name)
        if reason is not None:
            found[reason].append(pod.key)
    for pod in queue.in_order():
        found[queue.refusals[pod.uid].message].append(pod.key)
    for reason, pods in found.items():
        yield PodsWithoutNode(reason=reason, pods=tuple(pods))
