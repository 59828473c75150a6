"""The scene of all deeds: the cluster, the network, the replicas, and pending undos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from promises.view import View
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import SimulatedCluster
from simulation.faults import FaultPlan
from simulation.network import Network
from simulation.replica import Replica

#: Seconds that a passing state lasts.
PASSING_S = (2.0, 40.0)

#: What does one deed; False where there was nothing to do it to.
Way = Callable[[], object]


class Scene:
    """What deeds are done to.

    Args:
        random: Draws who is hit, and for how long.
        view: What the checker sees; it allows for watches that are behind.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        network: Network,
        replicas: Sequence[Replica],
        random: Random,
        faults: FaultPlan,
        view: View,
    ) -> None:
        self.view = view
        self.cluster = cluster
        self.api = cluster.api
        self.network = network
        self.replicas = replicas
        self.random = random
        self.faults = faults
        self._made = 0
        self._undo: list[Way] = []

    def named(self, prefix: str) -> str:
        """A name that nothing has had."""
        self._made += 1
        return f"{prefix}-{self._made}"

    def chosen(self, resource: str, fits: Callable[[Obj], object] = bool) -> Any | None:
        """A copy of an object that exists, or None."""
        found = [each for each in self.cluster.objects(resource) if fits(each)]
        return copied(self.random.choice(found)) if found else None

    def found(self, resource: str, namespace: str | None, name: str) -> Obj | None:
        """An object; None where it is not there, or its resource is not served."""
        try:
            return self.api.find(resource, namespace, name)
        except StatusError:
            return None

    def node(self) -> Any | None:
        """A copy of a node that has registered, or None."""
        return self.chosen("nodes", lambda node: (node.get("status") or {}).get("allocatable"))

    def later(self, undo: Way, seconds: tuple[float, float] = PASSING_S) -> None:
        """Undo something in a while, at the latest when the faults stop."""

        def passed() -> None:
            if undo in self._undo:
                self._undo.remove(undo)
                attempted(undo)

        self._undo.append(undo)
        self.network.loop.call_later(self.random.uniform(*seconds), passed, context=self.network.context)

    def undo_all(self) -> None:
        """What was to pass has passed."""
        for undo in self._undo:
            attempted(undo)
        self._undo.clear()

    def tell(self, kind: str, what: object) -> None:
        """Into the story."""
        self.network.trace.tell(f"{self.network.loop.time():.6f} {kind:<12} {what}")


def attempted(way: Way) -> bool:
    """Do it; whether that was possible."""
    try:
        return way() is not False
    except StatusError:
        return False
