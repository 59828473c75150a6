"""Transitions of a move before it is sent: record, approval, turn, check against the cluster, announcement.

Nothing is done without a record. A move is checked against the present cluster right before it is announced,
and its target is reserved in the same step, so that no other policy's move takes the room meanwhile. A target
that was reserved before its turn stays so: the check counts it as free for the move.
"""

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.rebalancing.moves import events, instructions, outcomes
from plimsoll.rebalancing.moves.state import EvictionMethod, Landing, MoveStage
from plimsoll.rebalancing.moves.transition import MoveTable, Step

# -- the record ------------------------------------------------------------------------------------------


def _planned(step: Step, event: events.MovePlanned) -> None:
    """Let a planned move wait for its turn; record a proposal or a victim now."""
    step.become(move=event.move, run=event.run, reason=event.reason, message=event.message)
    if event.spec.mode is Mode.ENFORCE and not outcomes.is_victim(step):
        _wait_for_turn(step)
    else:
        _record(step)


def _record(step: Step) -> None:
    state = step.state
    step.become(MoveStage.OPENING, phase=Phase.PLANNED)
    step.order(instructions.CreateRecord(state.key, state.spec, Phase.PLANNED, state.reason, state.message))


def _recorded(step: Step, event: events.RecordAnswered) -> None:
    """Continue from the written record; without a record the move ends."""
    if not event.answer.is_done:
        outcomes.release(step)
        step.close(outcomes.cancelled("NotRecorded", event.answer.message))
        return
    step.become(recorded=True)
    if step.state.ending is not None:
        outcomes.end(step, step.state.ending)
    elif step.state.spec.mode is Mode.APPROVE:
        step.become(MoveStage.PROPOSED)
    elif outcomes.is_victim(step):
        _announce(step, Phase.EVICTING, "Sent", "")
    else:
        _check(step)


# -- cancellation ----------------------------------------------------------------------------------------


def _call_off(step: Step, landing: Landing) -> None:
    """Cancel the move; a record that is being created gets the landing as soon as it exists."""
    if step.state.stage is MoveStage.OPENING:
        step.become(ending=landing)
    else:
        outcomes.end(step, landing)


def _answered(step: Step, event: events.ProposalAnswered) -> None:
    """Remember an approval until all moves of the bundle are approved; a rejection cancels the move."""
    if step.state.stage is not MoveStage.WAITING:
        step.become(approved=event.approved)
    if event.approved is False:
        _call_off(step, outcomes.REJECTION)


def _dropped(step: Step, event: events.MoveDropped) -> None:
    """Call the move off: the planner, its bundle or its policy no longer wants it."""
    _call_off(step, event.cause)


def _policy_changed(step: Step, event: events.PolicyChanged) -> None:
    """Keep a proposal while the policy is in mode Approve, whatever else has changed; else cancel it."""
    is_proposal = step.state.stage in (MoveStage.PROPOSED, MoveStage.OPENING)
    if not (is_proposal and step.state.spec.mode is event.mode is Mode.APPROVE):
        _call_off(step, outcomes.POLICY_CHANGED)


def _unplanned(step: Step, _event: events.MoveUnplanned) -> None:
    """End a proposal that the latest plan no longer has."""
    outcomes.end(step, outcomes.UNPLANNED)


def _gone(step: Step, event: events.PodGone) -> None:
    """End a proposal whose pod was deleted."""
    if event.deleted:
        outcomes.end(step, outcomes.GONE)


def _deleted(step: Step, _event: events.RecordDeleted) -> None:
    """End a move whose record was deleted: there is nothing to write to."""
    step.become(recorded=False)
    outcomes.end(step, outcomes.cancelled("RecordDeleted", "the record was deleted"))


# -- the turn --------------------------------------------------------------------------------------------


def _wait_for_turn(step: Step) -> None:
    step.become(MoveStage.WAITING)
    if step.state.move is not None and step.state.move.waits:
        _reserve(step)


def _reserve(step: Step) -> None:
    """Reserve the target of a move that waits."""
    move = step.state.move
    if move is not None and move.target and not move.is_forecast:
        step.become(holds=True)
        step.order(instructions.ReserveTarget(step.state.key, move))


def _room_awaited(step: Step, _event: events.RoomAwaited) -> None:
    """Reserve the target, as other moves of the bundle begin to make the room there."""
    _reserve(step)


def _due(step: Step, event: events.TurnReached) -> None:
    """Let an approved move wait for the earlier ones, as all moves of its bundle are approved."""
    step.become(move=event.move, run=step.state.bundle)  # counted separately from its run
    _wait_for_turn(step)


def _its_turn(step: Step, _event: events.TurnReached) -> None:
    """Record the move whose turn has come, unless it is recorded, and have it checked."""
    if step.state.recorded:
        _check(step)
    else:
        _record(step)
    step.order(instructions.NoteDisplacement(step.state.policy))


# -- the check -------------------------------------------------------------------------------------------


def _check(step: Step) -> None:
    state = step.state
    if state.move is not None:
        step.become(MoveStage.CHECKING)
        step.order(instructions.Revalidate(state.key, state.move, state.run, step.evicted))


def _judged(step: Step, event: events.Revalidated) -> None:
    """Reserve the target of a revalidated move, then announce the move."""
    move, surge = event.move, step.state.spec.surge
    step.become(move=move, way=event.way, deferral_timeout_s=event.deferral_timeout_s)
    if move.target and not outcomes.is_forecast(step):
        step.become(holds=True)
        step.order(instructions.ReserveTarget(step.state.key, move))
    else:
        outcomes.release(step)
    if event.way is EvictionMethod.SURGE and surge is not None:
        expected = f"{surge.kind} {surge.deployment} brings the replacement up first, on {move.target}"
        _announce(step, Phase.SURGING, "Sent", expected)
    else:
        _announce(
            step, Phase.EVICTING, "Sent", f"no surge moves it: {move.unsurged}" if move.unsurged else ""
        )


def _announce(step: Step, phase: Phase, reason: str, message: str) -> None:
    step.become(MoveStage.COMMITTING)
    step.write(phase, reason, message)


def _not_judged(step: Step, event: events.RevalidationRefused) -> None:
    """End the move: in the present cluster it is not proven, or not allowed."""
    outcomes.end(step, event.cause)


# -- all announced ---------------------------------------------------------------------------------------


def _stopped(step: Step, event: events.StopPressed) -> None:
    """Keep a group together that was to leave whole: no member of it has been sent, or this one stays."""
    outcomes.end(step, outcomes.cancelled("Stopped", event.sentence))


TABLE = MoveTable(
    transitions={
        (MoveStage.NEW, events.MovePlanned): _planned,
        (MoveStage.OPENING, events.RecordAnswered): _recorded,
        (MoveStage.OPENING, events.ProposalAnswered): _answered,
        (MoveStage.OPENING, events.PolicyChanged): _policy_changed,
        (MoveStage.OPENING, events.MoveDropped): _dropped,
        (MoveStage.PROPOSED, events.ProposalAnswered): _answered,
        (MoveStage.PROPOSED, events.PolicyChanged): _policy_changed,
        (MoveStage.PROPOSED, events.MoveDropped): _dropped,
        (MoveStage.PROPOSED, events.MoveUnplanned): _unplanned,
        (MoveStage.PROPOSED, events.PodGone): _gone,
        (MoveStage.PROPOSED, events.RecordDeleted): _deleted,
        (MoveStage.PROPOSED, events.TurnReached): _due,
        (MoveStage.WAITING, events.ProposalAnswered): _answered,
        (MoveStage.WAITING, events.PolicyChanged): _policy_changed,
        (MoveStage.WAITING, events.MoveDropped): _dropped,
        (MoveStage.WAITING, events.RoomAwaited): _room_awaited,
        (MoveStage.WAITING, events.RecordDeleted): _deleted,
        (MoveStage.WAITING, events.TurnReached): _its_turn,
        (MoveStage.CHECKING, events.PolicyChanged): _policy_changed,
        (MoveStage.CHECKING, events.MoveDropped): _dropped,
        (MoveStage.CHECKING, events.RecordDeleted): _deleted,
        (MoveStage.CHECKING, events.Revalidated): _judged,
        (MoveStage.CHECKING, events.RevalidationRefused): _not_judged,
        (MoveStage.READY, events.PolicyChanged): _policy_changed,
        (MoveStage.READY, events.StopPressed): _stopped,
        (MoveStage.READY, events.MoveDropped): _dropped,
        (MoveStage.READY, events.RecordDeleted): _deleted,
    }
)
