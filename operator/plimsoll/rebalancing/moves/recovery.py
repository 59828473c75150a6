"""Completes or cancels each open record of an earlier process, once, after a restart.

The records and the cluster are the only evidence. A pod that still exists was not evicted, whatever was about
to be sent; one that is gone or terminating was, and its replacement is awaited.

::

    record                  pod                   becomes
    no phase                any                   Planned or Predicted, then as below
    Planned, mode Approve   any                   Proposed
    Planned                 any                   Closed: Cancelled
    Evicting                exists                Closed: Cancelled; Requesting by the rule of requests
    Evicting                terminating, gone     Evicted, then as below
    Evicted                 any                   Replacing; a victim of preemption: Leaving, for at most
                                                  90 s while the watch does not show it terminating
    Surging                 any                   by the rule of surges
    finished                any                   Closed; its replacement replaces no other pod
"""

from collections.abc import Callable, Sequence

from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.rebalancing.moves import outcomes
from plimsoll.rebalancing.moves.events import ProcessRestarted
from plimsoll.rebalancing.moves.instructions import FollowReplacement, ReserveTarget, StopFollowing
from plimsoll.rebalancing.moves.state import MoveStage, TimerName
from plimsoll.rebalancing.moves.transition import MoveTable, Step

#: The reason of phases that are written after a restart.
RESTARTED = "Restarted"

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
        case Phase.EVICTING if event.pod is not None and not event.pod.terminating:
            _cancel(step, "the operator ended before the eviction was accepted")
        case Phase.EVICTING:
            step.write(Phase.EVICTED, RESTARTED, "found evicted after a restart")
            _await_replacement(step, event)
        case Phase.EVICTED:
            _await_replacement(step, event)
        case Phase.SURGING:
            _cancel(step, "no rollout is followed any more")
        case _:
            step.become(MoveStage.CLOSED)
            if event.status.replacement is not None:
                owner = event.spec.owner.uid if event.spec.owner is not None else ""
                step.order(StopFollowing(event.key, event.status.replacement.uid, owner))


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
    if not outcomes.is_forecast(step):
        step.become(holds=True)
        step.order(ReserveTarget(event.key, None))  # until the replacement is seen, or the move gives up
    step.order(FollowReplacement(event.key, event.spec, event.since))
    step.wait(TimerName.REPLACEMENT, outcomes.PATIENCE_S)


def rank(phase: Phase | None) -> int:
    """Sort finished records first, so that their replacements are known; then those with targets."""
    return 0 if phase in FINISHED else 1 if phase is Phase.EVICTED else 2
