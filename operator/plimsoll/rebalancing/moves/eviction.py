"""Transitions of moves by the Eviction API: from the announcing record to the replacement.

An outcome is never written before the response to the eviction: if the replacement is seen earlier, the
outcome waits until that response is recorded. A pod that has left counts as evicted by us as soon as one
response was lost: it is not known whose request evicted it, and a move that happened must not be missing from
the records and the limits. The uid makes retries safe: this pod is evicted at most once, and a later pod of
its name never.
"""

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import deferral, events, outcomes
from plimsoll.rebalancing.moves.instructions import Evict, FollowReplacement
from plimsoll.rebalancing.moves.state import EvictionMethod, Landing, MoveStage, TimerName
from plimsoll.rebalancing.moves.transition import Begin, MoveTable, Step
from plimsoll.records.record import STILL_THERE
from plimsoll.timing.retry import RetryPolicy

#: Retries of an eviction without a usable response.
SENDING = RetryPolicy((0.5, 2.0, 5.0))

#: Final responses that show whether an earlier try with a lost response has evicted the pod. That a budget
#: blocks the pod shows only that it has not left yet: the earlier try may still take effect.
TELLING = frozenset({WriteOutcome.DONE, WriteOutcome.GONE})

#: Seconds by which the watch may lag: after a lost response, the pod may be seen to leave this long after the
#: last try. More than a request may take effect late by.
DOUBT_S = 30.0


# -- sending ---------------------------------------------------------------------------------------------


def committed(step: Step, event: events.RecordAnswered, begins: Begin) -> None:
    """Begin, now that the record announces the move; stop if the write failed, as a restart needs it.

    A victim that need not leave stays. A member of a group that leaves whole waits until all are announced.
    """
    if not event.answer.is_done:
        outcomes.end(step, outcomes.NOT_RECORDED)
    elif event.phase not in (Phase.EVICTING, Phase.SURGING):
        return
    elif outcomes.is_victim(step) and (why := step.around.needless(step.state.key)):
        outcomes.end(step, outcomes.cancelled("NotNeeded", why))
    elif step.state.move is not None and step.state.move.whole:
        step.become(MoveStage.READY)
    else:
        begins(step)


def _its_turn(step: Step, _event: events.TurnReached) -> None:
    """Send the eviction of a member, now that all are announced and those before it leave."""
    pod = step.around.pod(step.state.pod_uid)
    if step.group_leaves and (pod is None or pod.terminating or pod.has_ended):
        _leaves_with_group(step)
    else:
        begin(step)


def _leaves_before_its_turn(step: Step, event: events.PodTerminating | events.PodGone) -> None:
    """A member leaves without an eviction: its group starts over, or no member of it has been sent yet."""
    if not step.group_leaves:
        outcomes.end(step, outcomes.GONE)
        return
    step.become(pod_terminating=True, pod_gone=isinstance(event, events.PodGone))
    _leaves_with_group(step)


def _leaves_with_group(step: Step) -> None:
    """Keep the place of a member that its owner deleted because others of its group were evicted."""
    state = step.state
    if state.stage is MoveStage.READY:
        follow(step, FollowReplacement(state.key, state.spec))
    story = "its owner deleted it, as other pods of its group were evicted"
    outcomes.leaves(step, "LeftWithGroup", story, is_evicted=False)


def begin(step: Step) -> None:
    """Send the eviction; the record announces it."""
    state = step.state
    pod = step.around.pod(state.pod_uid)
    step.become(
        MoveStage.EVICTING,
        may_tell=pod is not None and not pod.terminating and not pod.has_ended,
        pod_gone=False,
        pod_terminating=False,
    )
    if not outcomes.is_victim(step):
        follow(step, FollowReplacement(state.key, state.spec))
    _send(step)


def follow(step: Step, instruction: FollowReplacement) -> None:
    """Follow the replacement; the outcome is known already if none is expected."""
    move = step.state.move
    landing = outcomes.unreplaced(step, has_ended=move is not None and move.pod.pod.is_terminal)
    if landing is not None:
        outcomes.conclude(step, landing)
    else:
        step.order(instruction)


def _send(step: Step) -> None:
    move = step.state.move
    if move is not None:
        step.become(attempts=step.state.attempts + 1)
        step.order(Evict(step.state.key, move))


def _answered(step: Step, event: events.EvictionAnswered) -> None:
    """Retry while no response shows whether the pod leaves; after that, the watch may show it."""
    answer = event.answer
    if event.broke:
        outcomes.refused(step, answer)
        return
    if deferral.is_deferred(step, answer):
        if _has_left(step):
            deferral.left(step)
        else:
            deferral.begin(step, answer.message)
        return
    step.become(answer_lost=step.state.answer_lost or answer.verdict is WriteOutcome.UNKNOWN)
    pause_s = SENDING.pause_after(step.state.attempts, answer)
    if pause_s is None and step.state.answer_lost and answer.verdict not in TELLING:
        pause_s = DOUBT_S
        step.become(refusal=answer)
    if pause_s is not None:
        if _has_left(step):
            _found_gone(step)
        else:
            step.wait(TimerName.RETRY, pause_s)
    elif answer.is_done or _is_ours(step, answer.verdict):
        outcomes.leaves(step, "Accepted")
    else:
        _not_evicted(step, answer)


def _not_evicted(step: Step, answer: WriteResult) -> None:
    """Close the move, unless the pod has left because its group did."""
    if step.group_leaves and (answer.verdict is WriteOutcome.GONE or _has_left(step)):
        _leaves_with_group(step)
    else:
        outcomes.refused(step, answer)


def _is_ours(step: Step, verdict: WriteOutcome) -> bool:
    """Whether a final response other than success means that an earlier try has evicted the pod."""
    return step.state.answer_lost and (verdict is WriteOutcome.GONE or _has_left(step))


def _has_left(step: Step) -> bool:
    """Whether the pod existed when its eviction was sent, and is terminating or gone now."""
    state = step.state
    if not state.may_tell:
        return False
    pod = step.around.pod(state.pod_uid)
    return state.pod_terminating or state.pod_gone or pod is None or pod.terminating or pod.has_ended


def _found_gone(step: Step) -> None:
    """Record the eviction of a pod that has left although no response confirmed it."""
    step.wait_no_more(TimerName.RETRY)
    if step.state.answer_lost:
        outcomes.leaves(step, "Accepted")
    else:
        _not_evicted(step, WriteResult(WriteOutcome.GONE, "it left before it was evicted"))


def _departed(step: Step, event: events.PodTerminating | events.PodGone) -> None:
    """Handle a pod that leaves while a response or the next try is due."""
    if isinstance(event, events.PodGone):
        step.become(pod_gone=True)
    else:
        step.become(pod_terminating=True)
    if step.state.deferred and _has_left(step):
        deferral.left(step)
    elif TimerName.RETRY in step.state.timers and _has_left(step):
        _found_gone(step)


def _timed_out(step: Step, event: events.TimedOut) -> None:
    """Handle a timer: the next try, or a late replacement or victim."""
    match step.state.stage, event.timer:
        case MoveStage.EVICTING, TimerName.RETRY:
            step.wait_no_more(TimerName.RETRY)
            if _has_left(step):
                _found_gone(step)
            elif step.state.refusal is not None:
                outcomes.refused(step, step.state.refusal)
            else:
                _send(step)
        case MoveStage.EVICTING, TimerName.SIGN | TimerName.DEFERRAL:
            deferral.late(step, event.timer)
        case MoveStage.REPLACING, TimerName.REPLACEMENT if _is_still_leaving(step):
            step.write(
                Phase.EVICTED, "Leaving", "the pod is terminating; its owner may wait until it is gone"
            )
            step.wait(TimerName.REPLACEMENT, outcomes.PATIENCE_S)
        case MoveStage.REPLACING, TimerName.REPLACEMENT:
            outcomes.end(step, outcomes.gave_up(step))
        case MoveStage.LEAVING, TimerName.LEAVING:
            node = step.state.spec.from_node
            text = f"the pod was evicted and has not left {node} in time"
            step.close(Landing(Phase.FAILED, STILL_THERE, text))


def _is_still_leaving(step: Step) -> bool:
    """Whether no replacement is known, and the pod itself, such as in a long preStop, is not gone."""
    pod = step.around.pod(step.state.pod_uid)
    is_there = pod is not None and pod.terminating and not pod.has_ended
    return is_there and step.state.replacement is None and step.now < step.state.leaves_until


def _gone(step: Step, _event: events.PodGone) -> None:
    """The evicted pod is gone: an owner that waited for that has its whole time from now on."""
    step.become(pod_gone=True)
    if step.state.replacement is None:
        step.wait(TimerName.REPLACEMENT, outcomes.PATIENCE_S)


TABLE = MoveTable(
    transitions={
        (MoveStage.READY, events.PodTerminating): _leaves_before_its_turn,
        (MoveStage.READY, events.PodGone): _leaves_before_its_turn,
        (MoveStage.READY, events.TurnReached): _its_turn,
        (MoveStage.EVICTING, events.EvictionAnswered): _answered,
        (MoveStage.EVICTING, events.PodTerminating): _departed,
        (MoveStage.EVICTING, events.PodGone): _departed,
        (MoveStage.EVICTING, events.TimedOut): _timed_out,
        (MoveStage.EVICTING, events.EvictionMarked): deferral.marked,
        (MoveStage.REPLACING, events.PodGone): _gone,
        (MoveStage.REPLACING, events.TimedOut): _timed_out,
        (MoveStage.LEAVING, events.PodTerminating): outcomes.going,
        (MoveStage.LEAVING, events.PodGone): outcomes.left,
        (MoveStage.LEAVING, events.TimedOut): _timed_out,
        **{
            (MoveStage.EVICTING, kind): deferral.followed(follows)
            for kind, follows in outcomes.REPLACEMENT.items()
        },
        **{(MoveStage.REPLACING, kind): follows for kind, follows in outcomes.REPLACEMENT.items()},
    },
    begins={EvictionMethod.EVICT: begin},
)
