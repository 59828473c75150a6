"""A policy that renews pods all the time, and may evict in one half of each minute alone."""

from __future__ import annotations

from simulation.cluster import POLICIES, policy
from simulation.world.part import Part


class Windows(Part):
    """Half of each minute is closed."""

    def begin(self) -> None:
        """Pods that soon are old, and the policy."""
        for _ in range(2):
            name = self.name("window")
            self.deployment(name, self.random.randint(2, 4), labels={"renewed": "in-windows"})
        closed = {"name": "closed", "evictions": 0, "schedule": "* * * * *", "duration": "30s"}
        spec = {
            "mode": "Enforce",
            "schedule": {"intervalSeconds": 4},
            "strategies": [{"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 10}}],
            "limits": {"total": 2, "budgets": [closed]},
            "evictor": {
                "minPodAge": "1s",
                "minReplicas": 1,
                "labelSelector": {"matchLabels": {"renewed": "in-windows"}},
            },
        }
        self.api.create(POLICIES, policy("windows", rebalancing=spec))

    def end(self) -> None:
        """Nothing is renewed any more."""
        if self.api.find(POLICIES, None, "windows") is not None:
            self.api.delete(POLICIES, None, "windows")
