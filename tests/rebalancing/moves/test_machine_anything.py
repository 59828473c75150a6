"""The move machine with anything in any order: its invariants hold, and every record comes to an end.

The environment answers what was asked, in any order and with any answer, while people, policies, pods and
deadlines do as they like. After each event the machine checks its invariants.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase, may_follow
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework.descheduling.proposals import Beneficiary
from plimsoll.model.names import RecordKey
from plimsoll.planning.moves import Move
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.instructions import (
    CancelTimer,
    CloseNode,
    CreateRecord,
    Evict,
    Instruction,
    ReleaseRoom,
    ReleaseTarget,
    ReserveRoom,
    ReserveTarget,
    RetryAt,
    Revalidate,
    WriteRecord,
)
from plimsoll.rebalancing.moves.outcomes import cancelled
from plimsoll.rebalancing.moves.state import EvictionMethod, MoveStage, TimerName
from rebalancing.moves.moves_world import (
    DONE,
    POLICY,
    Play,
    a_move,
    a_replacement,
    a_victim,
    facts_of,
    together,
)

ANSWERS = [WriteResult(outcome) for outcome in WriteOutcome]
ASKED = (CreateRecord, WriteRecord, Revalidate, Evict, CloseNode)


class AnyMoves(RuleBasedStateMachine):
    """Moves of four pods, planned again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play()
        self.play.world.emptied = True  # so that the nodes that bundles empty are counted
        self.numbers = iter(range(1_000_000))
        self.asked: list[Any] = []
        self.timers: dict[tuple[RecordKey, TimerName], float] = {}
        self.phases: dict[str, Phase] = {}
        self.reserved: set[str] = set()
        self.written: dict[str, Phase] = {}  #: the phases that were confirmed
        self.accepted: set[str] = set()  #: records of pods that go
        self.rooms: set[str] = set()
        self.members: dict[str, tuple[str, ...]] = {}
        self.begun: set[str] = set()

    def tell(self, *told: events.Event) -> None:
        """Events."""
        for event in told:
            match event:
                case events.RecordAnswered(key, phase, answer) if answer.is_done:
                    self.written[key] = phase
                case events.EvictionAnswered(key, answer) if answer.is_done:
                    self.accepted.add(key)
        self.note(self.play.tell(*told))

    def note(self, orders: Sequence[Instruction]) -> None:
        """What the environment makes of instructions."""
        for order in orders:
            match order:
                case RetryAt():
                    self.timers[order.key, order.timer] = order.at
                case CancelTimer():
                    self.timers.pop((order.key, order.timer), None)
                case ReserveTarget():
                    self.reserved.add(order.key)
                case ReleaseTarget():
                    self.reserved.discard(order.key)
                case CreateRecord():
                    self.phases[order.key] = order.phase
                case WriteRecord():
                    assert may_follow(self.phases[order.key], order.phase)
                    self.phases[order.key] = order.phase
                case Evict():
                    assert self.written[order.key] is Phase.EVICTING, "nothing is sent that is not on record"
                    outstanding = [each.key for each in self.asked if isinstance(each, Evict)]
                    assert order.key not in {*outstanding, *self.accepted}, "no pod is evicted twice"
                case ReserveRoom():
                    self.rooms.add(order.bundle)
                case ReleaseRoom():
                    self.rooms.discard(order.bundle)
            if isinstance(order, ASKED):
                self.asked.append(order)

    def plan(self, moves: Sequence[Move], **how: Any) -> None:
        """Plan moves; the play tells the machine itself."""
        before = len(self.play.ordered)
        keys = self.play.plan(*moves, **how)
        state = self.play.state(keys[0])
        if state is not None:
            self.members[state.bundle] = tuple(keys)
        self.note(self.play.ordered[before:])

    @rule(
        many=st.integers(1, 3),
        waits=st.booleans(),
        mode=st.sampled_from([Mode.ENFORCE, Mode.APPROVE]),
        empties=st.sampled_from(["", "bad"]),
    )
    def planned(self, many: int, waits: bool, mode: Mode, empties: str) -> None:
        """Pods that no other move is about."""
        owners = ["ReplicaSet/web", "ReplicaSet/api", ""]
        moves = [a_move(next(self.numbers), owner=owners[index], waits=waits) for index in range(many)]
        self.plan(together(*moves) if many > 1 else moves, mode=mode, empties=empties)

    @rule(many=st.integers(1, 3), mode=st.sampled_from([Mode.ENFORCE, Mode.APPROVE]))
    def planned_for_a_pending_pod(self, many: int, mode: Mode) -> None:
        """They make room together."""
        pod = a_move(next(self.numbers)).pod
        self.play.world.waiting.add(pod.uid)
        moves = [a_move(next(self.numbers), beneficiary=Beneficiary(pod, "good")) for _ in range(many)]
        self.plan(together(*moves), mode=mode)

    @precondition(lambda self: self.play.world.waiting)
    @rule()
    def found_a_place(self) -> None:
        """A pod that room is made for waits no longer."""
        self.play.world.waiting.pop()

    @rule()
    def victim(self) -> None:
        """Preemption needs room."""
        self.plan([a_victim(next(self.numbers))])

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def answered(self, data: st.DataObject) -> None:
        """Something that was asked is answered; what is about one record in order."""
        first: dict[str, Any] = {}
        for order in self.asked:
            first.setdefault(getattr(order, "key", None) or order.bundle, order)
        order = data.draw(st.sampled_from(list(first.values())))
        self.asked.remove(order)
        good = data.draw(st.integers(0, 3)) > 0
        match order:
            case CreateRecord() | WriteRecord() if good:
                self.tell(events.RecordAnswered(order.key, order.phase, DONE))
            case CreateRecord() | WriteRecord():
                self.tell(events.RecordAnswered(order.key, order.phase, ANSWERS[1]))
            case Revalidate() if good:
                self.tell(events.Revalidated(order.key, order.move, EvictionMethod.EVICT))
            case Revalidate():
                self.tell(events.RevalidationRefused(order.key, cancelled("NoPlace", "nowhere")))
            case Evict():
                answer = ANSWERS[0] if good else data.draw(st.sampled_from(ANSWERS))
                self.tell(events.EvictionAnswered(order.key, answer))
            case CloseNode():
                self.tell(events.NodeClosed(order.bundle, good))

    @precondition(lambda self: self.timers)
    @rule()
    def timed_out(self) -> None:
        """The earliest deadline."""
        self.pass_time()

    def pass_time(self) -> None:
        """Until the earliest deadline."""
        key, timer = min(self.timers, key=self.timers.__getitem__)
        self.play.now = max(self.play.now, self.timers.pop((key, timer)))
        self.tell(events.TimedOut(key, timer))

    @precondition(lambda self: self.play.machine.moves)
    @rule(
        data=st.data(),
        kind=st.sampled_from(
            [
                events.RecordDeleted,
                events.MoveUnplanned,
                events.PodTerminating,
                events.PodGone,
            ]
        ),
    )
    def happened(self, data: st.DataObject, kind: type[events.MoveEvent]) -> None:
        """To any move, whether it has ended or not."""
        key = data.draw(st.sampled_from(sorted(self.play.machine.moves)))
        state = self.play.state(key)
        if kind is events.PodGone:
            self.play.world.pods.pop(state.pod_uid, None)
        elif kind is events.PodTerminating and state.move is not None:
            self.play.world.pods[state.pod_uid] = facts_of(state.move, terminating=True)
        self.tell(kind(key))

    @precondition(lambda self: self.play.machine.moves)
    @rule(data=st.data(), approved=st.sampled_from([True, True, False, None]))
    def proposal_answered(self, data: st.DataObject, approved: bool | None) -> None:
        """Also a move that is no proposal."""
        key = data.draw(st.sampled_from(sorted(self.play.machine.moves)))
        self.tell(events.ProposalAnswered(key, approved))

    @precondition(lambda self: self.play.machine.moves)
    @rule(
        data=st.data(),
        kind=st.sampled_from(
            [
                events.ReplacementSeen,
                events.ReplacementRunning,
                events.ReplacementReady,
                events.ReplacementReturned,
                events.ReplacementLost,
            ]
        ),
    )
    def replaced(self, data: st.DataObject, kind: type[events.ReplacementEvent]) -> None:
        """A pod of its own for each move, as the sightings credit them."""
        key = data.draw(st.sampled_from(sorted(self.play.machine.moves)))
        pod = a_replacement(f"of-{key}", node=data.draw(st.sampled_from(["good", "bad"])))
        self.tell(kind(key, replace(pod, ready=kind is events.ReplacementReady)))

    @rule(mode=st.sampled_from([None, Mode.ENFORCE, Mode.APPROVE]))
    def policy_changed(self, mode: Mode | None) -> None:
        """Suspended, or changed."""
        self.tell(events.PolicyChanged(POLICY, mode))

    @rule(why=st.sampled_from(["", "the stop button is pressed"]))
    def held_up(self, why: str) -> None:
        """The stop button is pressed, or released."""
        self.play.world.hold_up = why
        self.tell(events.StopPressed(why) if why else events.HoldUpsChanged())

    @invariant()
    def targets_are_reserved_as_the_states_say(self) -> None:
        """No room is kept for a move that is over."""
        assert self.reserved == {key for key, state in self.play.machine.moves.items() if state.holds}

    @invariant()
    def room_is_made_by_moves(self) -> None:
        """It is kept while a bundle is made, and when it was made; not when that was called off."""
        moves, bundles = self.play.machine.moves, self.play.machine.bundles
        self.begun |= {key for key, state in moves.items() if state.begun}
        for bundle in self.rooms - bundles.keys():
            assert self.begun.issuperset(self.members[bundle])

    @invariant()
    def records_say_what_the_states_say(self) -> None:
        """A move that is over has a finished record."""
        for key, state in self.play.machine.moves.items():
            assert self.phases.get(key) is state.phase
            assert (state.stage is MoveStage.CLOSED) is (state.phase in FINISHED)

    def teardown(self) -> None:
        """When all is answered and all time has passed, only proposals are left open."""
        for _ in range(10_000):
            if self.asked:
                order = self.asked.pop(0)
                match order:
                    case CreateRecord() | WriteRecord():
                        self.tell(events.RecordAnswered(order.key, order.phase, DONE))
                    case Revalidate():
                        self.tell(events.Revalidated(order.key, order.move, EvictionMethod.EVICT))
                    case Evict():
                        self.tell(events.EvictionAnswered(order.key, ANSWERS[0]))
                    case _:
                        self.tell(events.NodeClosed(order.bundle))
            elif self.timers:
                self.pass_time()
            else:
                break
        stages = {state.stage for state in self.play.machine.moves.values()}
        assert stages <= {MoveStage.CLOSED, MoveStage.PROPOSED}
        assert {bundle.due for bundle in self.play.machine.bundles.values()} <= {False}


TestAnyMoves = AnyMoves.TestCase
TestAnyMoves.settings = settings(max_examples=25, stateful_step_count=60, deadline=None)
