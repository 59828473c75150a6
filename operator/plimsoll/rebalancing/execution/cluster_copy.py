"""Maintains a copy of the cluster in another thread, from images that are cheap to take.

A fork copies the names of all pods and all counts of the cluster. An image, which is taken by the writer's
thread, copies neither: the pods of a row are one mapping, which the cluster copies before it writes to it. In
a thread of its own, the copy takes over the rows whose mapping differs from the earlier image's, and updates
its own counts (docs/adr/0028-plans-in-forks.md).
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from plimsoll.devices.book import DeviceBook
from plimsoll.framework import PodInfo
from plimsoll.load.load_book import LoadBook
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import ClusterObjects

_NO_PODS: Mapping[str, PodInfo] = {}


class ClusterImage(Struct, frozen=True, eq=False):
    """A cluster at one moment, readable in any thread.

    Attributes:
        nodes: Node objects by row.
        rows: Row by node name.
        pods: The pods of each row by uid.
        strays: Pods by uid, by the name of an unknown node.
        claims: Pods by uid that hold reservations, by node name.
        objects: Everything else.
        load: The load of nodes and pods, by the same rows; None without readings.
    """

    nodes: Sequence[Node]
    rows: Mapping[str, int]
    pods: Sequence[Mapping[str, PodInfo]]
    strays: Mapping[str, Mapping[str, PodInfo]]
    claims: Mapping[str, Mapping[str, PodInfo]]
    objects: ClusterObjects
    load: LoadBook | None = None

    @classmethod
    def of(cls, cluster: Cluster, claims: Mapping[str, Mapping[str, PodInfo]]) -> "ClusterImage":
        """An image of the present cluster; called in the thread that writes the cluster and the claims."""
        return cls(
            list(cluster.nodes),
            dict(cluster.rows),
            cluster.share_pods(),
            {node: dict(pods) for node, pods in cluster.strays.items()},
            {node: dict(pods) for node, pods in claims.items()},
            cluster.objects.fork(),
            cluster.index(LoadBook).fork() if cluster.has_index(LoadBook) else None,
        )

    def stands_at(
        self, nodes: Iterable[str], cluster: Cluster, claims: Mapping[str, Mapping[str, PodInfo]]
    ) -> bool:
        """Whether these nodes, their pods and reservations, and all objects and budgets are unchanged.

        ``cluster`` and ``claims`` are those of the image.
        """
        objects, pods = cluster.objects, cluster.share_pods()
        if (objects.version, objects.budget_version) != (self.objects.version, self.objects.budget_version):
            return False
        devices, former = objects.known_ledger(DeviceBook), self.objects.known_ledger(DeviceBook)
        if devices is not None and (former is None or former.version != devices.version):
            return False
        for name in nodes:
            then, now = self.rows.get(name), cluster.rows.get(name)
            if then is None or now is None:
                return False
            if self.nodes[then] is not cluster.nodes[now] or self.pods[then] is not pods[now]:
                return False
            if self.claims.get(name, _NO_PODS) != claims.get(name, _NO_PODS):
                return False
        return True


class ClusterCopy:
    """A cluster of its own that follows images, with every reservation placed as a pod.

    Args:
        start: The initial cluster, which it owns from then on: a fork of the cluster, or an empty one.

    Attributes:
        cluster: The copy; only the thread that calls ``bring_up`` reads and forks it.
    """

    def __init__(self, start: Cluster) -> None:
        self.cluster = start
        self._known: Mapping[str, Mapping[str, PodInfo]] = {}
        self._claimed: list[str] = []

    def bring_up(self, image: ClusterImage) -> None:
        """Update the copy to the image."""
        cluster = self.cluster
        cluster.objects = image.objects
        for uid in self._claimed:
            cluster.displace(uid)
        self._bring_up_nodes(image)
        wanted = {node.name: pods for node, pods in zip(image.nodes, image.pods, strict=True)}
        wanted.update(image.strays)
        names = {*self._known, *wanted, *cluster.strays}
        changed = [name for name in names if self._known.get(name) is not wanted.get(name, _NO_PODS)]
        for name in changed:
            pods = wanted.get(name, _NO_PODS)
            for pod in [pod for pod in self._standing(name) if pods.get(pod.uid) is not pod]:
                cluster.displace(pod.uid)
        for name in changed:
            for uid, pod in wanted.get(name, _NO_PODS).items():
                if cluster.pods.get(uid) is not pod:
                    cluster.place(pod, name)
        if image.load is not None:
            rows = np.array([image.rows[node.name] for node in cluster.nodes], dtype=np.intp)
            cluster.adopt(image.load.arranged(cluster, rows))
        self._known = wanted
        self._claimed = []
        for node, pods in image.claims.items():
            for uid, pod in pods.items():
                if uid not in cluster.pods:
                    cluster.place(pod, node)
                    self._claimed.append(uid)

    def _bring_up_nodes(self, image: ClusterImage) -> None:
        cluster = self.cluster
        for name in [node.name for node in cluster.nodes if node.name not in image.rows]:
            cluster.remove_node(name)
        for node in image.nodes:
            row = cluster.rows.get(node.name)
            if row is None or cluster.nodes[row] is not node:
                cluster.set_node(node)

    def _standing(self, node: str) -> Iterable[PodInfo]:
        row = self.cluster.rows.get(node)
        return self.cluster.strays.get(node, _NO_PODS).values() if row is None else self.cluster.pods_on(row)
