"""Transitions of surges: stages Surging and Reverting, and their records after a restart.

A surge is recorded before the Deployment's template is marked. It is Settled when the replacement is ready
and the old pod gone. If the replacement is not ready in time, the rollout is reverted, which drops the new
pod and keeps the old one, unless the template was changed since: then it is left alone. If the reversal gets
no response, the replacement may still become ready and complete the surge.

Of several replicas, one moves by one replica more, which is taken away again when the replacement is ready;
the record is Settled when the Deployment has as many pods again as it wants. If another client changes the
number of replicas meanwhile, it is left alone.

::

    Committing ─▶ Surging ──(ready, old pod gone)──▶ Settled
                   │   ▲ └──(ready on the old node)─▶ Returned
          (not ready) (no response)
                   ▼   │
                 Reverting ────────────────────────▶ Failed
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.kinds.scaled_workloads import SCALED
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.ports.writes import WriteOutcome
from plimsoll.rebalancing.moves import events
from plimsoll.rebalancing.moves.events import (
    PodGone,
    ProcessRestarted,
    ReplacementEvent,
    RolloutAnswered,
    RolloutSight,
    TimedOut,
)
from plimsoll.rebalancing.moves.instructions import (
    EmitEvent,
    FollowReplacement,
    LowerReplicas,
    RevertRollout,
    StartRollout,
)
from plimsoll.rebalancing.moves.outcomes import cancelled, count, credited, end, lost, return_of
from plimsoll.rebalancing.moves.state import EvictionMethod, Landing, MoveStage, PodFacts, TimerName
from plimsoll.rebalancing.moves.transition import MoveTable, Step, nothing
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy

#: Retries for a Deployment that could not be read or written, or had just changed.
STARTING = RetryPolicy((0.2, 1.0, 4.0), repeats=OPEN_OR_CONFLICT)

#: Seconds before the reversal of a rollout is retried.
REVERT_AGAIN_S = 5.0

#: Seconds until the next look at a Deployment whose replica more is to be taken away again.
LOWER_AGAIN_S = 0.5

#: The reason of a record whose replacement is ready, and whose old pod does not go.
OLD_POD_STAYS = "OldPodStays"

#: Seconds within which a replacement must run, and then again become ready.
PATIENCE_S = 300.0

#: Seconds within which the old pod must leave after its replacement is ready; includes the Deployment's
#: ``minReadySeconds`` and the pod's grace period.
LEAVING_S = 900.0

#: The reason of a record whose rollout is being reverted, as its replacement is not ready: the next process
#: continues the reversal, and judges that again. Other endings are recorded with their own reason.
TAKING_BACK = "TakingBack"

#: What a state awaits until the response to an instruction about the Deployment.
ROLLOUT = StartRollout.asks

_RESTARTED, _REFUSED, _RETURNED = "Restarted", "SurgeRefused", "SameNode"

#: The reasons of records without a replacement, and with one that is not ready.
_UNREADY = ("NoReplacement", "ReplacementNotReady")

#: Sentences in records about a Deployment.
SENTENCES: Mapping[RolloutSight, str] = MappingProxyType(
    {
        RolloutSight.CHANGED: "somebody changed the Deployment",
        RolloutSight.GONE: "the Deployment is gone",
        RolloutSight.UNTOUCHED: "somebody changed the replicas of the Deployment",
        RolloutSight.LOWERED: "the surge of this record is over already",
    }
)


#: How a surge ends whose reversal has this reason in its record.
ENDINGS: Mapping[str, Phase] = MappingProxyType(
    {
        **{sight.value: Phase.CANCELLED for sight in SENTENCES},
        _REFUSED: Phase.FAILED,
        OLD_POD_STAYS: Phase.FAILED,
        _RETURNED: Phase.RETURNED,
    }
)


def begin(step: Step) -> None:
    """Start the rollout; the record announces it."""
    key = step.state.key
    step.become(MoveStage.SURGING, patience_s=PATIENCE_S, attempts=1)
    step.order(FollowReplacement(key, step.state.spec), StartRollout(key, step.state.spec))
    step.wait(TimerName.REPLACEMENT, PATIENCE_S)


# -- the rollout -------------------------------------------------------------------------------------


def started(step: Step, event: RolloutAnswered) -> None:
    """Surging: the Deployment was read, and marked if it was untouched."""
    if step.state.was_ready and step.state.spec.is_by_replicas:
        _lowered(step, event)
        return
    _hasten(step, event.patience_s)
    if event.sight is RolloutSight.MARKED:
        _emit(step)
        count(step)
        return
    answer, name = event.answer, event.sight
    if event.sight is RolloutSight.OPEN:
        pause_s = STARTING.pause_after(step.state.attempts, answer)
        if pause_s is not None:
            step.wait(TimerName.RETRY, pause_s)
            return
        if answer.verdict is not WriteOutcome.CONFLICT:
            count(step)  # it may have been started: without a replacement, it is reverted
            return
        name = RolloutSight.CHANGED
    if answer.is_done or answer.verdict is WriteOutcome.CONFLICT:
        end(step, cancelled(name.value, SENTENCES[name]))
    elif answer.verdict is not WriteOutcome.FENCED:  # nothing was started; the next leader finds the record
        end(step, Landing(Phase.FAILED, _REFUSED, answer.message))


def _lowered(step: Step, event: RolloutAnswered) -> None:
    """Surging: the replica more is taken away again, or not yet; its raising may be answered late."""
    sight, pod = event.sight, step.state.replacement
    if sight is RolloutSight.LOWERED:
        step.become(is_lowered=True)
        if step.state.pod_gone and pod is not None:
            _settle(step, pod)
    elif sight in (RolloutSight.MARKED, RolloutSight.OPEN):
        count(step)
        step.wait(TimerName.RETRY, LOWER_AGAIN_S)
    elif event.answer.verdict is not WriteOutcome.FENCED:
        is_choice = event.answer.is_done or event.answer.verdict is WriteOutcome.CONFLICT
        why = SENTENCES[sight] if event.answer.is_done else event.answer.message
        name = step.state.spec.pod.name
        message = f"{why}, {f'and pod {name} has gone' if step.state.pod_gone else f'so pod {name} stays'}"
        # Another client's choice is no failure: no pod was lost, and the next run decides afresh.
        phase, reason = (Phase.CANCELLED, sight.value) if is_choice else (Phase.FAILED, _REFUSED)
        _take_back(step, Landing(phase, reason, message, pod))


def started_late(step: Step, event: RolloutAnswered) -> None:
    """Closed: the replacement was ready before the response arrived."""
    if event.sight is RolloutSight.MARKED:
        _emit(step)


def reverted(step: Step, event: RolloutAnswered) -> None:
    """Reverting: the Deployment was read, and the mark reverted if nothing else had changed."""
    landing = step.state.ending
    if landing is None:
        raise ValueError(f"{step.state.key} is being reverted without a reason")
    answer = event.answer
    if event.sight is RolloutSight.OPEN or answer.verdict is WriteOutcome.FENCED:
        _resume(step)
        return
    name = step.state.spec.pod.name
    if not answer.is_done and step.state.spec.is_by_replicas:
        what = f"the replicas could not be lowered again: {answer.message}"
    elif not answer.is_done:
        what = f"the rollout could not be taken back: {answer.message}"
    elif event.sight is RolloutSight.UNTOUCHED and step.state.spec.is_by_replicas:
        what = "the Deployment wants as many replicas again as before"
    elif event.sight is RolloutSight.UNTOUCHED:
        what = f"the rollout was taken back, pod {name} stays"
    elif step.state.spec.is_by_replicas:
        what = "the number of replicas is left alone"
    else:
        what = f"{SENTENCES[event.sight]} since, so the rollout was left alone"
    message = f"{landing.message}; {what}"
    end(step, Landing(landing.phase, landing.reason, message, landing.replacement))


def timed_out(step: Step, event: TimedOut) -> None:
    """Surging: a retry, a replacement that is not ready, or an old pod that stays."""
    state = step.state
    step.wait_no_more(event.timer)
    if event.timer is TimerName.RETRY:
        step.become(attempts=state.attempts + 1)
        again = LowerReplicas if state.was_ready and step.state.spec.is_by_replicas else StartRollout
        step.order(again(state.key, state.spec))
    elif event.timer is TimerName.LEAVING and not step.state.spec.is_by_replicas:
        message = f"{_late(step)}; its Deployment's rollout is left as it is"
        end(step, Landing(Phase.FAILED, OLD_POD_STAYS, message, state.replacement))
    elif ROLLOUT in state.awaits:
        step.wait(event.timer, REVERT_AGAIN_S)  # what may yet be written is not reverted
    else:
        _revert(step)


def _revert(step: Step) -> None:
    """Revert the surge; the replacement was not ready in time, or the old pod has not gone since."""
    pod = step.state.replacement
    ending = step.state.ending
    if ending is not None:
        _take_back(step, ending if ending.replacement else replace(ending, replacement=pod))
        return
    if step.state.was_ready:
        _take_back(step, Landing(Phase.FAILED, OLD_POD_STAYS, _late(step), pod))
        return
    reason = _UNREADY[pod is not None]
    _take_back(step, Landing(Phase.FAILED, reason, _unready(pod, step.state.patience_s), pod))


def _late(step: Step) -> str:
    """Why a move whose replacement is ready has failed."""
    return (
        f"the replacement was ready, and pod {step.state.spec.pod.name} had not gone {LEAVING_S:.0f} s later"
    )


def _take_back(step: Step, ending: Landing) -> None:
    """Revert the surge, and end so when that is done."""
    step.wait_no_more()
    step.become(MoveStage.REVERTING, ending=ending)
    reason = ending.reason if ending.reason in ENDINGS else TAKING_BACK
    if step.state.reason != reason:
        step.write(Phase.SURGING, reason, ending.message)
    step.order(RevertRollout(step.state.key, step.state.spec))


def _resume(step: Step) -> None:
    """Handle a failed reversal: the replacement may be ready by now; otherwise retry.

    That the replacement is not ready is judged again; each other reason stays.
    """
    ending = step.state.ending
    is_judged_again = ending is not None and ending.reason in _UNREADY
    step.become(MoveStage.SURGING, ending=None if is_judged_again else ending)
    step.wait(TimerName.REPLACEMENT, REVERT_AGAIN_S)
    if step.state.replacement is not None:
        _judge(step, step.state.replacement)


def _hasten(step: Step, patience_s: float) -> None:
    """Shorten the deadline to the Deployment's own progress deadline."""
    less = step.state.patience_s - patience_s
    due = step.state.timers.get(TimerName.REPLACEMENT)
    if less <= 0 or step.state.was_running or due is None:
        return
    step.become(patience_s=patience_s)
    step.wait(TimerName.REPLACEMENT, due - less - step.now)


def _emit(step: Step) -> None:
    """Emit events on the pod and its Deployment, where people look for them."""
    move, spec = step.state.move, step.state.spec
    if move is None or spec.surge is None:
        return
    record = step.state.key.partition("/")[2]
    text = (
        f"{move.strategy}: {move.reason}; to leave {move.source} when its replacement is ready, expected on"
        f" {move.target} (record {record})"
    )
    deployment = {
        "apiVersion": SCALED[spec.surge.kind].api_version,
        "kind": spec.surge.kind,
        "namespace": spec.pod.namespace,
        "name": spec.surge.deployment,
        "uid": spec.surge.uid,
    }
    step.order(
        EmitEvent(pod_reference(move.pod.pod), "Surging", "Surging", text),
        EmitEvent(deployment, "PodSurging", "Surging", f"pod {spec.pod.name}: {text}"),
    )


def _unready(pod: PodFacts | None, patience_s: float) -> str:
    """The problem of a replacement."""
    if pod is None:
        return f"no replacement came within {patience_s:.0f} s"
    state = "not ready" if pod.phase == "Running" else pod.phase
    return f"the replacement was not ready within {patience_s:.0f} s; pod {pod.name} is {state}"


# -- the pods ----------------------------------------------------------------------------------------


def pod_gone(step: Step, _event: PodGone) -> None:
    """Surging: the old pod has left."""
    step.become(pod_gone=True)
    pod = step.state.replacement
    if pod is not None and pod.ready and may_settle(step):
        _settle(step, pod)


def may_settle(step: Step) -> bool:
    """Whether nothing is left to be written."""
    return step.state.is_lowered or not step.state.spec.is_by_replicas


def pod_gone_while_reverting(step: Step, _event: PodGone) -> None:
    """Reverting: remember that the old pod has left, in case the rollout cannot be reverted."""
    step.become(pod_gone=True)


def replacement_changed(step: Step, event: ReplacementEvent) -> None:
    """Surging: the replacement was seen, runs, or is ready."""
    credited(step, event)
    _judge(step, event.pod)


def _judge(step: Step, pod: PodFacts) -> None:
    """Handle the replacement's progress."""
    if pod.runs and not step.state.was_running:
        due = step.state.timers.get(TimerName.REPLACEMENT, -math.inf)
        step.become(was_running=True)
        step.wait(TimerName.REPLACEMENT, max(due - step.now, step.state.patience_s))
    if not pod.ready:
        return
    if pod.node == step.state.spec.from_node:
        count(step)
        if not step.state.spec.is_by_replicas:
            end(step, return_of(step, pod))
        elif ROLLOUT in step.state.awaits:
            step.become(ending=return_of(step, pod))
            step.wait(TimerName.REPLACEMENT, REVERT_AGAIN_S)
        elif step.state.ending is None:
            _take_back(step, return_of(step, pod))
    elif step.state.pod_gone and may_settle(step):
        _settle(step, pod)
    elif not step.state.was_ready:
        step.become(was_ready=True, ending=None)
        step.wait_no_more(TimerName.REPLACEMENT)
        step.wait(TimerName.LEAVING, LEAVING_S)
        if step.state.spec.is_by_replicas and ROLLOUT not in step.state.awaits:
            step.wait_no_more(TimerName.RETRY)  # of the raising, which is done
            step.order(LowerReplicas(step.state.key, step.state.spec))


def _settle(step: Step, pod: PodFacts) -> None:
    count(step)  # its mark shows that the rollout was started, whatever the response will be
    text = f"the replacement is ready on {pod.node}, and the old pod has gone"
    end(step, Landing(Phase.SETTLED, "Verified", text, pod))


# -- a restart ---------------------------------------------------------------------------------------


def recovered(step: Step, event: ProcessRestarted) -> bool:
    """Take over a record of an earlier process; returns whether it is of a surge that is under way."""
    if event.status.phase is not Phase.SURGING:
        return False
    reason, found, ending = event.status.reason or "", event.rollout, None
    if reason in ENDINGS:
        ending = Landing(ENDINGS[reason], reason, event.status.message or "")
    is_reverting = reason == TAKING_BACK or ending is not None
    is_untouched = found is not None and found.answer.is_done and found.sight is RolloutSight.UNTOUCHED
    if not is_reverting and is_untouched and event.pod is not None:
        end(step, cancelled(_RESTARTED, "the operator ended before the rollout was started"))
        return True
    patience_s = 0.0 if is_reverting else min(math.inf if found is None else found.patience_s, PATIENCE_S)
    step.become(
        MoveStage.SURGING,
        way=EvictionMethod.SURGE,
        begun=True,
        recorded=True,
        pod_gone=event.pod is None,
        patience_s=patience_s,
        ending=ending,
        was_ready=ending is not None,
    )
    step.order(
        FollowReplacement(
            step.state.key, step.state.spec, event.since if step.state.spec.is_by_replicas else None
        )
    )
    step.wait(TimerName.REPLACEMENT, patience_s)
    return True


_CHANGES = (
    events.ReplacementSeen,
    events.ReplacementRunning,
    events.ReplacementReady,
    events.ReplacementReturned,
)

#: Events that a surge does not depend on: it continues until the rollout is over.
_INDIFFERENT = (
    events.MovePlanned,
    events.MoveUnplanned,
    events.ProposalAnswered,
    events.RecordAnswered,
    events.RecordDeleted,
    events.PolicyChanged,
    events.StopPressed,
    events.MoveDropped,
    events.PodTerminating,
)

TABLE = MoveTable(
    transitions={
        **{
            (stage, kind): nothing
            for stage in (MoveStage.SURGING, MoveStage.REVERTING)
            for kind in _INDIFFERENT
        },
        **{(MoveStage.SURGING, kind): replacement_changed for kind in _CHANGES},
        **{(MoveStage.REVERTING, kind): credited for kind in _CHANGES},
        (MoveStage.SURGING, events.ReplacementLost): lost,
        (MoveStage.REVERTING, events.ReplacementLost): lost,
        (MoveStage.SURGING, events.PodGone): pod_gone,
        (MoveStage.REVERTING, events.PodGone): pod_gone_while_reverting,
        (MoveStage.SURGING, events.TimedOut): timed_out,
        (MoveStage.REVERTING, events.TimedOut): nothing,
        (MoveStage.SURGING, events.RolloutAnswered): started,
        (MoveStage.REVERTING, events.RolloutAnswered): reverted,
        (MoveStage.CLOSED, events.RolloutAnswered): started_late,
    },
    begins={EvictionMethod.SURGE: begin},
)
"""The transitions of surges."""
