"""Holds the roles that replicas share for as long as their leases are held, and passes them on.

The elections run in the election's thread (:mod:`plimsoll.leadership.role_elections`). Here, in the main
loop, each role has a task: it waits for the lease, has the work begun (:class:`Duties`), and ends it before
the lease is given to another replica. A lost lease ends the process, as for a single leader.
"""

import asyncio
from collections.abc import Collection, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from plimsoll.app.machine.machine import SideLoop
from plimsoll.leadership.leader import Elected
from plimsoll.leadership.role_elections import RoleElections
from plimsoll.leadership.roles import NODE_ROLES, REBALANCING, Role, scheduler_role
from plimsoll.timing.signal import Signal

T = TypeVar("T")


class Duties(Protocol):
    """Begins and ends the work of roles."""

    async def begin(self, role: Role, since: float) -> None:
        """Begin the work of a role; no other process has done it since this monotonic time."""

    async def end(self, role: Role) -> bool:
        """End the work; returns whether nothing of it is under way any more. If False, the work continues."""


class SharedLeadership:
    """This process's part in the shared work: a :class:`plimsoll.leadership.leader.Leadership`.

    Attributes:
        tried: Set once the holder of the group's lease is known.
        acquired: Set once this process takes part in the shared work.
    """

    def __init__(self, thread: SideLoop) -> None:
        self._thread = thread
        self._elections: RoleElections
        self._schedulers: frozenset[str] = frozenset()
        self._changed = Signal()
        self._spare: dict[Role, Signal] = {}

    def enter(self, elections: RoleElections) -> None:
        """Set the elections in which it takes part."""
        self._elections = elections
        self._group: Elected = elections.group.elected
        self.tried, self.acquired = self._group.tried, self._group.acquired

    @property
    def since(self) -> float | None:
        """The monotonic time since which no process outside the group has led."""
        return self._group.since

    @property
    def held(self) -> list[Role]:
        """The roles of this process, sorted."""
        now = self._elections.now
        return sorted(
            role for role, each in self._elections.candidates.items() if each.election.is_leading(now)
        )

    @property
    def standing(self) -> str:
        """The state in words."""
        if self._group.since is None:
            return self._group.standing
        roles = ", ".join(map(str, self.held))
        me = self._elections.identity
        return f"leading as {me}: {roles}" if roles else f"standing by as {me}; the work is shared"

    def stand(self, *, was_led: bool = False) -> None:
        """Take part in the elections from now on."""
        self._thread.call(partial(self._group.stand, was_led=was_led))

    def overdue_s(self) -> float:
        """Seconds by which the latest election's next step is overdue."""
        return self._elections.overdue_s()

    def serve(self, schedulers: Collection[str], bound: Collection[str]) -> None:
        """Have one role for each of these scheduler names; the bound ones go with rebalancing."""
        self._elections.bound = frozenset(map(scheduler_role, bound))
        self._schedulers = frozenset(schedulers)
        self._changed.notify()

    def spare(self, role: Role) -> None:
        """Give this role to another replica."""
        if role in self._spare:
            self._spare[role].notify()

    async def run(self) -> None:
        """Renew the group's lease until cancelled or deposed."""
        looking = asyncio.ensure_future(self._thread.run(self._elections.run()))
        try:
            await self._thread.run(self._group.run())
        finally:
            await _ended(looking)

    async def share(self, duties: Duties) -> None:
        """Hold roles, do their work, and pass them on, until cancelled or deposed.

        Raises:
            LeadershipLost: A lease could not be renewed in time.
        """
        await self.acquired.wait()
        tasks: dict[Role, asyncio.Task[None]] = {}
        try:
            while True:
                seen = self._changed.count
                roles = {REBALANCING, *NODE_ROLES, *map(scheduler_role, self._schedulers)}
                for role in sorted(roles - tasks.keys()):
                    tasks[role] = asyncio.create_task(self._hold(role, duties), name=f"role {role}")
                    tasks[role].add_done_callback(lambda _: self._changed.notify())
                for role in sorted(tasks.keys() - roles):
                    await self._retire(role, tasks.pop(role), duties)
                for task in tasks.values():
                    if task.done():
                        task.result()
                await self._changed.wait(seen)
        finally:
            await _ended(*tasks.values())

    async def _hold(self, role: Role, duties: Duties) -> None:
        """Hold one role whenever this process should, until cancelled or deposed."""
        self._spare[role] = spare = Signal()
        while True:
            elected = self._elections.enter(role)
            election = asyncio.ensure_future(self._thread.run(elected.run()))
            try:
                await _unless(election, elected.acquired.wait())
                since = max(self._group.since or 0.0, elected.since or 0.0)
                await _unless(election, duties.begin(role, since))
                while True:
                    await _unless(election, spare.wait())
                    if await _unless(election, duties.end(role)):
                        break
            finally:
                await _ended(election)
            await self._thread.run(elected.give_up())

    async def _retire(self, role: Role, task: asyncio.Task[None], duties: Duties) -> None:
        """Retire a role that does not exist any more, because its policy was deleted."""
        await _ended(task)
        candidate = self._elections.candidates[role]
        self._elections.leave(role)
        del self._spare[role]
        if candidate.elected.since is not None:
            await duties.end(role)
            await self._thread.run(candidate.elected.give_up())

    async def drain(self) -> None:
        """Stop sending writes, and wait a little for those under way."""
        await self._group.drain()

    async def release(self) -> None:
        """Release the leases of roles; the group's lease expires, unless others renew it."""
        await self._thread.run(self._elections.release())


async def _unless(election: "asyncio.Future[None]", work: Coroutine[Any, Any, T]) -> T:
    """Run work while an election continues; raises the error that ended the election."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task, election), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            election.result()
            raise AssertionError("an election has ended without a reason")
        return task.result()
    finally:
        await _ended(task)


async def _ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
