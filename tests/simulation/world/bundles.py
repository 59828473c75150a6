"""Policies whose moves go together: nodes that are emptied, and room that is made for pods that wait."""

from __future__ import annotations

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import POLICIES, RECORDS, policy
from simulation.world.approvals import APPROVED
from simulation.world.part import Part

#: Nodes beyond the ordinary ones, with a small pod or two each.
NODES = 3

STRATEGIES: tuple[tuple[Obj, ...], ...] = (
    ({"name": "ConsolidateNodes", "args": {"thresholds": {"cpu": 70}, "headroomPercent": 0}},),
    ({"name": "MakeRoomForPending", "args": {"maxMovesPerPod": 4}},),
    ({"name": "DefragmentResource", "args": {"block": {"cpu": "2"}, "maxMovesPerBlock": 3}},),
)


class Bundles(Part):
    """Many small pods, some large ones that come and go, and one policy that packs."""

    def begin(self) -> None:
        """Nodes, workloads, and the policy in place of the one that spreads pods."""
        for _ in range(NODES):
            self.cluster.add_node()
        for _ in range(3):
            self.deployment(self.name("small"), self.random.randint(2, 4))
        self.deployment(self.name("large"), 1)
        if self.api.find(POLICIES, None, "tidy") is not None:
            self.api.delete(POLICIES, None, "tidy")
        spec: Obj = {
            "mode": self.random.choice(("Enforce", "Approve", "Approve")),
            "planner": "Proven",
            "schedule": {"intervalSeconds": self.random.choice((5, 10))},
            "strategies": list(self.random.choice(STRATEGIES)),
            "evictor": {"minReplicas": 1, "minPodAge": "1s"},
        }
        self.api.create(POLICIES, policy("pack", rebalancing=spec))

    def act(self) -> None:
        """Proposals are answered, or workloads grow and shrink."""
        waiting = [
            copied(each)
            for each in self.cluster.objects(RECORDS)
            if (each.get("status") or {}).get("phase") == "Planned" and each["spec"].get("policy") == "pack"
        ]
        if waiting and self.random.random() < 0.8:
            self._answer(waiting)
        else:
            self._resize()

    def _answer(self, waiting: list[Obj]) -> None:
        """All are approved, or one is answered, or deleted."""
        drawn = self.random.random()
        one = self.random.choice(waiting)
        if drawn < 0.15:
            self.api.delete(RECORDS, one["metadata"]["namespace"], one["metadata"]["name"])
            return
        for record in waiting if drawn < 0.6 else [one]:
            notes = record["metadata"].setdefault("annotations", {})
            notes[APPROVED] = "true" if drawn < 0.8 else "false"
            self.api.update(RECORDS, record)

    def _resize(self) -> None:
        """A workload has more or fewer pods, or larger ones."""
        mine = [
            each
            for each in self.cluster.objects("deployments.apps")
            if each["metadata"]["name"].startswith(("small-", "large-"))
        ]
        if not mine:
            return
        chosen = copied(self.random.choice(mine))
        chosen["spec"]["replicas"] = self.random.randint(1, 4)
        if chosen["metadata"]["name"].startswith("large-"):
            requests = chosen["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
            requests["cpu"] = self.random.choice(("1200m", "1500m", "1900m"))
            chosen["spec"]["replicas"] = self.random.randint(0, 2)
        self.api.update("deployments.apps", chosen)

    def container(self) -> Obj:
        """A small one."""
        cpu = self.random.choice(("200m", "300m", "400m"))
        return {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
