"""Deployments of one replica, and a policy that moves them by a rollout."""

from __future__ import annotations

from roadstead.values.copies import copied
from simulation.cluster import POLICIES, policy
from simulation.world.part import Part


class Surges(Part):
    """The replacement comes first."""

    def begin(self) -> None:
        """Deployments of one, and the policy."""
        for _ in range(self.random.randint(2, 4)):
            self.deployment(self.name("one"), 1)
        spec = {
            "mode": "Enforce",
            "surge": True,
            "planner": self.random.choice(("Proven", "Proven", "Optimal")),
            "schedule": {"intervalSeconds": 10, "triggers": ["NodeTaintsChanged"]},
            "strategies": [{"name": "RemovePodsViolatingNodeTaints"}],
            "limits": {"perNode": self.random.choice((1, 2, "100%"))},
        }
        self.api.create(POLICIES, policy("surge", rebalancing=spec))

    def act(self) -> None:
        """Somebody rolls out something else meanwhile, pauses a Deployment, or lets it go on."""
        ones = [
            each
            for each in self.cluster.objects("deployments.apps")
            if each["metadata"]["name"].startswith("one-")
        ]
        if not ones:
            return
        chosen = copied(self.random.choice(ones))
        if self.random.random() < 0.3:
            chosen["spec"]["paused"] = not chosen["spec"].get("paused", False)
        elif self.random.random() < 0.3:
            template = chosen["spec"]["template"]["metadata"].setdefault("annotations", {})
            template["edited"] = self.name("edit")
        self.api.update("deployments.apps", chosen)

    def end(self) -> None:
        """No Deployment is paused."""
        for each in self.cluster.objects("deployments.apps"):
            if each["spec"].get("paused"):
                chosen = copied(each)
                chosen["spec"]["paused"] = False
                self.api.update("deployments.apps", chosen)
