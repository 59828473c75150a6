"""Transitions of a move until it is sent: record, approval, turn, check against the cluster, announcement.

What is not on record is not done. A move is checked against the present cluster right before it is announced,
and its target is reserved in the same moment, so that no other policy's move takes the room meanwhile.
"""

from collections.abc import Iterable

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.rebalancing.moves.events import (
    ApprovalWithdrawn,
    BundleBroken,
    MoveApproved,
    MovePlanned,
    MoveRejected,
    MoveSkipped,
    MoveUnplanned,
    PodGone,
    PolicyChanged,
    RecordDeleted,
    RecordRefused,
    RecordWritten,
    Revalidated,
    RevalidationRefused,
    TurnReached,
)
from plimsoll.rebalancing.moves.instructions import (
    CreateRecord,
    NoteDisplacement,
    ReserveTarget,
    Revalidate,
)
from plimsoll.rebalancing.moves.outcomes import (
    GONE,
    POLICY_CHANGED,
    REJECTION,
    UNPLANNED,
    cancelled,
    end,
    is_forecast,
    is_victim,
    release,
)
from plimsoll.rebalancing.moves.state import MoveStage, MoveState, Way
from plimsoll.rebalancing.moves.transition import MoveTable, Step

#: The reason of a record whose pod was asked to leave by an EvictionRequest.
REQUESTED = "Requested"


def planned(step: Step, event: MovePlanned) -> None:
    """A move that was decided waits for its turn; a proposal or a victim is recorded now."""
    step.become(move=event.move, run=event.run, reason=event.reason, message=event.message)
    if event.spec.mode is Mode.ENFORCE and not is_victim(step):
        step.become(MoveStage.WAITING)
        _reserve_waiting(step)
    else:
        _record(step)


def _record(step: Step) -> None:
    state = step.state
    step.become(MoveStage.OPENING, phase=Phase.PLANNED)
    step.order(CreateRecord(state.key, state.spec, Phase.PLANNED, state.reason, state.message))


def _reserve_waiting(step: Step) -> None:
    move = step.state.move
    if move is not None and move.waits and move.target and not move.is_forecast:
        step.become(holds=True)
        step.order(ReserveTarget(step.state.key, move))


def recorded(step: Step, _event: RecordWritten) -> None:
    """The record exists: the move goes on from there."""
    step.become(recorded=True)
    if step.state.ending is not None:
        end(step, step.state.ending)
    elif step.state.spec.mode is Mode.APPROVE:
        step.become(MoveStage.PROPOSED)
    elif is_victim(step):
        _announce(step, Phase.EVICTING, "Sent", "")
    else:
        _check(step)


def not_created(step: Step, event: RecordRefused) -> None:
    """There is no record, and what is not on record is not done."""
    release(step)
    step.close(cancelled("NotRecorded", event.answer.message))


# -- people ----------------------------------------------------------------------------------------------


def approved(step: Step, _event: MoveApproved) -> None:
    """Remembered until all moves of the bundle are approved."""
    step.become(approved=True)


def unanswered(step: Step, _event: ApprovalWithdrawn) -> None:
    """Nothing is said of it any more."""
    step.become(approved=None)


def rejected(step: Step, _event: MoveRejected) -> None:
    """A person says no."""
    step.become(approved=False)
    end(step, REJECTION)


def rejected_while_opening(step: Step, _event: MoveRejected) -> None:
    """A person answers before the answer to the creation is here: closed as soon as that is."""
    step.become(approved=False, ending=REJECTION)


def unplanned(step: Step, _event: MoveUnplanned) -> None:
    """The latest run does not plan it any more."""
    end(step, UNPLANNED)


def gone(step: Step, event: PodGone) -> None:
    """The pod of a proposal is gone."""
    if event.deleted:
        end(step, GONE)


def deleted(step: Step, _event: RecordDeleted) -> None:
    """Somebody deleted the record: there is nothing to write to."""
    step.become(recorded=False)
    end(step, cancelled("RecordDeleted", "the record was deleted"))


# -- its turn --------------------------------------------------------------------------------------------


def due(step: Step, event: TurnReached) -> None:
    """All moves of the bundle are approved: the move waits for those before it."""
    step.become(MoveStage.WAITING, move=event.move, run=step.state.bundle)  # counted apart from its run
    _reserve_waiting(step)


def its_turn(step: Step, _event: TurnReached) -> None:
    """Nothing is left to wait for: the move is recorded if it is not yet, and checked."""
    release(step)
    if step.state.recorded:
        _check(step)
    else:
        _record(step)
    step.order(NoteDisplacement(step.state.policy))


def skipped(step: Step, _event: MoveSkipped) -> None:
    """The pod has left by itself, or was asked to leave by an earlier run."""
    end(step, GONE)


def broken(step: Step, event: BundleBroken) -> None:
    """Another move of the bundle is not made."""
    end(step, event.cause)


def broken_while_opening(step: Step, event: BundleBroken) -> None:
    """The record is being created: closed as soon as it exists."""
    step.become(ending=event.cause)


def policy_changed(step: Step, _event: PolicyChanged) -> None:
    """The policy wants something else: what was decided for the former one is called off."""
    end(step, POLICY_CHANGED)


def proposal_policy_changed(step: Step, event: PolicyChanged) -> None:
    """A proposal stays while the policy, whatever else has changed in it, asks people."""
    if event.mode is not Mode.APPROVE:
        end(step, POLICY_CHANGED)


def policy_changed_while_opening(step: Step, event: PolicyChanged) -> None:
    """The record is being created: closed as soon as it exists."""
    if event.mode is not step.state.spec.mode or step.state.spec.mode is Mode.ENFORCE:
        step.become(ending=POLICY_CHANGED)


# -- the check -------------------------------------------------------------------------------------------


def _check(step: Step) -> None:
    state = step.state
    if state.move is not None:
        step.become(MoveStage.CHECKING)
        step.order(Revalidate(state.key, state.move, state.run, step.evicted))


def judged(step: Step, event: Revalidated) -> None:
    """The planner would make the move now as well: its target is reserved, then it is announced."""
    move, surge = event.move, step.state.spec.surge
    step.become(move=move, way=event.way, request_timeout_s=event.request_timeout_s)
    if event.way is Way.REQUEST:
        cannot = step.around.cannot_request()
        if is_asked(step.peers):
            end(step, cancelled("AlreadyRequested", "the pod has been asked to leave already"))
            return
        if cannot is not None:
            end(step, cancelled(*cannot))
            return
    if move.target and not is_forecast(step):
        step.become(holds=True)
        step.order(ReserveTarget(step.state.key, move))
    if event.way is Way.SURGE and surge is not None:
        expected = f"Deployment {surge.deployment} brings the replacement up first, on {move.target}"
        _announce(step, Phase.SURGING, "Sent", expected)
    elif event.way is Way.REQUEST:
        name = step.state.key.partition("/")[2]
        _announce(step, Phase.EVICTING, REQUESTED, f"EvictionRequest {name}: about to be made")
    else:
        _announce(step, Phase.EVICTING, "Sent", "")


def is_asked(states: Iterable[MoveState]) -> bool:
    """Whether the pod of one of the moves was asked to leave, and is still there."""
    return any(each.stage is MoveStage.REQUESTING and each.begun for each in states)


def _announce(step: Step, phase: Phase, reason: str, message: str) -> None:
    step.become(MoveStage.COMMITTING)
    step.write(phase, reason, message)


def not_judged(step: Step, event: RevalidationRefused) -> None:
    """The planner would not make the move now, or could not judge it."""
    end(step, event.cause)


TABLE = MoveTable(
    transitions={
        (MoveStage.NEW, MovePlanned): planned,
        (MoveStage.OPENING, RecordWritten): recorded,
        (MoveStage.OPENING, RecordRefused): not_created,
        (MoveStage.PROPOSED, RecordDeleted): deleted,
        (MoveStage.WAITING, RecordDeleted): deleted,
        (MoveStage.CHECKING, RecordDeleted): deleted,
        (MoveStage.PROPOSED, MoveApproved): approved,
        (MoveStage.PROPOSED, MoveRejected): rejected,
        (MoveStage.OPENING, MoveApproved): approved,
        (MoveStage.OPENING, MoveRejected): rejected_while_opening,
        (MoveStage.OPENING, ApprovalWithdrawn): unanswered,
        (MoveStage.WAITING, MoveRejected): rejected,
        (MoveStage.PROPOSED, ApprovalWithdrawn): unanswered,
        (MoveStage.PROPOSED, MoveUnplanned): unplanned,
        (MoveStage.PROPOSED, PodGone): gone,
        (MoveStage.PROPOSED, PolicyChanged): proposal_policy_changed,
        (MoveStage.WAITING, PolicyChanged): policy_changed,
        (MoveStage.OPENING, PolicyChanged): policy_changed_while_opening,
        (MoveStage.CHECKING, PolicyChanged): policy_changed,
        (MoveStage.PROPOSED, TurnReached): due,
        (MoveStage.WAITING, TurnReached): its_turn,
        (MoveStage.WAITING, MoveSkipped): skipped,
        (MoveStage.PROPOSED, BundleBroken): broken,
        (MoveStage.WAITING, BundleBroken): broken,
        (MoveStage.CHECKING, BundleBroken): broken,
        (MoveStage.OPENING, BundleBroken): broken_while_opening,
        (MoveStage.CHECKING, Revalidated): judged,
        (MoveStage.CHECKING, RevalidationRefused): not_judged,
    }
)
