"""Carrying out moves: one after another, and a bundle's moves all or none.

When a move of a bundle is not made, or comes to nothing while others wait for their turn, the rest of it
stays: its room is given back, its node opened again. A move that waits for another one of its workload
holds up nobody else: its bundle goes on beside later runs, with the places of what is left reserved.
"""

import functools
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.planning.history import Memory
from plimsoll.planning.moves import Move, Rebalancing
from plimsoll.ports.observer import Observer
from plimsoll.ports.ports import Clock
from plimsoll.rebalancing.breakers.displacement import Displacements
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.holding import Holds
from plimsoll.rebalancing.moves.moving import POLICY_CHANGED, Mover
from plimsoll.rebalancing.moves.verifying import Verification
from plimsoll.rebalancing.records.history import memory_of
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper
from plimsoll.rebalancing.run_status import RunReports, RunTotals
from plimsoll.timing.task_sets import PolicyLocks, PolicyTasks

#: Seconds between two looks at bundles that wait.
TURN_S = 1.0

#: The reason of records whose bundle came to an end before their move was begun.
NOT_ALL = "NotAll"


@dataclass(slots=True, eq=False)
class Undertaking:
    """Moves that are made in order; those of a bundle all or none.

    Attributes:
        totals: Of the run that it belongs to; its evictions are counted.
        moves: All of it.
        proposals: The records of the moves by the pod's uid, where people were asked; else they are written
            when their turn comes.
        left: Moves whose turn has not come.
        begun: Keys of the records of moves that were made.
        node: That is emptied and was closed for it, or "".
    """

    totals: RunTotals
    moves: tuple[Move, ...]
    proposals: Mapping[str, Record] = field(default_factory=dict)
    left: deque[Move] = field(init=False)
    begun: list[str] = field(default_factory=list)
    node: str = ""

    def __post_init__(self) -> None:
        """Those that need not wait come first: the places of the others are reserved."""
        self.left = deque(sorted(self.moves, key=lambda move: move.waits))

    @property
    def bundle(self) -> str:
        """What tells its moves from others, or ""."""
        return self.moves[0].bundle


class Enforcement:
    """Carries out moves.

    Args:
        policies: Those that rebalance, by name, at any moment.
        asked_for: What a policy asks for now; None when another spec has taken its place, or none has.
        keeper: The records.
        mover: Makes each move.
        verification: Knows which moves are under way.
        holds: Keep the places of moves that wait.
        closed: Nodes that are emptied.
        displacements: Told before each move.
        reports: Told of moves that are made later than in their run.
        locks: One for each policy, held while its moves are made, and while its run is.
        clock: Time.
        observer: Told of failures.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        asked_for: Callable[[SchedulingPolicy], Rebalancing | None],
        keeper: RecordKeeper,
        mover: Mover,
        verification: Verification,
        holds: Holds,
        closed: ClosedNodes,
        displacements: Displacements,
        reports: RunReports,
        locks: PolicyLocks,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._asked_for = asked_for
        self._keeper = keeper
        self._mover = mover
        self._verification = verification
        self._holds = holds
        self._closed = closed
        self._displacements = displacements
        self._reports = reports
        self._locks = locks
        self._clock = clock
        self._observer = observer
        self._waiting: list[Undertaking] = []

    async def carry_out(self, totals: RunTotals, memory: Memory) -> None:
        """Make the moves of a run, and count them; ``memory`` is what past moves teach."""
        each_alone = enumerate(totals.plan.moves)
        for _, group in groupby(each_alone, lambda numbered: numbered[1].bundle or numbered[0]):
            if not self._is_current(totals.policy):
                return  # changed, suspended or deleted meanwhile: the rest is dropped
            await self.undertake(Undertaking(totals, tuple(move for _, move in group)), memory)

    async def undertake(self, work: Undertaking, memory: Memory) -> None:
        """Make moves, as far as none of them has to wait; the rest follows."""
        for move in work.moves:
            if move.waits:
                self._holds.reserve(move, work.totals.policy.metadata.name)
        if not await self._advance(work, memory):
            self._waiting.append(work)

    def under_way(self) -> Collection[str]:
        """Keys of proposals whose turn will come without another answer."""
        return {
            work.proposals[move.pod.uid].key
            for work in self._waiting
            for move in work.left
            if move.pod.uid in work.proposals
        }

    def left(self, name: str) -> int:
        """How many moves of a policy wait for their turn; its later runs leave room for them."""
        return sum(len(work.left) for work in self._waiting if work.totals.policy.metadata.name == name)

    async def run(self) -> None:
        """Go on with what waits, until cancelled; the policies do not wait for each other."""
        async with PolicyTasks() as tasks:
            while True:
                await self._clock.sleep(TURN_S)
                for name in dict.fromkeys(work.totals.policy.metadata.name for work in self._waiting):
                    tasks.start(name, functools.partial(self._go_on, name))

    async def _go_on(self, name: str) -> None:
        """Go on with what waits of one policy."""
        for work in [each for each in self._waiting if each.totals.policy.metadata.name == name]:
            if not self._has_turn(work):
                continue
            try:
                async with self._locks.of(name):
                    memory = memory_of(self._keeper.known.values(), self._clock.now())
                    if await self._advance(work, memory):
                        self._waiting.remove(work)
                await self._reports.write(name)
            except Exception as exc:  # noqa: BLE001 - whatever one bundle does, the others go on
                if work in self._waiting:
                    self._waiting.remove(work)
                self._observer.failed(f"going on with moves of {name}", repr(exc))

    # ------------------------------------------------------------------------------------------------

    def _is_current(self, policy: SchedulingPolicy) -> bool:
        return self._policies.get(policy.metadata.name) is policy

    def _has_turn(self, work: Undertaking) -> bool:
        """Whether there is something to do: the next move may be made, or none will be."""
        return (
            not self._is_current(work.totals.policy)
            or self._came_to_nothing(work)
            or not self._verification.in_flight().get(work.left[0].workload.uid)
        )

    def _came_to_nothing(self, work: Undertaking) -> bool:
        """Whether a move that was made has failed, or one that waits was called off."""
        begun = (self._keeper.known.get(key) for key in work.begun)
        proposed = (self._keeper.known.get(record.key) for record in self._proposals(work))
        return any(
            record is not None and record.is_finished and record.phase is not Phase.SETTLED
            for record in begun
        ) or any(record is None or record.is_finished for record in proposed)

    async def _advance(self, work: Undertaking, memory: Memory) -> bool:
        """Make the moves whose turn has come; whether nothing is left to do."""
        try:
            while work.left:
                if not self._is_current(work.totals.policy):
                    await self._end(work, *POLICY_CHANGED)
                    return True
                if self._came_to_nothing(work):
                    break
                move = work.left[0]
                if move.waits and self._verification.in_flight().get(move.workload.uid):
                    return False
                if not await self._make(work, move, memory):
                    break
                work.left.popleft()
        except Exception:
            await self._end(work, NOT_ALL, "a move that it goes together with could not be judged")
            raise
        await self._end(work, NOT_ALL, "a move that it goes together with was not made")
        return True

    async def _make(self, work: Undertaking, move: Move, memory: Memory) -> bool:
        """Make one move; whether the others of its bundle may follow."""
        totals, policy = work.totals, work.totals.policy
        self._holds.unreserve(move)
        if move.pod.uid not in work.proposals and self._mover.is_asked(move.pod.uid):
            return True  # an earlier run has asked it to leave
        if work.node and work.begun and self._mover.node_of(move.pod.uid) != move.source:
            return True  # it has left the node by itself meanwhile
        if not self._mover.rooms.keep_for(move, work.moves, self._clock.monotonic()):
            return False
        if self._closed.concerns(move) and not work.node:
            if not await self._closed.close(move.source):
                self._closed.done([move.source])
                return False
            work.node = move.source
        record = work.proposals.get(move.pod.uid)
        if record is None:
            name = policy.metadata.name
            record = await self._keeper.open(move, name, Mode.ENFORCE, totals.cycle)
        self._displacements.before_move(policy.metadata.name)
        if record is None or not await self._mover.make(
            record, move, lambda: self._asked_for(policy), memory, totals.evicted
        ):
            return False
        totals.evicted += 1
        if work.proposals:
            self._reports.count(policy.metadata.name, evicted=1)
        work.begun.append(record.key)
        return True

    async def _end(self, work: Undertaking, reason: str, message: str) -> None:
        """All is made, or what is left stays."""
        for move in work.left:
            self._holds.unreserve(move)
        if work.left:
            self._mover.rooms.release(work.bundle)
        for record in self._proposals(work):
            await self._keeper.cancel(record, reason, message)
        if work.node:
            if work.left:
                await self._closed.reopen(work.node)
            self._closed.done([work.node])
        work.left.clear()

    def _proposals(self, work: Undertaking) -> list[Record]:
        """The proposals whose turn has not come."""
        return [work.proposals[move.pod.uid] for move in work.left if move.pod.uid in work.proposals]
