"""Part is what a feature adds to a world: objects at the beginning, and acts of people later."""

from __future__ import annotations

from random import Random
from typing import Any

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import NAMESPACE, SimulatedCluster


class Part:
    """One feature's part of the world; a subclass says what it consists of.

    Args:
        random: Of this part alone.
    """

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.random = random
        self._made = 0

    def begin(self) -> None:
        """Create what is there at the beginning."""

    def act(self) -> None:
        """Somebody does something to it."""

    def end(self) -> None:
        """What people have switched off for a while is on again."""

    def name(self, prefix: str) -> str:
        """A name that nothing of this part has yet."""
        self._made += 1
        return f"{prefix}-{self._made}"

    def chosen(self, resource: str) -> Obj | None:
        """A copy of an object that exists."""
        found = self.cluster.objects(resource)
        return copied(self.random.choice(found)) if found else None

    def create(self, resource: str, name: str, **content: Any) -> Obj:
        """An object of the namespace, or of the cluster."""
        metadata: Obj = {"name": name, **content.pop("metadata", {})}
        if self.api.resource(resource).namespaced:
            metadata.setdefault("namespace", NAMESPACE)
        return self.api.create(resource, {"metadata": metadata, **content})

    def container(self) -> Obj:
        """A container with requests."""
        cpu = self.random.choice(("100m", "300m", "500m", "0.8", "1200m"))
        memory = self.random.choice(("64Mi", "256M", "1Gi"))
        return {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}

    def deployment(self, name: str, replicas: int, labels: Obj | None = None, **spec: Any) -> Obj:
        """A Deployment whose pods the operator places."""
        own: Obj = {"app": name}
        template = {
            "metadata": {"labels": {**own, **(labels or {})}},
            "spec": {"schedulerName": "plimsoll", "containers": [self.container()], **spec},
        }
        wanted = {"replicas": replicas, "selector": {"matchLabels": own}, "template": template}
        return self.create("deployments.apps", name, spec=wanted)
