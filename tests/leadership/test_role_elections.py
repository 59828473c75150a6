"""Replicas that share the work, by the clock: their roles, their ends, and processes that do not share."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from leadership.test_leader import Candidate
from plimsoll.leadership.election import Election, Terms
from plimsoll.leadership.fence import Fence
from plimsoll.leadership.leader import Elected, ElectedProcess
from plimsoll.leadership.role_elections import GROUP, RoleElections
from plimsoll.leadership.roles import NODE_ROLES, REBALANCING, Role, RoleKind, scheduler_role
from plimsoll.testing.fakes import FakeClock, FakeLeases, FakeRandomness, FakeRecorder, RememberingObserver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.ports.leases import LeasePort

ROLES = (REBALANCING, scheduler_role("a"), scheduler_role("b"), *NODE_ROLES)


class Leases:
    """All leases of a namespace."""

    def __init__(self) -> None:
        self.group = FakeLeases()
        self.of: dict[Role, FakeLeases] = {}
        for role in ROLES:
            self.of[role] = FakeLeases()
            self.of[role].reference = {"kind": "Lease", "namespace": "kube-system", "name": role.lease("p")}

    def holders(self) -> Counter[str]:
        """How many roles each has."""
        return Counter(each.lease.holder for each in self.of.values() if each.lease and each.lease.holder)

    def roles(self, who: str, kind: RoleKind) -> int:
        """How many roles of a kind one has."""
        return sum(
            role.kind is kind and each.lease is not None and each.lease.holder == who
            for role, each in self.of.items()
        )


class Member:
    """A replica that ends the work of a role as soon as it is asked to."""

    def __init__(self, clock: FakeClock, leases: Leases, identity: str) -> None:
        self.fence, self.clock = Fence(clock), clock
        self.process = ElectedProcess()
        self.spare: dict[Role, asyncio.Event] = {role: asyncio.Event() for role in ROLES}
        self.elections = RoleElections(
            identity,
            Terms(),
            leases.group,
            lambda role: leases.of[role],
            self._elect,
            self.process.notify,
            lambda role: self.spare[role].set(),
            clock,
        )

    def _elect(self, election: Election, leases: LeasePort) -> Elected:
        return Elected(
            election,
            leases,
            self.fence,
            self.process,
            self.clock,
            FakeRandomness(),
            FakeRecorder(),
            RememberingObserver(),
        )

    async def _hold(self, role: Role) -> None:
        while True:
            elected = self.elections.enter(role)
            task = asyncio.ensure_future(elected.run())
            try:
                await self.spare[role].wait()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            self.spare[role].clear()
            await elected.give_up()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[object]]:
        """Take part; yields the task."""

        async def run() -> None:
            group = self.elections.group.elected
            await asyncio.gather(group.run(), self.elections.run(), *map(self._hold, ROLES))

        self.elections.group.elected.stand()
        task = asyncio.ensure_future(run())
        await self.clock.advance(0)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def pass_by(clock: FakeClock, seconds: int) -> None:
    """Let time pass in steps shorter than any of the replicas'."""
    for _ in range(4 * seconds):
        await clock.advance(0.25)


async def test_a_replica_takes_everything_and_passes_half_of_it_on_to_a_second_one() -> None:
    """Each then has a scheduler name and three shares; the first goes on rebalancing."""
    clock, leases = FakeClock(), Leases()
    one, two = Member(clock, leases, "one"), Member(clock, leases, "two")
    async with one.running():
        await pass_by(clock, 4)
        assert leases.holders() == {"one": len(ROLES)}
        assert one.fence.seconds_left() > 5
        async with two.running():
            await pass_by(clock, 15)

            for who in ("one", "two"):
                assert leases.roles(who, RoleKind.SCHEDULER) == 1
                assert leases.roles(who, RoleKind.NODES) == 3
            assert leases.of[REBALANCING].lease.holder == "one"
            assert one.fence.seconds_left() > 5
            assert two.fence.seconds_left() > 5


async def test_a_claim_that_is_on_its_way_is_not_withdrawn() -> None:
    """It may be stored already; whether the role should be another's is decided after the answer."""
    clock, leases = FakeClock(), Leases()
    one, two = Member(clock, leases, "one"), Member(clock, leases, "two")
    async with one.running(), two.running():
        await pass_by(clock, 20)
        role = next(role for role in ROLES if leases.of[role].lease.holder == "one" and role != REBALANCING)
        two.elections.bound = frozenset((role,))  # so it goes with rebalancing, which is of the other
        election = two.elections.candidates[role].election
        for is_claiming in (True, False):
            election.stands, election._writes = True, is_claiming
            two.elections._settled = None
            await two.elections.look()
            assert election.stands is is_claiming
            assert (two.elections._settled is None) is is_claiming, "it is looked at again"


async def test_the_roles_of_a_replica_that_dies_are_taken_when_their_leases_expire() -> None:
    """Not before; and those of the other are renewed all the time."""
    clock, leases = FakeClock(), Leases()
    one, two = Member(clock, leases, "one"), Member(clock, leases, "two")
    async with one.running() as task, two.running():
        await pass_by(clock, 20)
        assert len(leases.holders()) == 2
        task.cancel()
        await pass_by(clock, 14)
        assert len(leases.holders()) == 2
        assert two.fence.seconds_left() > 5, "what it has is not touched"
        await pass_by(clock, 7)

        assert leases.holders() == {"two": len(ROLES)}
        assert two.fence.seconds_left() > 5


async def test_nothing_is_shared_while_one_process_does_all_the_work() -> None:
    """It is of an older version, or without the flag; once the group has its lease, it keeps that one out."""
    clock, leases = FakeClock(), Leases()
    old, new = Candidate(clock, leases.group, "old"), Member(clock, leases, "new")
    async with old.running() as task, new.running():
        await pass_by(clock, 30)
        assert leases.holders() == {}
        assert not new.fence.seconds_left()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await old.leadership.release()
        assert not old.may_write
        await pass_by(clock, 12)
        assert leases.holders() == {"new": len(ROLES)}
        again = Candidate(clock, leases.group, "again")
        async with again.running():
            await pass_by(clock, 40)

            assert not again.may_write
            assert again.leadership.standing == f"standing by for {GROUP}"


async def test_a_replica_that_cannot_renew_one_role_writes_nothing_more() -> None:
    """The fence of a process is open for as long as every lease that it holds is surely its own."""
    clock, leases = FakeClock(), Leases()
    one = Member(clock, leases, "one")
    async with one.running():
        await pass_by(clock, 5)
        leases.of[NODE_ROLES[2]].before = asyncio.Event().wait  # type: ignore[assignment] # a fake differs on purpose
        await pass_by(clock, 13)

        assert one.fence.seconds_left() == 0
