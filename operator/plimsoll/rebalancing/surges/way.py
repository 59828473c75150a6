"""RolloutSurges hands surges to the controller: transitions, sightings, handlers, Deployments."""

from collections.abc import Mapping, Sequence

from plimsoll.framework import ClusterObjects
from plimsoll.ports.objects import Rollouts
from plimsoll.rebalancing.execution.executor import Awaited, Immediate
from plimsoll.rebalancing.moves.events import Event
from plimsoll.rebalancing.moves.instructions import RevertRollout, StartRollout
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.surges import transitions
from plimsoll.rebalancing.surges.rollouts import SurgeRollouts
from plimsoll.rebalancing.surges.sightings import SurgeSightings


class RolloutSurges(SurgeRollouts):
    """Surges; see :class:`plimsoll.rebalancing.ways.SurgeWay`.

    Args:
        rollouts: Reads and marks Deployments.
        objects: Where ReplicaSets are looked up.
    """

    def __init__(self, rollouts: Rollouts, objects: ClusterObjects) -> None:
        super().__init__(rollouts)
        self.table = transitions.TABLE
        self.recovered: RecoveryRule = transitions.recovered
        self.sightings: Sequence[Sightings] = (SurgeSightings(objects),)
        self.immediate: Mapping[type, Immediate] = {}
        self.awaited: Mapping[type, Awaited] = {StartRollout: self._start, RevertRollout: self._revert}

    async def _start(self, order: StartRollout) -> Event:
        return await self.start(order.key, order.spec)

    async def _revert(self, order: RevertRollout) -> Event:
        return await self.revert(order.key, order.spec)
