"""Completes or cancels each open record of an earlier process, once, after a restart.

The records and the cluster are the only evidence. A pod that still exists was not evicted, whatever was about
to be sent or the record says; one that is gone or terminating was, and its replacement is awaited. Its target
is reserved within the limits of the policy, as a record may have been written by a user.

::

    record                  pod                   becomes
    no phase                any                   Planned or Predicted, then as below
    Planned, mode Approve   any                   Proposed
    Planned                 any                   Closed: Cancelled
    Evicting                exists                Closed: Cancelled; Evicting if another component carries
                                                  it out
    Evicting                terminating, gone     Evicted, then as below
    Evicted                 exists                Closed: Failed
    Evicted                 terminating, gone     Replacing; a victim of preemption: Leaving
    Surging                 any                   by the rule of surges
    finished                any                   Closed; its replacement replaces no other pod
"""

from collections.abc import Callable, Sequence

from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.rebalancing.moves import deferral, outcomes
from plimsoll.rebalancing.moves.events import ProcessRestarted
from plimsoll.rebalancing.moves.instructions import (
    EmitEvent,
    FollowReplacement,
    ReserveTarget,
    StopFollowing,
)
from plimsoll.rebalancing.moves.state import Landing, MoveStage
from plimsoll.rebalancing.moves.transition import MoveTable, Step
from plimsoll.records.record import STILL_THERE

#: The reason of phases that are written after a restart.
RESTARTED = "Restarted"

#: The reason and the action of events on records that are not, or not wholly, believed.
REFUSED, RECOVERING = "RecordRefused", "Recovering"

#: Takes a record over, or returns false: the recovery of ways of moving pods other than evictions.
RecoveryRule = Callable[[Step, ProcessRestarted], bool]


def table(rules: Sequence[RecoveryRule] = ()) -> MoveTable:
    """The transition for a record that an earlier process wrote.

    Args:
        rules: The rules of the optional ways; the first that takes a record over decides.
    """

    def recovered(step: Step, event: ProcessRestarted) -> None:
        step.become(
            move=event.move,
            phase=event.status.phase,
            reason=event.status.reason or "",
            message=event.status.message or "",
            approved=event.approved,
            recorded=True,
            pod_terminating=event.pod is not None and event.pod.terminating,
            pod_gone=event.pod is None,
        )
        if event.status.phase is None:
            first = Phase.PREDICTED if event.spec.mode is Mode.DRY_RUN else Phase.PLANNED
            step.write(first, RESTARTED, "found without a status after a restart")
        if not any(rule(step, event) for rule in rules):
            _carry_on(step, event)

    return MoveTable(transitions={(MoveStage.NEW, ProcessRestarted): recovered})


def _carry_on(step: Step, event: ProcessRestarted) -> None:
    match step.state.phase:
        case Phase.PLANNED if event.spec.mode is Mode.APPROVE:
            step.become(MoveStage.PROPOSED)  # waits for a person, whichever process recorded it
        case Phase.PLANNED:
            _cancel(step, "the operator ended before the eviction was sent")
        case Phase.EVICTING if _is_carried_out(step, event):
            deferral.resumed(step, event)
        case Phase.EVICTING if event.stands:
            _cancel(step, "the operator ended before the eviction was accepted")
        case Phase.EVICTING:
            step.write(Phase.EVICTED, RESTARTED, "found evicted after a restart")
            _await_replacement(step, event)
        case Phase.EVICTED if event.stands:
            message = f"the record says that the pod was evicted, and the pod stays on {event.spec.from_node}"
            outcomes.end(step, Landing(Phase.FAILED, STILL_THERE, message))
            _warn(step, event, message)
        case Phase.EVICTED:
            _await_replacement(step, event)
        case Phase.SURGING:
            _cancel(step, "no rollout is followed any more")
        case _:
            step.become(MoveStage.CLOSED)
            if event.status.replacement is not None:
                owner = event.spec.owner.uid if event.spec.owner is not None else ""
                step.order(StopFollowing(event.key, event.status.replacement.uid, owner))


def _is_carried_out(step: Step, event: ProcessRestarted) -> bool:
    """Whether another component carries out the eviction of a pod that still stands."""
    is_marked = event.pod is not None and event.pod.in_progress
    return event.stands and (step.state.reason == deferral.DEFERRED or is_marked)


def _warn(step: Step, event: ProcessRestarted, message: str) -> None:
    """Emit an event on the record, where people look for the reason."""
    step.order(EmitEvent(event.reference, REFUSED, RECOVERING, message, is_warning=True))


def _cancel(step: Step, message: str) -> None:
    outcomes.end(step, outcomes.cancelled(RESTARTED, message))


def _await_replacement(step: Step, event: ProcessRestarted) -> None:
    """Wait for the replacement of an evicted pod, as if this process had evicted it."""
    step.become(begun=True)
    if outcomes.is_victim(step):
        outcomes.leaves_room(step)
        return
    landing = outcomes.unreplaced(step, has_ended=event.spec.target_node is None)
    if landing is not None:
        outcomes.end(step, landing)
        return
    step.become(MoveStage.REPLACING)
    if event.over_limit:
        _warn(step, event, f"its target {event.spec.target_node} is not reserved: {event.over_limit}")
    elif not outcomes.is_forecast(step):
        step.become(holds=True)
        step.order(ReserveTarget(event.key, None))  # until the replacement is seen, or the move gives up
    step.order(FollowReplacement(event.key, event.spec, event.since))
    outcomes.await_replacement(step)


def rank(event: ProcessRestarted) -> tuple[int, float]:
    """Sort finished records first, so that their replacements are known; then those with targets.

    Of these the last that was sent goes first: its replacement may be the fewest of the owner's pods, and if
    it takes the one that suits it best, every earlier move still finds one.
    """
    phase, since = event.status.phase, event.since
    order = 0 if phase in FINISHED else 1 if phase is Phase.EVICTED else 2
    return order, 0.0 if since is None else -since.timestamp()
