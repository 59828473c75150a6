"""People who maintain nodes: taints for a while, which strategies that look at taints act upon."""

from __future__ import annotations

from random import Random

from roadstead.store.api import Write
from roadstead.values.copies import copied
from simulation.cluster import SimulatedCluster
from simulation.world.part import Part

KEY = "maintenance"

#: Share of looks at a node after which its maintenance ends: policies need some seconds to see it.
ENDS = 0.35


class Maintenance(Part):
    """One node at a time is not for those that do not tolerate it."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        super().__init__(cluster, random)
        self._node = ""

    def act(self) -> None:
        """Begin with a node that has pods, or end."""
        if self._node:
            if self.random.random() < ENDS:
                self.end()
            return
        nodes = [pod["spec"].get("nodeName") for pod in self.cluster.objects("pods")]
        used = sorted({node for node in nodes if node})
        if used and len(self.cluster.objects("nodes")) > 2:
            node = self.random.choice(used)
            self._taint(node, is_on=True)
            self._node = node

    def end(self) -> None:
        """The node is as before."""
        node, self._node = self._node, ""
        if node and self.api.find("nodes", None, node):
            self._taint(node, is_on=False)

    def _taint(self, name: str, *, is_on: bool) -> None:
        node = copied(self.api.get("nodes", None, name))
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != KEY]
        if is_on:
            taints.append({"key": KEY, "value": "yes", "effect": "NoSchedule"})
        node["spec"]["taints"] = taints
        self.api.update("nodes", node, Write())
