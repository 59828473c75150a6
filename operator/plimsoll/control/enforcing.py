"""Carrying out a plan: one move after another, and a bundle's moves all or none.

When a move of a bundle is not made the rest of it stays: its room is given back, its node opened again.
"""

from collections.abc import Callable, Mapping

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control.closing import ClosedNodes
from plimsoll.control.keeping import RecordKeeper
from plimsoll.control.moving import Mover
from plimsoll.control.ports import Clock
from plimsoll.control.reporting import RunTotals
from plimsoll.engine.memory import Memory
from plimsoll.engine.moves import Rebalancing


class Enforcement:
    """Carries out plans.

    Args:
        policies: Those that rebalance, by name, at any moment.
        asked_for: What a policy asks for now; None when another spec has taken its place, or none has.
        keeper: The records.
        mover: Makes each move.
        closed: Nodes that are emptied.
        clock: Time.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        asked_for: Callable[[SchedulingPolicy], Rebalancing | None],
        keeper: RecordKeeper,
        mover: Mover,
        closed: ClosedNodes,
        clock: Clock,
    ) -> None:
        self._policies = policies
        self._asked_for = asked_for
        self._keeper = keeper
        self._mover = mover
        self._closed = closed
        self._clock = clock

    async def carry_out(self, totals: RunTotals, memory: Memory) -> None:
        """Make the moves of a run, and count them; ``memory`` is what past moves teach."""
        closed: dict[str, str] = {}  # nodes by the bundle that empties them
        try:
            await self._carry_out(totals, memory, closed)
        finally:
            self._closed.done(closed.values())

    async def _carry_out(self, totals: RunTotals, memory: Memory, closed: dict[str, str]) -> None:
        policy = totals.policy
        name = policy.metadata.name
        broken: set[str] = set()  # bundles of which a move was not made: the rest of them stays
        for move in totals.plan.moves:
            if self._policies.get(name) is not policy:
                self._mover.rooms.release(move.bundle)
                return  # changed, suspended or deleted meanwhile: the rest is dropped
            if move.bundle in broken:
                continue
            if not self._mover.rooms.keep_for(move, totals.plan.moves, self._clock.monotonic()):
                broken.add(move.bundle)
                continue
            if self._closed.concerns(move) and move.bundle not in closed:
                closed[move.bundle] = move.source
                if not await self._closed.close(move.source):
                    broken.add(move.bundle)
                    continue
            record = await self._keeper.open(move, name, Mode.ENFORCE, totals.cycle)
            if record is not None and await self._mover.make(
                record, move, lambda: self._asked_for(policy), memory, totals.evicted
            ):
                totals.evicted += 1
            elif move.bundle:
                broken.add(move.bundle)
                self._mover.rooms.release(move.bundle)
                if move.bundle in closed:
                    await self._closed.reopen(move.source)
