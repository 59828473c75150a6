"""SurgeHandlers carry out the instructions of surges: they start rollouts, and revert them."""

from collections.abc import Mapping

from plimsoll.rebalancing.moves.events import Event
from plimsoll.rebalancing.moves.executor import Awaited
from plimsoll.rebalancing.moves.instructions import RevertRollout, StartRollout
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.surges.rollouts import SurgeRollouts


class SurgeHandlers:
    """Starts and reverts rollouts.

    Args:
        rollouts: Reads and marks Deployments.
        machine: Knows what the records say.
    """

    def __init__(self, rollouts: SurgeRollouts, machine: MoveMachine) -> None:
        self._rollouts = rollouts
        self._machine = machine
        self.awaited: Mapping[type, Awaited] = {StartRollout: self._start, RevertRollout: self._revert}

    async def _start(self, order: StartRollout) -> Event:
        return await self._rollouts.start(order.key, self._machine.moves[order.key].spec)

    async def _revert(self, order: RevertRollout) -> Event:
        return await self._rollouts.revert(order.key, self._machine.moves[order.key].spec)
