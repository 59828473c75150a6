"""RefusedWrites refuse what the operator writes, of some resources and for a whole run."""

from __future__ import annotations

from functools import cached_property
from random import Random

from simulation.deeds.scene import Scene
from simulation.exchanges import Exchange
from simulation.faults import FaultKind
from simulation.refusals import right_of

#: What is answered.
ANSWERS = (
    FaultKind.UNAUTHORIZED,
    FaultKind.CONFLICT,
    FaultKind.INVALID,
    FaultKind.INTERNAL_ERROR,
    FaultKind.TOO_MANY_REQUESTS,
)

#: Share of the resources whose writes are refused, so that what leads to a write comes through.
RESOURCES = 0.4


class RefusedWrites:
    """Acts at writes: an :class:`simulation.network.Interference`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @cached_property
    def _drawn(self) -> int:
        return self._scene.random.getrandbits(64)

    def arrives(self, exchange: Exchange) -> None:
        """A request is at the API server and will be carried out now, unless it is refused."""
        right = right_of(exchange.request.method, exchange.request.path)
        faults = self._scene.faults
        if right is None or exchange.request.method == "GET" or FaultKind.WRITE_REFUSED not in faults.enabled:
            return
        if Random(f"{self._drawn} {right}").random() < RESOURCES and faults.at_write(FaultKind.WRITE_REFUSED):
            exchange.fault = self._scene.random.choice(ANSWERS)
            faults.count(FaultKind.WRITE_REFUSED)

    def has_taken_effect(self, exchange: Exchange) -> None:
        """Nothing happens then."""
