"""Victims of preemption that stay for longer than they are waited for: their node is lost."""

from __future__ import annotations

from random import Random

from roadstead.kubelets.nodes import KUBELET, SIMULATED, STOPPED
from roadstead.store.api import Write
from roadstead.store.store import EventType
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import SimulatedCluster
from simulation.world.part import Part

#: Seconds for which the node is lost: beyond the grace period of a victim and the five minutes that it has.
LOST_S = 345.0


class LongGoodbyes(Part):
    """The kubelet falls silent whose pod of a low priority is the first to be deleted."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        super().__init__(cluster, random)
        self._lost = ""

    def begin(self) -> None:
        """Deletions are followed."""
        self.api.subscribe("pods", self._changed)

    def _changed(self, kind: EventType, pod: Obj, _old: Obj | None) -> None:
        leaves = kind == "MODIFIED" and "deletionTimestamp" in pod["metadata"]
        node = pod["spec"].get("nodeName") or ""
        if leaves and not self._lost and node and pod["spec"].get("priority", 0) < 0:
            self._lost = node
            queue = self.cluster.context.queue
            queue.add(self._silence, node, 0.0)
            queue.add(self._wake, node, LOST_S)

    def _silence(self, node: str) -> None:
        self._say(node, STOPPED)

    def _wake(self, node: str) -> None:
        self._say(node, SIMULATED)

    def _say(self, name: str, word: str) -> None:
        if self.api.find("nodes", None, name):
            node = copied(self.api.get("nodes", None, name))
            node["metadata"].setdefault("annotations", {})[KUBELET] = word
            self.api.update("nodes", node, Write())
