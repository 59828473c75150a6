"""The executor of moves: instructions in order for each record, answers as events, failures contained."""

import asyncio
from typing import Any

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import BundleKey, RecordKey
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.bundles import beneficiaries_of
from plimsoll.rebalancing.moves.events import (
    BundlePlanned,
    Event,
    EvictionAnswered,
    RecordAnswered,
    Revalidated,
    TurnReached,
)
from plimsoll.rebalancing.moves.instructions import (
    CountMove,
    CreateRecord,
    EmitEvent,
    Evict,
    FollowReplacement,
    NoteDisplacement,
    ReleaseTarget,
    ReserveTarget,
    Revalidate,
    StopFollowing,
    WriteRecord,
)
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.state import BundleState, EvictionMethod, MoveStage
from plimsoll.testing.fakes import FakeClock, RememberingObserver, settled
from plimsoll.timing.timer import Timer
from rebalancing.moves.invariants import checked
from rebalancing.moves.moves_world import DONE, POLICY, World, a_move, facts_of, planned

QUIET = (
    ReserveTarget,
    ReleaseTarget,
    FollowReplacement,
    StopFollowing,
    EmitEvent,
    CountMove,
    NoteDisplacement,
)
KEY = RecordKey("default/web-1-aaaa")


class Desk:
    """An executor whose instructions are noted, and answered well unless told otherwise."""

    def __init__(self, **answers: Any) -> None:
        self.clock, self.observer = FakeClock(), RememberingObserver()
        self.timer = Timer(self.clock, self.observer)
        self.done: list[str] = []
        self.answers = answers
        self.world = World()
        self.executor = MoveExecutor(
            checked(MoveMachine(self.world.around)),
            self.timer,
            self.clock,
            self.observer,
            sightings=(),
            immediate=dict.fromkeys(QUIET, self.note),
            awaited=dict.fromkeys((CreateRecord, WriteRecord, Revalidate, Evict), self.carry_out),
        )

    def note(self, order: Any) -> tuple[Event, ...]:
        """An instruction that is carried out immediately."""
        self.done.append(type(order).__name__)
        return ()

    async def carry_out(self, order: Any) -> Event:
        """An instruction that waits for its answer."""
        await asyncio.sleep(0)
        name = type(order).__name__
        self.done.append(name)
        if name in self.answers:
            answer = self.answers.pop(name)
            if isinstance(answer, Exception):
                raise answer
            event: Event = answer(order)
            return event
        match order:
            case CreateRecord() | WriteRecord():
                return RecordAnswered(order.key, order.phase, DONE)
            case Revalidate():
                return Revalidated(order.key, order.move, EvictionMethod.EVICT)
            case _:
                return EvictionAnswered(order.key, DONE)

    async def plan(self, move: Any) -> None:
        """One move that stands alone."""
        self.world.pods[move.pod.uid] = facts_of(move)
        self.executor.post(
            BundlePlanned(
                BundleState(BundleKey(KEY), POLICY, (KEY,), 1, beneficiaries=beneficiaries_of(move))
            ),
            planned(KEY, move),
        )
        await settled()

    @property
    def stage(self) -> MoveStage:
        """What the move waits for."""
        return self.executor.machine.moves[KEY].stage


async def test_a_move_is_carried_out_in_order() -> None:
    """The target is reserved before anything is announced, and nothing is sent before that is on record."""
    desk = Desk()

    await desk.plan(a_move())
    await desk.executor.progress.until(desk.executor.is_idle)

    assert [each for each in desk.done if each not in ("EmitEvent", "NoteDisplacement")] == [
        "CreateRecord",
        "Revalidate",
        "ReserveTarget",
        "WriteRecord",
        "FollowReplacement",
        "Evict",
        "CountMove",
        "WriteRecord",
    ]
    assert desk.stage is MoveStage.REPLACING


async def test_an_announcement_that_breaks_is_called_off() -> None:
    """No move waits without an end for an answer that does not come."""
    desk = Desk(WriteRecord=ValueError("no such field"))

    await desk.plan(a_move())
    await desk.executor.progress.until(desk.executor.is_idle)

    state = desk.executor.machine.moves[KEY]
    assert (state.stage, state.phase, state.reason) == (MoveStage.CLOSED, Phase.CANCELLED, "NotRecorded")
    assert "Evict" not in desk.done
    assert [where for where, _ in desk.observer.failures] == [f"carrying out WriteRecord for {KEY}"]


async def test_an_event_that_cannot_happen_is_reported_with_the_story_of_its_move() -> None:
    """And changes nothing."""
    desk = Desk()
    await desk.plan(a_move())

    desk.executor.post(TurnReached(KEY))

    ((where, problem),) = desk.observer.failures
    assert where == "the move machine"
    assert "TurnReached cannot happen" in problem
    assert "NEW:MovePlanned" in problem
    assert desk.stage is MoveStage.REPLACING


async def test_deadlines_come_back_as_events() -> None:
    """The pause before an eviction is sent again."""
    busy = WriteResult(WriteOutcome.BUSY, "later")
    desk = Desk(Evict=lambda order: EvictionAnswered(order.key, busy))
    ticking = asyncio.create_task(desk.timer.run())

    await desk.plan(a_move())
    early = desk.done.count("Evict")
    await desk.clock.advance(0.6)
    await settled()
    ticking.cancel()

    assert (early, desk.done.count("Evict")) == (1, 2)
    assert desk.stage is MoveStage.REPLACING


async def test_an_executor_that_is_closed_waits_for_nothing() -> None:
    """What was under way is cancelled; the next process goes on by the records."""

    class Stuck(Desk):
        async def carry_out(self, order: Any) -> Event:
            await asyncio.Event().wait()
            return await super().carry_out(order)

    desk = Stuck()
    await desk.plan(a_move())
    before = desk.executor.is_idle()

    await desk.executor.close()

    assert not before
    assert desk.executor.is_idle()
