"""Transitions of moves by the Eviction API: from the record that announces one to the replacement.

An outcome never overtakes the record: a replacement may be seen before the answer to the eviction, so what
is learnt meanwhile waits until the answer is on record. A pod that has left counts as evicted by us as soon
as one answer was lost: nothing tells whose request it was, and a move that happened must not be missing from
the records and the limits. The uid makes a repetition safe: this pod goes at most once, and a later one of
its name never.
"""

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import (
    EvictionAnswered,
    PodGone,
    PodTerminating,
    RecordRefused,
    RecordWritten,
    ReplacementEvent,
    ReplacementLost,
    ReplacementReady,
    ReplacementReturned,
    ReplacementRunning,
    ReplacementSeen,
    TimedOut,
)
from plimsoll.rebalancing.moves.instructions import Evict, FollowReplacement
from plimsoll.rebalancing.moves.outcomes import (
    NOT_RECORDED,
    cancelled,
    credited,
    end,
    gave_up,
    is_victim,
    kept,
    leaves,
    lost,
    made_room,
    refused,
    return_of,
    returned,
    running,
    settled,
    settlement,
    unreplaced,
)
from plimsoll.rebalancing.moves.state import Landing, MoveStage, TimerName, Way
from plimsoll.rebalancing.moves.transition import Begin, MoveTable, Step

#: Seconds before an eviction is sent again that got no usable answer.
ASK_AGAIN_S = (0.5, 2.0, 5.0)

#: Answers that do not tell whether the pod goes.
_OPEN = (WriteOutcome.UNKNOWN, WriteOutcome.BUSY)


# -- sending ---------------------------------------------------------------------------------------------


def begin(step: Step) -> None:
    """It is on record that the pod is about to be evicted."""
    state = step.state
    pod = step.around.pod(state.pod_uid)
    step.become(
        MoveStage.EVICTING,
        begun_at=step.now,
        may_tell=pod is not None and not pod.terminating and not pod.has_ended,
        pod_gone=False,
        pod_terminating=False,
    )
    move = state.move
    if not is_victim(step):
        landing = unreplaced(step, has_ended=move is not None and move.pod.pod.is_terminal)
        if landing is not None:
            kept(step, landing)
        else:
            step.order(FollowReplacement(state.key, state.spec))
    _send(step)


def committed(step: Step, event: RecordWritten, begins: Begin) -> None:
    """The record announces what is about to be sent; a victim that is needed no longer stays."""
    if event.phase not in (Phase.EVICTING, Phase.SURGING):
        return
    if step.state.ending is not None:
        end(step, step.state.ending)
    elif is_victim(step) and (why := step.around.needless(step.state.key)):
        end(step, cancelled("NotNeeded", why))
    else:
        begins(step)


def not_recorded(step: Step, _event: RecordRefused) -> None:
    """What is not on record is not done: the next process would not know of it."""
    end(step, NOT_RECORDED)


def _send(step: Step) -> None:
    move = step.state.move
    if move is not None:
        step.become(attempts=step.state.attempts + 1)
        step.order(Evict(step.state.key, move))


def answered(step: Step, event: EvictionAnswered) -> None:
    """The Eviction API has answered: again while no answer tells whether the pod goes."""
    answer, state = event.answer, step.state
    verdict = answer.verdict
    if verdict in _OPEN and state.attempts <= len(ASK_AGAIN_S) and not event.broke:
        step.become(answer_lost=state.answer_lost or verdict is WriteOutcome.UNKNOWN)
        if _has_left(step):
            _found_gone(step)
        else:
            step.wait(TimerName.RETRY, max(ASK_AGAIN_S[state.attempts - 1], answer.retry_after_s))
    elif answer.is_done or (not event.broke and _is_ours(step, verdict)):
        leaves(step, "Accepted")
    else:
        refused(step, answer)


def _is_ours(step: Step, verdict: WriteOutcome) -> bool:
    """Whether a final answer that is no success means that an earlier try has evicted the pod."""
    if verdict in (WriteOutcome.GONE, WriteOutcome.CONFLICT):
        return step.state.answer_lost
    return verdict is WriteOutcome.UNKNOWN and _has_left(step)


def _has_left(step: Step) -> bool:
    """Whether the pod stood when it was asked to leave, and goes now or is gone."""
    state = step.state
    if not state.may_tell:
        return False
    pod = step.around.pod(state.pod_uid)
    return state.pod_terminating or state.pod_gone or pod is None or pod.terminating or pod.has_ended


def _found_gone(step: Step) -> None:
    """The pod has left while no answer told."""
    step.wait_no_more(TimerName.RETRY)
    if step.state.answer_lost:
        leaves(step, "Accepted")
    else:
        refused(step, WriteResult(WriteOutcome.GONE, "it left before it was evicted"))


def departed(step: Step, event: PodTerminating | PodGone) -> None:
    """The pod goes while an answer is awaited, or the next try is."""
    if isinstance(event, PodGone):
        step.become(pod_gone=True)
    else:
        step.become(pod_terminating=True)
    if TimerName.RETRY in step.state.timers and _has_left(step):
        _found_gone(step)


def retried(step: Step, event: TimedOut) -> None:
    """The pause between two tries is over."""
    if event.timer is TimerName.RETRY:
        step.wait_no_more(TimerName.RETRY)
        if _has_left(step):
            _found_gone(step)
        else:
            _send(step)


def _made_room(step: Step, _event: PodGone) -> None:
    made_room(step)


def _stays(step: Step, event: TimedOut) -> None:
    if event.timer is TimerName.LEAVING:
        text = f"the pod was evicted and has not left {step.state.spec.from_node} in time"
        step.close(Landing(Phase.FAILED, "StillThere", text))


def _timed_out(step: Step, event: TimedOut) -> None:
    if event.timer is TimerName.REPLACEMENT:
        end(step, gave_up(step))


def on_seen(step: Step, event: ReplacementEvent) -> None:
    """Transition: a pod is credited."""
    credited(step, event.pod)


def on_running(step: Step, event: ReplacementEvent) -> None:
    """Transition: the replacement runs."""
    running(step, event.pod)


def on_lost(step: Step, event: ReplacementEvent) -> None:
    """Transition: the pod replaces the moved one no longer."""
    lost(step, event.pod)


def on_ready_early(step: Step, event: ReplacementEvent) -> None:
    """Transition: the replacement is there before the answer is."""
    kept(step, settlement(event.pod))


def on_returned_early(step: Step, event: ReplacementEvent) -> None:
    """Transition: the replacement is back before the answer is."""
    kept(step, return_of(step, event.pod))


def on_ready(step: Step, event: ReplacementEvent) -> None:
    """Transition: the replacement is there."""
    settled(step, event.pod)


def on_returned(step: Step, event: ReplacementEvent) -> None:
    """Transition: the replacement is back."""
    returned(step, event.pod)


TABLE = MoveTable(
    transitions={
        (MoveStage.COMMITTING, RecordRefused): not_recorded,
        (MoveStage.EVICTING, EvictionAnswered): answered,
        (MoveStage.EVICTING, PodTerminating): departed,
        (MoveStage.EVICTING, PodGone): departed,
        (MoveStage.EVICTING, ReplacementSeen): on_seen,
        (MoveStage.EVICTING, ReplacementRunning): on_running,
        (MoveStage.EVICTING, ReplacementReady): on_ready_early,
        (MoveStage.EVICTING, ReplacementReturned): on_returned_early,
        (MoveStage.EVICTING, ReplacementLost): on_lost,
        (MoveStage.EVICTING, TimedOut): retried,
        (MoveStage.REPLACING, ReplacementSeen): on_seen,
        (MoveStage.REPLACING, ReplacementRunning): on_running,
        (MoveStage.REPLACING, ReplacementReady): on_ready,
        (MoveStage.REPLACING, ReplacementReturned): on_returned,
        (MoveStage.REPLACING, ReplacementLost): on_lost,
        (MoveStage.REPLACING, TimedOut): _timed_out,
        (MoveStage.LEAVING, PodGone): _made_room,
        (MoveStage.LEAVING, TimedOut): _stays,
    },
    begins={Way.EVICT: begin},
)
