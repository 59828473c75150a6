"""Simulates the cluster as strategies will see it after moves, with the replacements running.

Simulated replacements are as old as the plan, ready, and have never failed. So a strategy that complains
about one complains about its place, not about a pod that is starting.

Measured usage moves with the pods as far as pods were measured. A query's value for a node that pods leave
becomes unknown, so the node is left out until the next query.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from plimsoll.devices.fork_devices import follow_devices
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodCondition, PodStatus
from plimsoll.planning.moves import Move, PlanningContext, replacement_of, replacement_uid


class ForkAttempt:
    """Makes moves in a fork and undoes them."""

    def __init__(self, fork: Cluster) -> None:
        self._fork = fork
        self._made: list[tuple[PodInfo, str]] = []

    def move(self, pod: PodInfo, target: str, replacement: PodInfo | None = None) -> None:
        """Remove the pod, and place its replacement on the target."""
        row = self._fork.row_of_pod(pod.uid)
        standing = self._fork.displace(pod.uid)
        assert row is not None
        assert standing is not None
        self._made.append((standing, self._fork.nodes[row].name))
        self._fork.place(replacement or replacement_of(pod, self._fork, target), target)

    def place(self, pod: PodInfo, node: str) -> None:
        """Place the pending pod on the node."""
        self._made.append((pod, ""))
        self._fork.place(pod, node)

    def undo(self) -> None:
        """Undo all moves and placements."""
        for pod, source in reversed(self._made):
            self._fork.displace(replacement_uid(pod) if source else pod.uid)
            if source:
                self._fork.place(pod, source)
        self._made.clear()


def aftermath(
    cluster: Cluster, context: PlanningContext, moves: Sequence[Move]
) -> tuple[Cluster, PlanningContext]:
    """A fork with all moves made, and the matching context; neither argument is changed."""
    fork = follow_devices(cluster.fork())
    for move in moves:
        fork.displace(move.pod.uid)
    for move in moves:
        if move.target:
            fork.place(settled(move.pod, fork, move.target, context.now), move.target)
    gone = {move.pod.uid for move in moves}
    return fork, replace(
        context,
        unplaced=[pod for pod in context.unplaced if pod.uid not in gone],
        measurements=shifted(
            context.measurements, [(move.pod.key, move.source, move.target) for move in moves if move.target]
        ),
    )


def settled(pod: PodInfo, cluster: Cluster, node: str, now: datetime) -> PodInfo:
    """The replacement of a moved pod once it is ready."""
    fresh = replacement_of(pod, cluster, node)
    return cluster.templates.info(
        msgspec.structs.replace(
            fresh.pod,
            metadata=msgspec.structs.replace(fresh.pod.metadata, creation_timestamp=now),
            status=PodStatus(
                resource_claim_statuses=fresh.pod.status.resource_claim_statuses,
                phase="Running",
                qos_class=pod.pod.status.qos_class,
                start_time=pod.pod.status.start_time,  # protections of young pods end with time
                conditions=(PodCondition(type="Ready", status="True"),),
            ),
        ),
        fresh.stands_in_for,
    )


def shifted(known: Measurements, moves: Sequence[tuple[str, str, str]]) -> Measurements:
    """Measured usage after pods have moved; ``moves`` are pod keys with the nodes left and entered."""
    if known.nodes is None and known.samples is None and known.queried is None:
        return known
    left = {source for _, source, target in moves if source != target}
    nodes, samples, queried = known.nodes, known.samples, known.queried
    if nodes is not None:
        nodes = _shifted(nodes, known.pods or {}, moves)
    if samples is not None:
        samples = {
            query: [sample for sample in found if sample.labels.get("instance") not in left]
            for query, found in samples.items()
        }
    if queried is not None:
        entered = {target for _, source, target in moves if source != target}
        pods = known.queried_pods or {}
        carried = {resource for usage in pods.values() for resource in usage}
        queried = {  # usage that is not measured per pod cannot be moved with it
            name: {each: amount for each, amount in usage.items() if each in carried}
            if name in left | entered
            else usage
            for name, usage in _shifted(queried, pods, moves).items()
        }
    return replace(known, nodes=nodes, samples=samples, queried=queried)


def _shifted(
    nodes: Mapping[str, Mapping[str, int]],
    pods: Mapping[str, Mapping[str, int]],
    moves: Iterable[tuple[str, str, str]],
) -> Mapping[str, Mapping[str, int]]:
    changes: dict[str, Counter[str]] = {}
    for pod, source, target in moves:
        for resource, amount in pods.get(pod, {}).items():
            changes.setdefault(source, Counter())[resource] -= amount
            changes.setdefault(target, Counter())[resource] += amount
    return {
        name: {resource: max(amount + changes[name][resource], 0) for resource, amount in usage.items()}
        if name in changes
        else usage
        for name, usage in nodes.items()
    }
