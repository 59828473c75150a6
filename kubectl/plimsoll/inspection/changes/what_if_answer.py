"""Compares a cluster before and after changes: pending pods, moves, utilisation, blocked drains."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace
from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.errors import PlimsollError
from plimsoll.inspection.changes.changed_cluster import ChangedCluster
from plimsoll.inspection.changes.cluster_changes import ApplyManifests, ClusterChange, Drain
from plimsoll.inspection.placement.pod_obstacles import PodObstacle, pod_obstacle
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import CPU, MEMORY, PODS, Cluster
from plimsoll.model.counted import agreeing, counted
from plimsoll.planning.aftermath import settled
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import make_plan


class RequestedAmounts(AnswerPart):
    """Requests of the pods of a node, or of all nodes, and the allocatable amount."""

    cpu_milli: int = Field(description="Cpu that pods request, in thousandths of a core.")
    cpu_milli_allocatable: int = Field(
        description="Cpu that nodes can give to pods, in thousandths of a core."
    )
    memory_bytes: int = Field(description="Memory that pods request, in bytes.")
    memory_bytes_allocatable: int = Field(description="Memory that nodes can give to pods, in bytes.")
    pods: int = Field(description="Number of pods.")
    pods_allocatable: int = Field(description="Number of pods that nodes admit.")


class NodeRequests(AnswerPart):
    """A node whose requests change."""

    node: str = Field(description="Name of the node.")
    before: RequestedAmounts | None = Field(description="Null when the node is added.")
    after: RequestedAmounts | None = Field(description="Null when the node is removed.")


class PodPlace(AnswerPart):
    """A pod and its node."""

    pod: str = Field(description="The pod, as namespace/name.")
    node: str = Field(description="Node that the pod would be on.")


class BlockedEviction(AnswerPart):
    """A pod that a drain cannot evict."""

    pod: str = Field(description="The pod, as namespace/name.")
    node: str = Field(description="Node that is drained.")
    reason: str = Field(description="Reason for which the eviction would be refused, for programs.")
    message: str = Field(description="Sentence that says why the eviction would be refused.")


class ExpectedMove(AnswerPart):
    """A move that a policy would plan."""

    pod: str = Field(description="The pod, as namespace/name.")
    source_node: str = Field(description="Node that the pod runs on.")
    target_node: str = Field(description="Node that the replacement would get.")
    strategy: str = Field(description="Strategy that would propose the move.")


class PolicyMoves(AnswerPart):
    """The moves of a policy."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    before: list[ExpectedMove] = Field(
        description="Moves that the policy would plan in the cluster as it is."
    )
    after: list[ExpectedMove] = Field(description="Moves that the policy would plan after the changes.")


class WhatIfAnswer(Answer):
    """The effects of changes."""

    summary: str = Field(description="The answer in a sentence.")
    pending: list[PodObstacle] = Field(
        description="Pods that would wait for a place, and do not without the changes."
    )
    still_pending: int = Field(description="How many pods wait with and without the changes.")
    fitting: int = Field(description="How many pods wait now, and find a place with and without the changes.")
    released: list[PodPlace] = Field(
        description="Pods that wait without the changes, and would have a place."
    )
    placed: list[PodPlace] = Field(description="Where new pods, and those that lost their place, would be.")
    gone: list[str] = Field(description="Pods that would end, and that nothing makes again.")
    blocked: list[BlockedEviction] = Field(description="Pods that drains cannot evict.")
    policies: list[PolicyMoves] = Field(description="What each policy would move, by its name.")
    total_before: RequestedAmounts = Field(
        description="Requests and room of all nodes in the cluster as it is."
    )
    total_after: RequestedAmounts = Field(description="Requests and room of all nodes after the changes.")
    nodes: list[NodeRequests] = Field(description="The nodes whose use changes, sorted by name.")
    notes: list[str] = Field(description="What is not known, or assumed.")


#: Callback for progress: the step, units done, and units in total.
Progress = Callable[[str, int, int], None]


def what_if(
    state: ClusterState,
    changes: Sequence[ClusterChange],
    changed_state: ClusterState | None = None,
    progress: Progress = lambda *_: None,
) -> WhatIfAnswer:
    """Apply the changes in order to a fork, and compare it with the cluster.

    Args:
        state: The unchanged cluster.
        changes: The changes in order of application.
        changed_state: The same cluster with other policies, which apply from the first change on.
        progress: Called for applied changes, and for plans.

    Raises:
        ManifestError: The node or workload of a change does not exist, or exists already.
    """
    target = changed_state or state
    if state.working or target.working:
        state.count()
    now, before = ChangedCluster(state), ChangedCluster(state)
    before.settle()
    after = ChangedCluster(target, [each.manifests for each in changes if isinstance(each, ApplyManifests)])
    for done, change in enumerate(changes):
        progress("changes", done, len(changes))
        after.make(change)
    notes = list(after.notes)
    if not changes:
        after.settle()
    waited = {*before.queue.waiting, *before.unserved}
    pending = [pod for pod in after.queue.in_order() if pod.uid not in waited]
    policies = _policies(state, now, target, after, notes, progress)
    forecast = sorted(
        {
            pod.pod.spec.scheduler_name
            for pod in (*(each.pod for each in after.placed.values()), *pending)
            if not after.queue.is_served(pod)
        }
    )
    notes += [
        f"no policy serves scheduler {name}; where its pods go is a forecast with"
        f" {state.forecasts.basis(name)}"
        for name in forecast
    ]
    return WhatIfAnswer(
        summary=_summary(changes, after, pending, sum(1 for uid in after.placed if uid in waited)),
        pending=_obstacles(after, pending),
        still_pending=len(after.unserved) + sum(1 for uid in after.queue.waiting if uid in waited),
        fitting=sum(1 for uid in after.placed if uid in before.placed),
        released=[
            PodPlace(pod=each.pod.key, node=each.node) for uid, each in after.placed.items() if uid in waited
        ],
        placed=[
            PodPlace(pod=each.pod.key, node=each.node)
            for uid, each in after.placed.items()
            if uid not in waited and uid not in before.placed
        ],
        gone=after.gone,
        blocked=[
            BlockedEviction(
                pod=each.pod.key, node=each.node, reason=each.refusal.reason, message=each.refusal.message
            )
            for each in after.blocked
        ],
        policies=policies,
        total_before=_total(state.cluster),
        total_after=_total(after.fork),
        nodes=_nodes(state.cluster, after.fork),
        notes=list(dict.fromkeys(notes)),
    )


def _summary(
    changes: Sequence[ClusterChange], after: ChangedCluster, pending: Sequence[PodInfo], released: int
) -> str:
    """Whether the nodes can be drained, else how many pods have no place."""
    drained = [name for each in changes if isinstance(each, Drain) for name in each.names]
    stay, homeless = len(after.blocked), len(pending)
    total = counted(after.evicted + stay, "pod")
    if not drained:
        said = "no pod loses its place"
        if homeless:
            said = f"{counted(homeless, 'pod')} {agreeing(homeless, 'finds', 'find')} no place"
        if released:
            said += f"; {counted(released, 'pending pod')} {agreeing(released, 'gets', 'get')} one"
        return said
    nodes = f"{counted(len(drained), 'node')} ({', '.join(drained)})" if len(drained) > 1 else drained[0]
    if stay:
        first = after.blocked[0]
        return (
            f"{nodes} cannot be drained: {stay} of {total} {agreeing(stay, 'stays', 'stay')}"
            f" ({first.pod.key}: {first.refusal.message})"
        )
    if homeless:
        without = f"{homeless} of {total}" if homeless <= after.evicted else counted(homeless, "pod")
        return f"{nodes} can be drained, but {without} {agreeing(homeless, 'finds', 'find')} no place"
    if not after.evicted:
        return f"{nodes} can be drained: no pod has to move"
    places = agreeing(after.evicted, "finds a place", "all find places")
    return f"{nodes} can be drained: {total} {places}, and no budget forbids it"


def _obstacles(after: ChangedCluster, pending: Sequence[PodInfo]) -> list[PodObstacle]:
    """The obstacles of each pod; determined once for all pods of a template."""
    known: dict[int, PodObstacle] = {}
    found = []
    for pod in pending:
        obstacle = known.get(id(pod.template))
        if obstacle is None:
            obstacle = pod_obstacle(after.queue, pod, after.queue.refusals[pod.uid])
            known[id(pod.template)] = obstacle
        found.append(obstacle.model_copy(update={"pod": pod.key}))
    return found


# -- policies ----------------------------------------------------------------------------------------------


def _policies(
    state: ClusterState,
    before: ChangedCluster,
    target: ClusterState,
    after: ChangedCluster,
    notes: list[str],
    progress: Progress,
) -> list[PolicyMoves]:
    names = sorted({*state.working, *target.working})
    found = []
    for done, name in enumerate(names):
        progress("plans", 2 * done, 2 * len(names))
        now = _moves(state, name, before, notes) if name in state.working else []
        progress("plans", 2 * done + 1, 2 * len(names))
        then = _moves(target, name, after, notes) if name in target.working else []
        found.append(PolicyMoves(policy=name, before=now, after=then))
    return found


def _moves(state: ClusterState, policy: str, changed: ChangedCluster, notes: list[str]) -> list[ExpectedMove]:
    """The moves that the policy would plan on the fork."""
    try:
        rebalancing, _, context = state.run_input(policy)
        unplaced = [pod for pod in context.unplaced if pod.uid not in changed.placed]
        known = {pod.uid for pod in unplaced}
        unplaced += [pod for uid, pod in changed.queue.waiting.items() if uid not in known]
        cluster = _running(changed, state)
        if rebalancing.planner is not Planner.UPSTREAM:  # descheduler does not read nominations
            _take_up(state, changed, cluster)
        plan = make_plan(rebalancing, cluster, replace(context, unplaced=tuple(unplaced)))
    except PlimsollError as exc:
        notes.append(f"policy {policy}: no plan could be made: {exc}")
        return []
    return _listed(plan)


def _listed(plan: EvictionPlan) -> list[ExpectedMove]:
    return [
        ExpectedMove(
            pod=move.pod.key, source_node=move.source, target_node=move.target, strategy=move.strategy
        )
        for move in plan.moves
    ]


def _running(changed: ChangedCluster, state: ClusterState) -> Cluster:
    """The fork as policies would see it: pods placed on it are running."""
    cluster = changed.fork.fork()
    for uid, each in changed.placed.items():
        cluster.displace(uid)
        cluster.place(settled(each.pod, cluster, each.node, state.time), each.node)
    return cluster


def _take_up(state: ClusterState, changed: ChangedCluster, cluster: Cluster) -> None:
    """Place the holders of reservations on the remaining nodes."""
    for node, pods in state.book.nominator.by_node.items():
        for uid, pod in pods.items():
            if uid not in cluster.pods and uid not in changed.placed and node in cluster.rows:
                cluster.place(pod, node)


# -- utilisation -------------------------------------------------------------------------------------------


def _total(cluster: Cluster) -> RequestedAmounts:
    return _amounts(cluster, range(len(cluster)))


def _nodes(before: Cluster, after: Cluster) -> list[NodeRequests]:
    was, will = _by_node(before), _by_node(after)
    return [
        NodeRequests(
            node=name,
            before=_amounts(before, [before.rows[name]]) if name in was else None,
            after=_amounts(after, [after.rows[name]]) if name in will else None,
        )
        for name in sorted({*was, *will})
        if was.get(name) != will.get(name)
    ]


def _by_node(cluster: Cluster) -> dict[str, list[int]]:
    """The amounts of each node that an answer shows."""
    shown, count = [CPU, MEMORY, PODS], len(cluster)
    amounts = np.hstack([cluster.requested[:count, shown], cluster.allocatable[:count, shown]])
    return dict(zip((node.name for node in cluster.nodes), amounts.tolist(), strict=True))


def _amounts(cluster: Cluster, rows: Sequence[int]) -> RequestedAmounts:
    """Sums of requests and allocatable amounts over nodes."""
    requested = cluster.requested[list(rows)].sum(axis=0)
    allocatable = cluster.allocatable[list(rows)].sum(axis=0)
    return RequestedAmounts(
        cpu_milli=int(requested[CPU]),
        cpu_milli_allocatable=int(allocatable[CPU]),
        memory_bytes=int(requested[MEMORY]),
        memory_bytes_allocatable=int(allocatable[MEMORY]),
        pods=int(requested[PODS]),
        pods_allocatable=int(allocatable[PODS]),
    )
