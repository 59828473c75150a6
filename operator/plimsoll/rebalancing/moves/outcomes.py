"""Names how moves end, in all ways of moving pods: phase, reason and message that close a record.

What a replacement has come to is decided before, in :mod:`plimsoll.rebalancing.moves.sightings`.

Each function is a transition, or adds to the step of a transition that calls it. A landing has the phase,
reason and message that close the record of a move.
"""

from collections.abc import Mapping
from types import MappingProxyType

from plimsoll.api.v1alpha1.annotations import APPROVED
from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode, PlannerName
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events, instructions
from plimsoll.rebalancing.moves.state import IN_FLIGHT, Landing, MoveStage, MoveState, PodFacts, TimerName
from plimsoll.rebalancing.moves.transition import Step, Transition
from plimsoll.records.record import PREEMPTION

#: The reason of a record whose proposal was rejected.
REJECTED = "Rejected"

#: The reason of a record whose move could not be revalidated.
NOT_REVALIDATED = "NotRevalidated"

#: The reason of a record whose pod or best place has changed since the plan.
CHANGED = "Changed"


def cancelled(reason: str, message: str) -> Landing:
    """A landing: an announced action does not happen."""
    return Landing(Phase.CANCELLED, reason, message)


def not_all(message: str) -> Landing:
    """A landing: the move is not made because another move of its bundle is not."""
    return cancelled("NotAll", message)


POLICY_CHANGED = cancelled("PolicyChanged", "the policy was changed, suspended or deleted")
UNPLANNED = cancelled("NoLongerPlanned", "the latest run does not plan the move")
GONE = cancelled("Gone", "the pod is gone already")
NOT_RECORDED = cancelled("NotRecorded", "the record could not be written, so nothing was sent")
OTHERWISE = cancelled(
    CHANGED, "its owner or its best place has changed since the plan; the next run decides afresh"
)
REJECTION = cancelled(REJECTED, f"somebody annotated it {APPROVED}=false")

NOT_MADE = not_all("a move that it goes together with was not made")
NOT_JUDGED = not_all("a move that it goes together with could not be judged")
NOT_PROPOSED = not_all("another record of its bundle is gone, or was called off")
FOR_NO_POD = not_all("the pod that the moves make room for is gone")

#: Seconds within which a replacement must run, and then again become Ready.
PATIENCE_S = 300.0

#: Seconds in addition to its grace period after which an evicted pod counts as stuck, such as by a finalizer.
STUCK_S = 3600.0

#: Seconds in addition to its grace period within which a victim must leave.
LEAVING_S = 300.0


def leaves(step: Step, reason: str, message: str = "", *, is_evicted: bool = True) -> None:
    """Record that the pod leaves: set the replacement's deadline, and emit events on pod and owner."""
    step.write(Phase.EVICTED, reason, message)
    if is_evicted:
        _tell(step)
    count(step)
    if is_victim(step):
        leaves_room(step)
        return
    step.become(MoveStage.REPLACING)
    await_replacement(step)
    if step.state.landing is not None:
        end(step, step.state.landing)


def await_replacement(step: Step) -> None:
    """Set the deadline of the replacement, and of the pod: its owner may replace it only when it is gone."""
    move = step.state.move
    grace_s = 0 if move is None else move.pod.pod.spec.termination_grace_period_seconds or 0
    step.become(leaves_until=step.now + grace_s + STUCK_S)
    step.wait(TimerName.REPLACEMENT, PATIENCE_S)


def count(step: Step) -> None:
    """Count the move once, as the pod leaves or others evict it; the bundle's next move may follow."""
    state = step.state
    if not state.begun:
        step.become(begun=True)
        if not is_victim(step):
            step.order(instructions.CountMove(state.policy, _run(step), evicted=1))


def unreplaced(step: Step, *, has_ended: bool) -> Landing | None:
    """The end of a move whose pod is not replaced, None if a replacement is expected."""
    owner = step.state.spec.owner
    if owner is not None and not has_ended:
        return None
    story = (
        "the pod has no controller that would replace it"
        if owner is None
        else "the pod had ended; nothing replaces it on a node"
    )
    return Landing(Phase.SETTLED if has_ended else Phase.FAILED, "NoReplacement", story)


def leaves_room(step: Step) -> None:
    """Wait for an evicted victim to leave; no replacement is expected."""
    step.become(MoveStage.LEAVING)
    pod = step.around.pod(step.state.pod_uid)
    if step.state.pod_gone or pod is None or pod.has_ended:
        left(step)
    else:
        _await_departure(step)


def going(step: Step, _event: events.PodTerminating) -> None:
    """The watch shows that a victim is terminating: from now on it has its whole time to leave."""
    if not step.state.pod_terminating:
        step.become(pod_terminating=True)
        _await_departure(step)


def _await_departure(step: Step) -> None:
    move = step.state.move
    grace_s = 0 if move is None else move.pod.pod.spec.termination_grace_period_seconds or 0
    step.wait(TimerName.LEAVING, grace_s + LEAVING_S)


def refused(step: Step, answer: WriteResult) -> None:
    """Close the move of a pod that stays: write the reason, and release the room."""
    step.become(landing=None)
    match answer.verdict:
        case WriteOutcome.BLOCKED:
            budget = answer.budget.partition("/")[2]
            why = Landing(Phase.BLOCKED, "PodDisruptionBudget", answer.message, blocked_by=budget)
        case WriteOutcome.GONE | WriteOutcome.CONFLICT:
            why = unlike(answer)
        case WriteOutcome.REFUSED:
            why = Landing(Phase.FAILED, "EvictionRefused", answer.message)
        case _:
            why = Landing(Phase.FAILED, "EvictionFailed", answer.message)
    end(step, why)


def unlike(answer: WriteResult) -> Landing:
    """The landing for a pod that has changed since it was judged, or could not be read."""
    match answer.verdict:
        case WriteOutcome.GONE:
            return cancelled("Gone", f"the pod is gone, or another one by now: {answer.message}")
        case WriteOutcome.CONFLICT:
            return cancelled(CHANGED, answer.message)
        case _:
            return cancelled(NOT_REVALIDATED, answer.message)


def end(step: Step, landing: Landing) -> None:
    """End the move: release the target, stop following, and write the landing."""
    pod = landing.replacement
    release(step)
    if step.state.stage in IN_FLIGHT - {MoveStage.COMMITTING} and not is_victim(step):
        step.order(instructions.StopFollowing(step.state.key, spent=pod.uid if pod is not None else ""))
    if pod is not None:
        step.order(instructions.ReleaseReplacement(step.state.key, pod.uid))
    was_begun = step.state.begun
    step.close(landing)
    if was_begun:
        verified = int(landing.phase is Phase.SETTLED)
        step.order(instructions.CountMove(step.state.policy, _run(step), verified=verified))


def _run(step: Step) -> str:
    """The run that the move counts for, "" for a proposal."""
    return "" if step.state.spec.mode is Mode.APPROVE else step.state.run


def release(step: Step) -> None:
    """Release the target."""
    if step.state.holds:
        step.become(holds=False)
        step.order(instructions.ReleaseTarget(step.state.key))


def is_victim(step: Step) -> bool:
    """Whether the move is an eviction of a victim of preemption."""
    return step.state.spec.strategy == PREEMPTION


def _tell(step: Step) -> None:
    """Emit events on the pod and on its owner, where people look for them."""
    state, move = step.state, step.state.move
    if move is None or is_victim(step):
        return
    pod, record = move.pod.pod, state.key.partition("/")[2]
    target = f", expected on {move.target}" if move.target else ""
    text = f"{move.strategy}: {move.reason}; evicted from {move.source}{target} (record {record})"
    step.order(instructions.EmitEvent(pod_reference(pod), "Evicted", "Evicting", text))
    owner = pod.metadata.owner
    if owner is not None:
        reference = {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "namespace": pod.namespace,
            "name": owner.name,
            "uid": owner.uid,
        }
        step.order(instructions.EmitEvent(reference, "PodEvicted", "Evicting", f"pod {pod.name}: {text}"))


def is_in_flight(state: MoveState) -> bool:
    """Whether other moves of the workload wait for this one's replacement."""
    is_open = state.landing is None or state.deferred
    return state.stage in IN_FLIGHT and is_open and state.spec.strategy != PREEMPTION


def is_forecast(step: Step) -> bool:
    """Whether the target is not proven; records of earlier versions name only the planner."""
    spec = step.state.spec
    return spec.forecast or spec.planner is PlannerName.UPSTREAM


# -- the replacement -------------------------------------------------------------------------------------


def credited(step: Step, event: events.ReplacementEvent) -> None:
    """Reserve the target for the pod that replaces the moved one, and nominate it there."""
    known, state, pod = step.state.replacement, step.state, event.pod
    step.become(replacement=pod)
    if known is not None and known.uid == pod.uid:
        return
    if state.spec.target_node is not None and not pod.node and not is_forecast(step):
        step.order(instructions.TransferTarget(state.key, pod))
    release(step)  # the pod has the reserved room already


def running(step: Step, event: events.ReplacementRunning) -> None:
    """Set the deadline again for the replacement that now runs, to become Ready."""
    credited(step, event)
    if not step.state.was_running:
        step.become(was_running=True)
        step.wait(TimerName.REPLACEMENT, step.state.patience_s)


def ready(step: Step, event: events.ReplacementReady) -> None:
    """End as Settled: the replacement is where it should be."""
    pod = event.pod
    conclude(step, Landing(Phase.SETTLED, "Verified", f"the replacement is ready on {pod.node}", pod))


def returned(step: Step, event: events.ReplacementReturned) -> None:
    """End as Returned: the replacement is on the node that the pod was to leave."""
    conclude(step, return_of(step, event.pod))


def lost(step: Step, event: events.ReplacementLost) -> None:
    """Forget a pod that no longer replaces the moved one; a group that starts over keeps the target."""
    bundle = step.state.spec.bundle
    if step.state.replacement is not None and step.state.replacement.uid == event.pod.uid:
        step.become(replacement=None)
        if bundle is not None and bundle.group is not None and not is_forecast(step):
            step.become(holds=True)
            step.order(instructions.ReserveTarget(step.state.key, step.state.move))


#: Transitions of a move whose replacement is followed.
REPLACEMENT: Mapping[type, Transition] = MappingProxyType(
    {
        events.ReplacementSeen: credited,
        events.ReplacementRunning: running,
        events.ReplacementReady: ready,
        events.ReplacementReturned: returned,
        events.ReplacementLost: lost,
    }
)


def conclude(step: Step, landing: Landing) -> None:
    """End with a known outcome; before the response, release the target and write the record later."""
    if step.state.stage is MoveStage.REPLACING:
        end(step, landing)
        return
    release(step)
    if landing.replacement is not None:
        step.order(instructions.ReleaseReplacement(step.state.key, landing.replacement.uid))
    step.become(landing=landing, replacement=landing.replacement)


def return_of(step: Step, pod: PodFacts) -> Landing:
    """A landing: the replacement is on the node that the pod was to leave."""
    source = step.state.spec.from_node
    return Landing(Phase.RETURNED, "SameNode", f"the replacement is ready on {source} again", pod)


def gave_up(step: Step) -> Landing:
    """The landing of a move whose replacement was late."""
    within, spec = f"within {PATIENCE_S:.0f} s", step.state.spec
    pod = step.state.replacement
    if pod is not None:
        pod = step.around.pod(pod.uid) or pod
    if pod is None:
        return Landing(Phase.FAILED, "NoReplacement", f"no replacement ran {within}")
    if not pod.runs:
        story = f"no replacement ran {within}; pod {pod.name} is {pod.phase or 'Pending'}"
        return Landing(Phase.FAILED, "ReplacementNotRunning", story)
    if pod.node == spec.from_node and spec.purpose is not Purpose.RESTART:
        story = f"the replacement runs on {pod.node} again, and was not Ready {within}"
        return Landing(Phase.RETURNED, "SameNode", story, pod)
    story = f"pod {pod.name} runs on {pod.node}, and was not Ready {within}"
    return Landing(Phase.FAILED, "ReplacementNotReady", story, pod)


def left(step: Step, _event: events.PodGone | None = None) -> None:
    """End the move of a victim that has left."""
    step.close(Landing(Phase.SETTLED, "Left", f"the pod has left {step.state.spec.from_node}"))
