"""PriorityClasses, and pods of high priority that arrive while the cluster is full."""

from __future__ import annotations

from random import Random

from roadstead.values.copies import copied
from simulation.cluster import POLICIES, SimulatedCluster
from simulation.world.part import Part

CLASSES = {"gold": 1000, "silver": 100, "lead": -10}
PATIENT = "patient"  #: ahead in the queue, without preemption

#: Deployments of high priority that may arrive in a run.
RUSHES = 3


class Priorities(Part):
    """Pods that are worth more than others.

    Args:
        are_evicted: Whether victims leave through the Eviction API, with a record each.
    """

    def __init__(self, cluster: SimulatedCluster, random: Random, *, are_evicted: bool) -> None:
        super().__init__(cluster, random)
        self._are_evicted = are_evicted
        self._rushes = 0

    def begin(self) -> None:
        """Classes, a Deployment of each, and enough pods of no class to fill most nodes."""
        for name, value in CLASSES.items():
            self.create("priorityclasses.scheduling.k8s.io", name, value=value)
        self.create(
            "priorityclasses.scheduling.k8s.io", PATIENT, value=500, preemptionPolicy="Never", description=""
        )
        if self._are_evicted:
            serve = copied(self.api.get(POLICIES, None, "serve"))
            serve["spec"]["scheduling"]["preemption"] = {"viaEviction": True}
            self.api.update(POLICIES, serve)
        self.deployment("filler", 2 * len(self.cluster.objects("nodes")), priorityClassName="lead")
        for name in (*CLASSES, PATIENT):
            self.deployment(f"class-{name}", self.random.randint(1, 2), priorityClassName=name)

    def act(self) -> None:
        """Important pods arrive, or leave again."""
        if self._rushes < RUSHES and self.random.random() < 0.7:
            self._rushes += 1
            priority = self.random.choice(("gold", "gold", "silver", PATIENT))
            self.deployment(self.name("rush"), self.random.randint(1, 4), priorityClassName=priority)
            return
        rushes = [
            each
            for each in self.cluster.objects("deployments.apps")
            if each["metadata"]["name"].startswith("rush-")
        ]
        if rushes:
            chosen = copied(self.random.choice(rushes))
            chosen["spec"]["replicas"] = self.random.randint(0, 3)
            self.api.update("deployments.apps", chosen)
