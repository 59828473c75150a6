"""Holds placed and assumed pods, and writes the cluster's columns.

The state of a pod (kube-scheduler v1.36, ``backend/cache/interface.go``)::

              assume              confirmed by the watch
    (queue) ─────────▶ Assumed ───────────────────────────▶ Placed ──▶ gone
       ▲                  │                                    ▲
       └──── forget ──────┘          seen bound by the watch ──┘

An assumed pod counts in full: the next decision sees its node as taken, long before the API server has
heard of it. It never expires; it is confirmed, forgotten, or deleted.
"""

from plimsoll.framework import Node, Pod, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.validation import validate
from plimsoll.timing.signal import Signal


class Cache:
    """The one writer of the cluster.

    Attributes:
        cluster: The columns; everybody else reads.
        assumed: Uid to node name of the pods whose binding is not confirmed.
        waiting: Pods without a node by uid, as the watch shows them; written by the mirror.
        elsewhere: Those that wait for other replicas, and that no part of this one reads; not in ``waiting``.
        nodes_changed: Notified when the watch has shown a node, or that one is gone.
        volumes_changed: Notified when the watch has shown a claim or volume, or that one is gone.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.assumed: dict[str, str] = {}
        self.waiting: dict[str, Pod] = {}
        self.elsewhere: dict[str, Pod] = {}
        self.nodes_changed = Signal()
        self.volumes_changed = Signal()

    def info(self, pod: Pod) -> PodInfo:
        """The engine's view of a pod."""
        return self.cluster.templates.info(pod)

    def node_of(self, uid: str) -> str:
        """The node that a pod is placed or assumed on, "" when on none."""
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
        """A node was added or changed; whether a decision may change with it."""
        may_matter = self.cluster.set_node(node)
        self.nodes_changed.notify()
        return may_matter

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        self.cluster.remove_node(name)
        self.nodes_changed.notify()

    def set_placed(self, pod: PodInfo, node: str) -> bool:
        """The watch shows a pod on a node; whether it was not counted there before."""
        known = self.node_of(pod.uid)
        self.assumed.pop(pod.uid, None)
        self.cluster.place(pod, node)
        return known != node

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A pod is gone or has finished; the pod as it counted, or None when it did not."""
        self.assumed.pop(uid, None)
        return self.cluster.displace(uid)

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod on a node before the API server knows.

        Raises:
            ValueError: It is placed or assumed already; binding it again could bind it twice.
        """
        if pod.uid in self.cluster.pods:
            raise ValueError(
                f"{pod.key} is already on {self.node_of(pod.uid)}; it cannot be assumed on {node}"
            )
        self.assumed[pod.uid] = node
        self.cluster.place(pod, node)

    def forget(self, uid: str) -> None:
        """A binding failed: the assumed pod counts no longer. A confirmed pod stays."""
        if uid in self.assumed:
            self.remove_pod(uid)

    def validate(self) -> None:
        """Check the invariants."""
        assert all(self.node_of(uid) == node for uid, node in self.assumed.items())
        validate(self.cluster)
