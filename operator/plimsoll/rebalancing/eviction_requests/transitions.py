"""Transitions of evictions by request: stage Requesting, giving up, and their records after a restart.

The pod's responders decide how and when it leaves. Until the response to the request's creation arrives,
events are only remembered. From then on the move ends when the pod leaves, when someone ends the request,
when the policy or a person cancels the move, or when it times out. A failed read ends nothing: a deadline
only has the request inspected, and the result decides.
"""

import math
from collections.abc import Mapping

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import EvictBy, Mode
from plimsoll.planning.limits import LimitLevel
from plimsoll.rebalancing.breakers import STOP
from plimsoll.rebalancing.eviction_requests.progress import NOT_TAKEN_UP, REQUESTED, TAKEN_UP_S, standing
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.events import (
    EvictionAnswered,
    PodGone,
    PodTerminating,
    PolicyChanged,
    ProcessRestarted,
    RequestProgressed,
    RequestReviewed,
    StopPressed,
    TimedOut,
)
from plimsoll.rebalancing.moves.eviction import follow
from plimsoll.rebalancing.moves.instructions import (
    FollowReplacement,
    InspectRequest,
    MoveInstruction,
    RequestEviction,
    ReserveTarget,
    ReviewRequest,
    StopFollowing,
    WithdrawRequest,
)
from plimsoll.rebalancing.moves.outcomes import (
    APPROVED,
    POLICY_CHANGED,
    REJECTED,
    REPLACEMENT,
    cancelled,
    conclude,
    count,
    end,
    gave_up,
    is_forecast,
    leaves,
    refused,
)
from plimsoll.rebalancing.moves.state import Landing, MoveStage, TimerName, Way
from plimsoll.rebalancing.moves.transition import MoveTable, Step, Transition, nothing
from plimsoll.timing.retry import RetryPolicy

#: Retries of creating a request after no usable response.
CREATING = RetryPolicy((1.0, 1.0, 1.0))

#: Seconds until a request that could not be read is inspected again.
INSPECT_AGAIN_S = 2.0

#: Seconds after a restart in which an unknown policy does not count as deleted.
STARTING_S = 30.0

#: Seconds of tolerance for deadlines, as differences of times are rounded.
_GRAIN_S = 0.001


class NoteUnattended(MoveInstruction, frozen=True):
    """Pause requests for a while, as no controller acts on them.

    Attributes:
        message: The finding, in a sentence.
    """

    message: str


def begin(step: Step) -> None:
    """Send the request; the record announces it already."""
    move = step.state.move
    step.become(
        MoveStage.REQUESTING, attempts=1, request=None, ending=None, pod_gone=False, pod_terminating=False
    )
    follow(step, FollowReplacement(step.state.key, step.state.spec))
    if move is not None:
        step.order(RequestEviction(step.state.key, move))


# -- the request -------------------------------------------------------------------------------------


def answered(step: Step, event: EvictionAnswered) -> None:
    """Handle the response to the creation: retry, wait for the pod, or leave it."""
    state, answer = step.state, event.answer
    pause_s = None if event.broke else CREATING.pause_after(state.attempts, answer)
    if pause_s is not None:
        step.wait(TimerName.RETRY, pause_s)
        return
    if not answer.is_done:
        refused(step, answer)  # if a response was lost, the request is found as one that no move waits for
        return
    count(step)
    step.become(begun_at=step.now)
    if state.pod_gone or state.pod_terminating:
        _left(step)
    elif state.ending is not None:
        _call_off(step, state.ending)
    else:
        step.wait(TimerName.TAKEN_UP, TAKEN_UP_S)
        step.wait(TimerName.REQUEST_TIMEOUT, state.request_timeout_s)
        if state.request is not None:
            _judge(step)
        if step.state.stage is MoveStage.REQUESTING:
            step.order(ReviewRequest(state.key, state.spec))


def progressed(step: Step, event: RequestProgressed) -> None:
    """Handle a request that has changed, was inspected, or is gone, maybe with its API."""
    if not event.is_known:
        step.wait(TimerName.RETRY, INSPECT_AGAIN_S)
        return
    step.become(request=event.request)
    if not step.state.begun:
        return
    if event.problem is not None:
        end(step, cancelled(*event.problem))
    else:
        _judge(step)


def _judge(step: Step) -> None:
    """Decide what the request's state means for the move."""
    state = step.state
    found = standing(
        state.request,
        state.key.partition("/")[2],
        since=state.begun_at,
        now=step.now + _GRAIN_S,
        timeout_s=state.request_timeout_s,
    )
    if not found.goes_on:
        if found.reason == NOT_TAKEN_UP:
            step.order(NoteUnattended(state.key, found.message))
        _call_off(step, Landing(found.phase, found.reason, found.message))
        return
    if state.request is not None and state.request.is_observed:
        step.wait_no_more(TimerName.TAKEN_UP)
    step.write(found.phase, found.reason, found.message)


def _call_off(step: Step, landing: Landing) -> None:
    """Cancel the move; the pod is to stay."""
    request = step.state.request
    if request is None or not request.is_withdrawn:
        step.order(WithdrawRequest(step.state.key))
    end(step, landing)


def _call_off_soon(step: Step, landing: Landing) -> None:
    """The same, as soon as the request is known to exist."""
    if step.state.begun:
        _call_off(step, landing)
    else:
        step.become(ending=landing)


def timed_out(step: Step, event: TimedOut) -> None:
    """Handle a timer: a retry, a deadline of the request, or a replacement that was not ready in time."""
    step.wait_no_more(event.timer)
    key = step.state.key
    match event.timer:
        case TimerName.RETRY if step.state.begun:
            step.order(InspectRequest(key))
        case TimerName.RETRY if step.state.move is not None:
            step.become(attempts=step.state.attempts + 1)
            step.order(RequestEviction(key, step.state.move))
        case TimerName.REQUEST_TIMEOUT if math.isinf(step.state.request_timeout_s):
            _call_off(step, POLICY_CHANGED)  # no policy of this name has appeared since the restart
        case TimerName.TAKEN_UP | TimerName.REQUEST_TIMEOUT:
            step.order(InspectRequest(key))
        case TimerName.REPLACEMENT:
            landing = gave_up(step)
            pod = landing.replacement
            step.order(StopFollowing(key, pod.uid if pod is not None else ""))
            conclude(step, landing)


# -- people and policies -----------------------------------------------------------------------------


def reviewed(step: Step, event: RequestReviewed) -> None:
    """Apply changes from while the request was created, or while no process ran."""
    if event.call_off is not None:
        _call_off_soon(step, event.call_off)
    elif event.mode is not None or not math.isinf(step.state.request_timeout_s):
        heed_policy(step, event)  # after a restart a policy may appear later


def heed_policy(step: Step, event: PolicyChanged | RequestReviewed) -> None:
    """Cancel the move if the policy no longer evicts by request; apply a new timeout from the beginning."""
    state = step.state
    if event.mode is not state.spec.mode or event.evict_by is not EvictBy.EVICTION_REQUEST:
        _call_off_soon(step, POLICY_CHANGED)
    elif event.request_timeout_s != state.request_timeout_s:
        step.become(request_timeout_s=event.request_timeout_s)
        if state.begun:
            step.wait(
                TimerName.REQUEST_TIMEOUT, max(0.0, state.begun_at + event.request_timeout_s - step.now)
            )


def stopped(step: Step, event: StopPressed) -> None:
    """Withdraw the request when the stop button is pressed."""
    _call_off_soon(step, Landing(Phase.BLOCKED, LimitLevel.BUDGET.value, event.sentence, blocked_by=STOP))


def proposal_answered(step: Step, event: events.ProposalAnswered) -> None:
    """Cancel the move when a person withdraws the approval."""
    if not event.approved and step.state.spec.mode is Mode.APPROVE:
        _call_off_soon(step, cancelled(REJECTED, f"somebody took {APPROVED}=true back"))


def record_deleted(step: Step, _event: events.RecordDeleted) -> None:
    """Cancel the move; without its record nothing shows why the pod is to leave."""
    step.become(recorded=False)
    _call_off_soon(step, cancelled("RecordDeleted", "the record was deleted"))


# -- the pods ----------------------------------------------------------------------------------------


def departed(step: Step, event: PodTerminating | PodGone) -> None:
    """Handle a pod that leaves according to the watch; others could write the status of a request."""
    if isinstance(event, PodGone):
        step.become(pod_gone=True)
    else:
        step.become(pod_terminating=True)
    if step.state.begun:
        _left(step)


def _left(step: Step) -> None:
    request = step.state.request
    step.wait_no_more()
    leaves(step, "Left", request.said if request is not None else "")


# -- a restart ---------------------------------------------------------------------------------------


def recovered(step: Step, event: ProcessRestarted) -> bool:
    """Take over an earlier process's record if its pod was asked to leave and still exists."""
    stands = event.pod is not None and not event.pod.terminating
    if event.status.phase is not Phase.EVICTING or event.status.reason != REQUESTED or not stands:
        return False
    step.become(
        MoveStage.REQUESTING,
        way=Way.REQUEST,
        begun=True,
        begun_at=step.now - event.evicting_for_s,
        attempts=1,
    )
    if event.spec.target_node is not None and not event.over_limit and not is_forecast(step):
        step.become(holds=True)
        step.order(ReserveTarget(event.key, event.move))
    follow(step, FollowReplacement(event.key, event.spec, event.since))
    step.wait(TimerName.TAKEN_UP, max(0.0, TAKEN_UP_S - event.evicting_for_s))
    step.become(request_timeout_s=math.inf)
    step.wait(TimerName.REQUEST_TIMEOUT, STARTING_S)
    step.order(ReviewRequest(event.key, event.spec), InspectRequest(event.key))
    return True


_IN_REQUESTING: Mapping[type, Transition] = {
    events.MovePlanned: nothing,
    events.MoveUnplanned: nothing,
    events.RecordAnswered: nothing,
    events.RecordDeleted: record_deleted,
    events.ProposalAnswered: proposal_answered,
    events.PolicyChanged: heed_policy,
    events.StopPressed: stopped,
    events.MoveDropped: nothing,
    events.EvictionAnswered: answered,
    events.RequestProgressed: progressed,
    events.RequestReviewed: reviewed,
    events.PodTerminating: departed,
    events.PodGone: departed,
    **REPLACEMENT,
    events.TimedOut: timed_out,
}

#: Stages in which changes of a request come too late.
_LATER = (MoveStage.REPLACING, MoveStage.LEAVING, MoveStage.CLOSED)

#: Stages of moves that were not requested, or not yet.
_ELSEWHERE = (
    MoveStage.PROPOSED,
    MoveStage.WAITING,
    MoveStage.OPENING,
    MoveStage.CHECKING,
    MoveStage.COMMITTING,
    MoveStage.EVICTING,
)

TABLE = MoveTable(
    transitions={
        **{(MoveStage.REQUESTING, kind): transition for kind, transition in _IN_REQUESTING.items()},
        **{
            (stage, kind): nothing
            for stage in (*_ELSEWHERE, *_LATER)
            for kind in (RequestProgressed, RequestReviewed)
        },
    },
    begins={Way.REQUEST: begin},
)
"""The transitions of evictions by request."""
