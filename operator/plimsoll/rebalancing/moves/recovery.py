"""Completes or cancels each open record of an earlier process, once, after a restart.

The records and the cluster are all there is to go by. A pod that still stands was not evicted, whatever was
about to be sent; one that is gone or on its way out was, and its replacement is awaited.

::

    record                  pod                   becomes
    no phase                any                   Planned or Predicted, then as below
    Planned, mode Approve   any                   Proposed
    Planned                 any                   Closed: Cancelled
    Evicting                stands                Closed: Cancelled; Requesting by the rule of requests
    Evicting                on its way, gone      Evicted, then as below
    Evicted                 any                   Replacing; a victim of preemption: Leaving
    Surging                 any                   by the rule of surges
    finished                any                   Closed; its replacement replaces no other pod
"""

from collections.abc import Callable, Iterable, Sequence

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.moves.events import ProcessRestarted, RolloutAnswered, RolloutSight
from plimsoll.rebalancing.moves.instructions import FollowReplacement, ReserveTarget, StopFollowing
from plimsoll.rebalancing.moves.outcomes import (
    PATIENCE_S,
    cancelled,
    end,
    is_forecast,
    is_victim,
    leaves_room,
    unreplaced,
)
from plimsoll.rebalancing.moves.state import MoveStage, PodFacts, TimerName
from plimsoll.rebalancing.moves.transition import MoveTable, Step

#: The reason of what is written after a restart.
RESTARTED = "Restarted"

#: Takes a record over, or returns false: how ways of moving pods other than evictions go on after a restart.
RecoveryRule = Callable[[Step, ProcessRestarted], bool]


def table(rules: Sequence[RecoveryRule] = ()) -> MoveTable:
    """The transition of a record that an earlier process wrote.

    Args:
        rules: Of the optional ways; the first that takes a record over decides.
    """

    def recovered(step: Step, event: ProcessRestarted) -> None:
        step.become(
            move=event.move,
            phase=event.phase,
            reason=event.reason,
            message=event.message,
            approved=event.approved,
            recorded=True,
            pod_terminating=event.pod is not None and event.pod.terminating,
            pod_gone=event.pod is None,
        )
        if event.phase is None:
            first = Phase.PREDICTED if event.spec.mode is Mode.DRY_RUN else Phase.PLANNED
            step.write(first, RESTARTED, "found without a status after a restart")
        if not any(rule(step, event) for rule in rules):
            _carry_on(step, event)

    return MoveTable(transitions={(MoveStage.NEW, ProcessRestarted): recovered})


def _carry_on(step: Step, event: ProcessRestarted) -> None:
    match step.state.phase:
        case Phase.PLANNED if event.spec.mode is Mode.APPROVE:
            step.become(MoveStage.PROPOSED)  # waits for a person, whichever process asked
        case Phase.PLANNED:
            end(step, cancelled(RESTARTED, "the operator ended before the eviction was sent"))
        case Phase.EVICTING if event.pod is not None and not event.pod.terminating:
            end(step, cancelled(RESTARTED, "the operator ended before the eviction was accepted"))
        case Phase.EVICTING:
            step.write(Phase.EVICTED, RESTARTED, "found evicted after a restart")
            _await_replacement(step, event)
        case Phase.EVICTED:
            _await_replacement(step, event)
        case Phase.SURGING:
            end(step, cancelled(RESTARTED, "no rollout is followed any more"))
        case _:
            step.become(MoveStage.CLOSED)
            if event.replacement:
                step.order(StopFollowing(event.key, event.replacement))


def _await_replacement(step: Step, event: ProcessRestarted) -> None:
    """The pod was evicted: what follows is the same as if this process had done it."""
    step.become(begun=True)
    if is_victim(step):
        leaves_room(step)
        return
    landing = unreplaced(step, has_ended=event.spec.target_node is None)
    if landing is not None:
        end(step, landing)
        return
    step.become(MoveStage.REPLACING)
    if not is_forecast(step):
        step.become(holds=True)
        step.order(ReserveTarget(event.key, None))  # until the replacement is seen, or given up
    step.order(FollowReplacement(event.key, event.spec, event.since))
    step.wait(TimerName.REPLACEMENT, PATIENCE_S)


def restarted(
    key: str,
    spec: EvictionSpec,
    status: EvictionStatus,
    *,
    now: float,
    pod: PodFacts | None,
    move: Move | None = None,
    rollout: RolloutAnswered | None = None,
    approved: bool | None = None,
) -> ProcessRestarted:
    """The event of a record that was found, ``now`` in seconds since the epoch."""
    reached = {each.phase: each.time for each in status.transitions}
    since = reached.get(Phase.EVICTING)
    begun = since or reached.get(Phase.SURGING)
    return ProcessRestarted(
        key,
        spec,
        status.phase,
        reason=status.reason or "",
        message=status.message or "",
        approved=approved,
        since=since,
        evicting_for_s=0.0 if begun is None else max(0.0, now - begun.timestamp()),
        pod=pod,
        rollout=None if rollout is None else rollout.sight if rollout.answer.is_done else RolloutSight.OPEN,
        move=move,
        replacement=status.replacement.uid if status.replacement is not None else "",
        patience_s=PATIENCE_S if rollout is None else min(PATIENCE_S, rollout.patience_s),
    )


def in_order(found: Iterable[ProcessRestarted]) -> list[ProcessRestarted]:
    """Finished records first, so that their replacements are known; then those that hold targets."""
    return sorted(found, key=lambda each: (each.phase not in FINISHED, each.phase is not Phase.EVICTED))
