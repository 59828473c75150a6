"""Pods that take seconds to run and to be ready, and Deployments whose authors give a rollout few seconds."""

from __future__ import annotations

from random import Random

from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import SimulatedCluster
from simulation.world.part import Part

DEPLOYMENTS = "deployments.apps"
PREFIX = "roadstead.test/"
KEY = "slow"

#: Seconds for which a node is tainted.
TAINTED_S = (3.0, 15.0)

#: Workloads whose pods policies move off tainted nodes.
MOVED = ("one-", "slow-", "plain-", "asked-")


class SlowStarts(Part):
    """It comes after all others: what they have created starts slowly."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        super().__init__(cluster, random)
        self._tainted: set[str] = set()

    def begin(self) -> None:
        """Half of the workloads, and all whose pods policies move."""
        for each in self.cluster.objects(DEPLOYMENTS):
            if each["metadata"]["name"].startswith(MOVED) or self.random.random() < 0.5:
                self._slow(copied(each))

    def _slow(self, workload: Obj) -> None:
        notes = workload["spec"]["template"]["metadata"].setdefault("annotations", {})
        notes[f"{PREFIX}start-after"] = str(self.random.choice((0.5, 2, 4)))
        notes[f"{PREFIX}ready-after"] = str(self.random.choice((2, 4, 8)))
        if self.random.random() < 0.7:
            workload["spec"]["progressDeadlineSeconds"] = self.random.choice((2, 4, 6))
        self.api.update(DEPLOYMENTS, workload)

    def act(self) -> None:
        """A node with a pod that policies move is tainted for a while."""
        pods = [
            each
            for each in self.cluster.objects("pods")
            if each["metadata"]["name"].startswith(MOVED) and each["spec"].get("nodeName")
        ]
        if not pods:
            return
        node = self.random.choice(pods)["spec"]["nodeName"]
        self._taint(node, is_on=True)
        self._tainted.add(node)
        self.cluster.context.queue.add(self._untaint, node, self.random.uniform(*TAINTED_S))

    def end(self) -> None:
        """All nodes are as before."""
        for node in sorted(self._tainted):
            self._untaint(node)

    def _untaint(self, node: str) -> None:
        if node in self._tainted:
            self._tainted.discard(node)
            if self.api.find("nodes", None, node):
                self._taint(node, is_on=False)

    def _taint(self, name: str, *, is_on: bool) -> None:
        node = copied(self.api.get("nodes", None, name))
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != KEY]
        if is_on:
            taints.append({"key": KEY, "value": "yes", "effect": "NoSchedule"})
        node["spec"]["taints"] = taints
        self.api.update("nodes", node, Write())
