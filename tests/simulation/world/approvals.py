"""A policy whose moves wait for approval, and people who approve and reject them."""

from __future__ import annotations

from roadstead.values.copies import copied
from simulation.cluster import POLICIES, RECORDS, policy
from simulation.world.part import Part

APPROVED = "plimsoll.dev/approved"


class Approvals(Part):
    """Answers come late, change, or never come."""

    def begin(self) -> None:
        """Pods whose node somebody will taint, and the policy."""
        self.deployment(self.name("asked"), self.random.randint(2, 4))
        spec = {
            "mode": "Approve",
            "planner": self.random.choice(("Proven", "Upstream")),
            "schedule": {"intervalSeconds": 10, "triggers": ["NodeTaintsChanged"]},
            "strategies": [{"name": "RemovePodsViolatingNodeTaints"}, {"name": "RemoveDuplicates"}],
            "evictor": {"minReplicas": 1},
        }
        self.api.create(POLICIES, policy("ask", rebalancing=spec))

    def act(self) -> None:
        """Answer one proposal, or all; or say something else after all."""
        waiting = [
            copied(each)
            for each in self.cluster.objects(RECORDS)
            if (each.get("status") or {}).get("phase") == "Planned" and each["spec"].get("policy") == "ask"
        ]
        if not waiting:
            return
        answered = waiting if self.random.random() < 0.3 else [self.random.choice(waiting)]
        for record in answered:
            annotations = record["metadata"].setdefault("annotations", {})
            annotations[APPROVED] = self.random.choice(("true", "true", "false"))
            self.api.update(RECORDS, record)
