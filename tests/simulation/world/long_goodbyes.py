"""Pods that somebody's finalizer keeps for longer than a victim of preemption is waited for."""

from __future__ import annotations

from random import Random

from roadstead.controllers.ownership import key_of
from roadstead.store.api import Write
from roadstead.store.store import EventType
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.cluster import SimulatedCluster
from simulation.world.part import Part

FINALIZER = "simulated.test/goodbye"

#: Seconds that a deleted pod stays: beyond its grace period and five minutes, which victims have.
STAYS_S = 345.0

#: Pods of a run that stay so long, at most.
MOST = 2


class LongGoodbyes(Part):
    """The first pods of a low priority that are deleted do not leave."""

    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        super().__init__(cluster, random)
        self._held = 0

    def begin(self) -> None:
        """Pods of a low priority are held as soon as they exist, and their deletions are followed."""
        self.api.subscribe("pods", self._changed)

    def end(self) -> None:
        """Those that stay leave as usual."""
        for each in self.cluster.objects("pods"):
            if "deletionTimestamp" not in each["metadata"]:
                self.let_go(key_of(each))

    def _changed(self, kind: EventType, pod: Obj, old: Obj | None) -> None:
        queue, key = self.cluster.context.queue, key_of(pod)
        if kind == "ADDED" and pod["spec"].get("priority", 0) < 0 and self._held < MOST:
            queue.add(self.hold, key, 0.0)
        leaves = "deletionTimestamp" in pod["metadata"]
        is_new = leaves and (old is None or "deletionTimestamp" not in old["metadata"])
        if kind != "DELETED" and is_new and FINALIZER in (pod["metadata"].get("finalizers") or ()):
            self._held += 1
            queue.add(self.let_go, key, STAYS_S if self._held <= MOST else 0.0)

    def hold(self, key: str) -> None:
        """Somebody's finalizer is on the pod."""
        found = self.cluster.context.find("pods", key)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            pod = copied(found)
            pod["metadata"]["finalizers"] = [*(pod["metadata"].get("finalizers") or ()), FINALIZER]
            self.api.update("pods", pod, Write())

    def let_go(self, key: str) -> None:
        """Nothing holds the pod any more."""
        found = self.cluster.context.find("pods", key)
        if found is None or FINALIZER not in (found["metadata"].get("finalizers") or ()):
            return
        pod = copied(found)
        pod["metadata"]["finalizers"] = [one for one in pod["metadata"]["finalizers"] if one != FINALIZER]
        self.api.update("pods", pod, Write())
