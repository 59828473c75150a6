"""Begins and ends the work of the roles that this replica holds."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from plimsoll.app.scheduling_wing import SchedulingWing
from plimsoll.app.startup import Startup
from plimsoll.cluster.node_shares import NodeShares
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.roles import Role, RoleKind
from plimsoll.scheduling.shared_nodes.answers import RequestAnswers
from plimsoll.scheduling.shared_nodes.binder import SharedNodeBinder

#: Seconds for work under way to end when a role is passed on, and seconds without a lost response before
#: that.
END_S, ANSWERED_S = 10.0, 5.0


class RoleDuties:
    """The work of roles: a :class:`plimsoll.app.replica.leadership.Duties`.

    Args:
        startup: Lists what other replicas wrote.
        wing: Schedules the pods of the held scheduler names.
        shares: The held nodes; written here.
        binder: Binds to the held nodes.
        answers: Handles other replicas' requests for bindings to them.
        rebalancing: Set when this replica rebalances.
    """

    def __init__(
        self,
        startup: Startup,
        wing: SchedulingWing,
        shares: NodeShares,
        binder: SharedNodeBinder,
        answers: RequestAnswers,
        rebalancing: asyncio.Event,
        fence: Fence,
    ) -> None:
        self._startup = startup
        self._wing = wing
        self._shares = shares
        self._binder = binder
        self._answers = answers
        self._rebalancing = rebalancing
        self._fence = fence
        self._known: Mapping[str, ProfileScheduler] = {}
        self._held: frozenset[str] = frozenset()

    def serve(self, schedulers: Mapping[str, ProfileScheduler]) -> None:
        """Set the policies' schedulers."""
        self._known = schedulers
        self._wing.serve(schedulers, schedulers.keys() - self._held)
        self._startup.pass_on_pods()
        self._answers.look_at_all()

    async def begin(self, role: Role, since: float) -> None:
        """Begin the work of a role; no other process has done it since this monotonic time."""
        await self._startup.until_listed(since)
        match role.kind:
            case RoleKind.REBALANCING:
                self._rebalancing.set()
            case RoleKind.SCHEDULER:
                self._hold(self._held | {role.name})
                self._wing.take_over(role.name)
            case RoleKind.NODES:
                self._hold_nodes(self._shares.held | {int(role.name)})

    async def end(self, role: Role) -> bool:
        """End the work; returns whether nothing of it is under way any more. If False, the work continues."""
        match role.kind:
            case RoleKind.SCHEDULER:
                self._hold(self._held - {role.name})
                with suppress(TimeoutError):
                    async with asyncio.timeout(END_S):
                        await self._wing.until_settled(role.name)
                    return True
                self._hold(self._held | {role.name})
            case RoleKind.NODES:
                share = int(role.name)
                self._hold_nodes(self._shares.held - {share})
                with suppress(TimeoutError):
                    async with asyncio.timeout(END_S):
                        await self._binder.until_idle(share)
                    if self._fence.is_answered(ANSWERED_S):  # a binding without a response may still happen
                        return True
                self._hold_nodes(self._shares.held | {share})
        return False

    def _hold(self, schedulers: frozenset[str]) -> None:
        self._held = schedulers
        self.serve(self._known)

    def _hold_nodes(self, shares: frozenset[int]) -> None:
        self._shares.held = shares
        self._answers.look_at_all()
