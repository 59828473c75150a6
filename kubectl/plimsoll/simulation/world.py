"""World is a mutable cluster in which pods wait, are placed, leave, and are replaced by their owners."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from plimsoll.engine.nominator import Nominator
from plimsoll.framework import Pod, PodInfo
from plimsoll.inspection.state import ClusterState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodStatus


class UnplacedPod(Struct):
    """A pod without a node.

    Attributes:
        since: Start of its wait, in seconds since the epoch.
        number: Order among pods that began to wait at the same time.
    """

    pod: PodInfo
    since: float
    number: int


class World:
    """A mutable copy of a state's cluster; the state itself does not change.

    Attributes:
        cluster: Nodes and placed pods.
        nominator: Pods with a nominated node.
        waiting: Pods without a node, by uid, in order of arrival.
        ended: Pods that ended without being deleted, by uid.
        freed: Number of times that room has become free.
        missing: Number of each budget's pods that were evicted and are not replaced yet.
    """

    def __init__(self, state: ClusterState) -> None:
        self.cluster: Cluster = state.cluster.fork()
        self.nominator = Nominator()
        self.waiting: dict[str, UnplacedPod] = {}
        self.ended: dict[str, PodInfo] = {
            pod.uid: pod for pod in state.objects.pending.infos() if pod.pod.is_terminal
        }
        self.freed = 0
        self.missing: dict[str, int] = {}
        self._allowed: dict[str, int] = {
            key: budget.status.disruptions_allowed for key, budget in self.cluster.objects.budgets.items()
        }
        self._count = 0
        for node, pods in state.book.nominator.by_node.items():
            for pod in pods.values():
                if pod.stands_in_for is None:
                    self.nominator.add(pod, node)

    def submit(self, pod: PodInfo, now: float) -> None:
        """Add a waiting pod."""
        self._count += 1
        self.waiting[pod.uid] = UnplacedPod(pod, now, self._count)

    def place(self, pod: PodInfo, node: str, now: float) -> PodInfo:
        """Place a waiting pod on a node, where it is running and ready immediately."""
        del self.waiting[pod.uid]
        self.nominator.remove(pod.uid)
        running = self.cluster.templates.info(_running(pod.pod, node, now))
        self.cluster.place(running, node)
        return running

    def remove(self, uid: str) -> PodInfo | None:
        """Remove a pod; returns it as it was, None if it is not present."""
        self.nominator.remove(uid)
        waiting = self.waiting.pop(uid, None)
        if waiting is not None:
            return waiting.pod
        placed = self.cluster.displace(uid)
        if placed is not None:
            self.freed += 1
            return placed
        return self.ended.pop(uid, None)

    def replacement(self, pod: PodInfo, now: float) -> PodInfo | None:
        """The pod with which the owner replaces one that has left; None if no owner does."""
        metadata = pod.pod.metadata
        owner = metadata.controller
        if owner is None or owner.kind in ("Node", "DaemonSet") or pod.pod.is_terminal:
            return None
        self._count += 1
        name = metadata.name if owner.kind == "StatefulSet" else f"{owner.name}-r{self._count}"
        fresh = msgspec.structs.replace(
            metadata,
            name=name,
            uid=f"replacement-{self._count}",
            creation_timestamp=datetime.fromtimestamp(now, UTC),
            deletion_timestamp=None,
        )
        spec = msgspec.structs.replace(pod.pod.spec, node_name="")
        made = msgspec.structs.replace(pod.pod, metadata=fresh, spec=spec, status=PodStatus(phase="Pending"))
        return self.cluster.templates.info(made)

    # -- budgets -------------------------------------------------------------------------------------

    def may_disrupt(self, budget: str) -> bool:
        """Whether a PodDisruptionBudget (``namespace/name``, "" for none) allows one more eviction."""
        return not budget or self._allowed.get(budget, 0) > self.missing.get(budget, 0)

    def count_missing(self, budget: str, amount: int) -> None:
        """Record that pods of a budget were evicted (above 0) or replaced (below 0)."""
        if not budget:
            return
        self.missing[budget] = self.missing.get(budget, 0) + amount
        objects = self.cluster.objects
        found = objects.budgets.get(budget)
        if found is None:
            return
        status = msgspec.structs.replace(
            found.status,
            disruptions_allowed=max(0, self._allowed[budget] - self.missing[budget]),
            current_healthy=max(0, found.status.current_healthy - amount),
        )
        objects.budgets[budget] = msgspec.structs.replace(found, status=status)
        objects.budget_version += 1

    # -- reading -------------------------------------------------------------------------------------

    def unplaced(self) -> tuple[PodInfo, ...]:
        """Pods without a node or a nominated node."""
        return (*(each.pod for each in self.waiting.values()), *self.ended.values())

    def claimed(self) -> Cluster:
        """A fork in which nominated pods are on their nodes; the starting point of planners."""
        fork = self.cluster.fork()
        by_node: Mapping[str, Mapping[str, PodInfo]] = self.nominator.by_node
        for node, pods in by_node.items():
            for uid, pod in pods.items():
                if uid not in fork.pods:
                    fork.place(pod, node)
        return fork


def _running(pod: Pod, node: str, now: float) -> Pod:
    """The pod as its kubelet reports it."""
    ready = {"type": "Ready", "status": "True"}
    status = msgspec.convert(
        {"phase": "Running", "conditions": [ready], "qosClass": pod.status.qos_class}, PodStatus
    )
    started = msgspec.structs.replace(status, start_time=datetime.fromtimestamp(now, UTC))
    spec = msgspec.structs.replace(pod.spec, node_name=node)
    return msgspec.structs.replace(pod, spec=spec, status=started)
