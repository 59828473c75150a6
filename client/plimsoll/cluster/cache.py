"""Holds placed and assumed pods, and writes the cluster's columns.

The state of a pod (kube-scheduler v1.36, ``backend/cache/interface.go``)::

              assume              confirmed by the watch
    (queue) ─────────▶ Assumed ───────────────────────────▶ Placed ──▶ gone
       ▲                  │                                    ▲
       └──── forget ──────┘          seen bound by the watch ──┘

An assumed pod counts in full: the next decision sees its room as taken long before the API server has
received the binding. It never expires; it is confirmed, forgotten, or deleted.
"""

from plimsoll.framework import Node, Pod, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.timing.signal import Signal


class Cache:
    """The only writer of the cluster's columns.

    Attributes:
        cluster: The columns, for all readers.
        assumed: Node name by uid, for pods whose binding is not confirmed.
        waiting: Pods without a node by uid, as the watch shows them; written by the mirror.
        nodes_changed: Notified when the watch has shown an added, changed or deleted node.
        volumes_changed: Notified when the watch has shown an added, changed or deleted claim or volume.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.assumed: dict[str, str] = {}
        self.waiting: dict[str, Pod] = {}
        self.nodes_changed = Signal()
        self.volumes_changed = Signal()

    def info(self, pod: Pod) -> PodInfo:
        """The engine's view of a pod."""
        return self.cluster.templates.info(pod)

    def node_of(self, uid: str) -> str:
        """The node on which a pod is placed or assumed, "" without one."""
        cluster = self.cluster
        placed = cluster.pods.get(uid)
        if placed is None:
            return ""
        row = cluster.row_of_pod(uid)
        if row is not None:
            return cluster.nodes[row].name
        own = placed.pod.node_name
        if uid in cluster.strays.get(own, ()):
            return own
        return next(name for name, strays in cluster.strays.items() if uid in strays)

    def set_node(self, node: Node) -> bool:
        """Add or update a node; returns whether a decision may change because of it."""
        may_matter = self.cluster.set_node(node)
        self.nodes_changed.notify()
        return may_matter

    def remove_node(self, name: str) -> None:
        """Remove a deleted node."""
        self.cluster.remove_node(name)
        self.nodes_changed.notify()

    def set_placed(self, pod: PodInfo, node: str) -> bool:
        """Place a pod that the watch shows on a node; returns whether it was not counted there before."""
        known = self.node_of(pod.uid)
        self.assumed.pop(pod.uid, None)
        self.cluster.place(pod, node)
        return known != node

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove a deleted or ended pod; returns the pod as it was counted, or None if it was not."""
        self.assumed.pop(uid, None)
        return self.cluster.displace(uid)

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod on a node before the API server knows its binding.

        Raises:
            ValueError: It is placed or assumed already; a second binding could bind it twice.
        """
        if pod.uid in self.cluster.pods:
            raise ValueError(
                f"{pod.key} is already on {self.node_of(pod.uid)}; it cannot be assumed on {node}"
            )
        self.assumed[pod.uid] = node
        self.cluster.place(pod, node)

    def forget(self, uid: str) -> None:
        """Forget an assumed pod whose binding failed; a confirmed pod stays."""
        if uid in self.assumed:
            self.remove_pod(uid)
