"""Transitions of moves by the Eviction API: from the record that announces one to the replacement.

An outcome never overtakes the record: a replacement may be seen before the answer to the eviction, so what
is learnt meanwhile waits until the answer is on record. A pod that has left counts as evicted by us as soon
as one answer was lost: nothing tells whose request it was, and a move that happened must not be missing from
the records and the limits. The uid makes a repetition safe: this pod goes at most once, and a later one of
its name never.
"""

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events, outcomes
from plimsoll.rebalancing.moves.instructions import Evict, FollowReplacement
from plimsoll.rebalancing.moves.state import Landing, MoveStage, TimerName, Way
from plimsoll.rebalancing.moves.transition import Begin, MoveTable, Step
from plimsoll.timing.retry import RetryPolicy

#: When an eviction is sent again that got no usable answer.
SENDING = RetryPolicy((0.5, 2.0, 5.0))

#: Final answers that tell whether an earlier try of which the answer was lost has evicted the pod: a budget
#: blocks no pod that is leaving already.
TELLING = frozenset({WriteOutcome.DONE, WriteOutcome.GONE, WriteOutcome.BLOCKED})

#: Seconds for which the watch may be behind: where an answer was lost, the pod may be seen to leave so long
#: after the last try.
DOUBT_S = 30.0


# -- sending ---------------------------------------------------------------------------------------------


def committed(step: Step, event: events.RecordAnswered, begins: Begin) -> None:
    """The record announces what is about to be sent, or nothing is: the next process would not know of it.

    A victim that need not go stays.
    """
    if not event.answer.is_done:
        outcomes.end(step, outcomes.NOT_RECORDED)
    elif event.phase not in (Phase.EVICTING, Phase.SURGING):
        return
    elif outcomes.is_victim(step) and (why := step.around.needless(step.state.key)):
        outcomes.end(step, outcomes.cancelled("NotNeeded", why))
    else:
        begins(step)


def begin(step: Step) -> None:
    """It is on record that the pod is about to be evicted."""
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
    """Look out for the replacement; the outcome is known already when none is expected."""
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
    """Sent again while no answer tells whether the pod goes; in the end the watch may tell."""
    answer = event.answer
    if event.broke:
        outcomes.refused(step, answer)
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
        outcomes.refused(step, answer)


def _is_ours(step: Step, verdict: WriteOutcome) -> bool:
    """Whether a final answer that is no success means that an earlier try has evicted the pod."""
    return step.state.answer_lost and (verdict is WriteOutcome.GONE or _has_left(step))


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
        outcomes.leaves(step, "Accepted")
    else:
        outcomes.refused(step, WriteResult(WriteOutcome.GONE, "it left before it was evicted"))


def _departed(step: Step, event: events.PodTerminating | events.PodGone) -> None:
    """The pod goes while an answer is awaited, or the next try is."""
    if isinstance(event, events.PodGone):
        step.become(pod_gone=True)
    else:
        step.become(pod_terminating=True)
    if TimerName.RETRY in step.state.timers and _has_left(step):
        _found_gone(step)


def _timed_out(step: Step, event: events.TimedOut) -> None:
    """The pause between two tries is over, a replacement is late, or a victim is."""
    match step.state.stage, event.timer:
        case MoveStage.EVICTING, TimerName.RETRY:
            step.wait_no_more(TimerName.RETRY)
            if _has_left(step):
                _found_gone(step)
            elif step.state.refusal is not None:
                outcomes.refused(step, step.state.refusal)
            else:
                _send(step)
        case MoveStage.REPLACING, TimerName.REPLACEMENT:
            outcomes.end(step, outcomes.gave_up(step))
        case MoveStage.LEAVING, TimerName.LEAVING:
            node = step.state.spec.from_node
            text = f"the pod was evicted and has not left {node} in time"
            if outcomes.is_unseen(step.state):
                text = f"the record says that the pod was evicted, and the pod stays on {node}"
            step.close(Landing(Phase.FAILED, "StillThere", text))


TABLE = MoveTable(
    transitions={
        (MoveStage.EVICTING, events.EvictionAnswered): _answered,
        (MoveStage.EVICTING, events.PodTerminating): _departed,
        (MoveStage.EVICTING, events.PodGone): _departed,
        (MoveStage.EVICTING, events.TimedOut): _timed_out,
        (MoveStage.REPLACING, events.TimedOut): _timed_out,
        (MoveStage.LEAVING, events.PodTerminating): outcomes.going,
        (MoveStage.LEAVING, events.PodGone): outcomes.left,
        (MoveStage.LEAVING, events.TimedOut): _timed_out,
        **{(MoveStage.EVICTING, kind): follows for kind, follows in outcomes.REPLACEMENT.items()},
        **{(MoveStage.REPLACING, kind): follows for kind, follows in outcomes.REPLACEMENT.items()},
    },
    begins={Way.EVICT: begin},
)
