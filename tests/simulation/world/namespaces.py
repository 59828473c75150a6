"""A second namespace with workloads and budgets, which somebody deletes and creates again."""

from __future__ import annotations

from roadstead.values.resources import Obj
from simulation.cluster import RECORDS, SCHEDULER
from simulation.world.part import Part

SECOND = "second"

#: Phases of a record whose move is under way.
OPEN = ("Planned", "Surging", "Evicting", "Evicted")


class Namespaces(Part):
    """It goes preferably while one of its pods is being moved."""

    def begin(self) -> None:
        """The namespace, with Deployments of which some have budgets, and a pod without an owner."""
        self.api.create("namespaces", {"metadata": {"name": SECOND}})
        for _ in range(self.random.randint(1, 3)):
            self._add(self.name("far"))
        pod = {"schedulerName": SCHEDULER, "containers": [self.container()]}
        self.create("pods", self.name("far-single"), metadata={"namespace": SECOND}, spec=pod)

    def act(self) -> None:
        """Delete it, surely where a move is under way, or else seldom; or create it again."""
        if self.api.find("namespaces", None, SECOND) is None:
            self.begin()
        elif self._moves() or self.random.random() < 0.1:
            self.api.delete("namespaces", None, SECOND)

    def _moves(self) -> bool:
        return any(
            record["metadata"]["namespace"] == SECOND and (record.get("status") or {}).get("phase") in OPEN
            for record in self.cluster.objects(RECORDS)
        )

    def _add(self, name: str) -> None:
        own: Obj = {"app": name}
        template = {
            "metadata": {"labels": own},
            "spec": {"schedulerName": SCHEDULER, "containers": [self.container()]},
        }
        replicas = self.random.randint(1, 4)
        wanted = {"replicas": replicas, "selector": {"matchLabels": own}, "template": template}
        self.create("deployments.apps", name, metadata={"namespace": SECOND}, spec=wanted)
        if self.random.random() < 0.5:
            spec = {"maxUnavailable": 1, "selector": {"matchLabels": own}}
            budget = {"namespace": SECOND}
            self.create("poddisruptionbudgets.policy", name, metadata=budget, spec=spec)
