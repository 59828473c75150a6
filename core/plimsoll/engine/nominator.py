"""Indexes nominated pods by node; the reservation book writes it, filters read it."""

from collections.abc import Container, Iterator, Mapping
from collections.abc import Set as AbstractSet

from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster

#: The log is halved when it exceeds this length; readers that lag behind it review all nodes.
LOG_LENGTH = 4096


class Nominator:
    """Pending pods with a nominated node; they reserve room against pods of the same or lower priority."""

    def __init__(self) -> None:
        self.by_node: dict[str, dict[str, PodInfo]] = {}
        self.tick = 0
        self._node_of: dict[str, str] = {}
        self._log: list[str] = []

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate a pod; its earlier nomination ends."""
        self.remove(pod.uid)
        self.by_node.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node
        self._note(node)

    def remove(self, uid: str) -> None:
        """Remove a pod's nomination."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            del self.by_node[node][uid]
            if not self.by_node[node]:
                del self.by_node[node]
            self._note(node)

    def node_of(self, uid: str) -> str:
        """The pod's nominated node, "" without one."""
        return self._node_of.get(uid, "")

    def among(self, placed: Mapping[str, object]) -> AbstractSet[str]:
        """Uids of the nominated pods that are keys of ``placed``."""
        return self._node_of.keys() & placed.keys()

    def entries(self) -> Iterator[tuple[PodInfo, str]]:
        """All nominated pods with their nodes."""
        return ((pod, node) for node, pods in self.by_node.items() for pod in pods.values())

    def claimed(self, cluster: Cluster, without: Container[str] = ()) -> Cluster:
        """A fork of the cluster in which nominated pods are on their nodes; planners start from it.

        ``without`` are the uids of those that are left out.
        """
        fork = cluster.fork()
        for pod, node in self.entries():
            if pod.uid not in fork.pods and pod.uid not in without:
                fork.place(pod, node)
        return fork

    def changed_since(self, tick: int) -> frozenset[str] | None:
        """Nodes whose nominated pods changed after ``tick``; None when the log does not reach back."""
        behind = self.tick - tick
        if behind > len(self._log):
            return None
        return frozenset(self._log[len(self._log) - behind :])

    def _note(self, node: str) -> None:
        self._log.append(node)
        self.tick += 1
        if len(self._log) > LOG_LENGTH:
            del self._log[: LOG_LENGTH // 2]
