"""Transitions of evictions that another component carries out in its own time, such as a live migration.

KubeVirt denies the eviction of a virtual machine's pod with 429, migrates the machine, and then the pod ends.
An annotation of the pod says that its eviction is in progress. Others delay an eviction by a webhook and
delete the pod later. Such a move is in flight, nothing is sent a second time, and it ends by what happens:
the pod leaves and its replacement is ready, the annotation is removed while the pod stays, or time runs out.
A replacement that was ready is no outcome before the pod has left: the next attempt of a failed migration has
another one.

Source: descheduler v0.36 (KEP-1397, feature EvictionsInBackground), KubeVirt pull requests 11532 and 15423.
"""

import math
from functools import wraps

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import events, outcomes
from plimsoll.rebalancing.moves.instructions import FollowReplacement, ReserveTarget
from plimsoll.rebalancing.moves.state import Landing, MoveStage, TimerName
from plimsoll.rebalancing.moves.transition import Step, Transition

#: Reasons of records: another component carries the eviction out, or has not.
DEFERRED, ABANDONED = "Deferred", "EvictionAbandoned"

#: Seconds within which a sign must follow (the annotation, another pod of the owner), and within which the
#: pod must leave after the annotation is gone.
SIGN_S = 120.0

#: Seconds within which the pod must leave, if the policy does not say it.
LONGEST_S = 3600.0

#: Outcomes after which a marked pod is carried off by others. The remaining ones say what has become of it.
_OPEN = frozenset({WriteOutcome.BUSY, WriteOutcome.UNKNOWN, WriteOutcome.REFUSED})


def is_deferred(step: Step, answer: WriteResult) -> bool:
    """Whether the response means that another component carries the eviction out."""
    return answer.verdict is WriteOutcome.DEFERRED or (answer.verdict in _OPEN and _is_marked(step))


def begin(step: Step, why: str) -> None:
    """Wait for the other component; the next move of the bundle may follow."""
    step.wait_no_more(TimerName.RETRY)
    step.become(deferred=True, refusal=None)
    outcomes.count(step)
    step.write(Phase.EVICTING, DEFERRED, f"another component carries the eviction out: {why}")
    limit = step.state.deferral_timeout_s
    step.wait(TimerName.DEFERRAL, LONGEST_S if math.isinf(limit) else limit)
    _await_sign(step)


def resumed(step: Step, event: events.ProcessRestarted) -> None:
    """Continue to wait after a restart."""
    mark = True if event.pod is not None and event.pod.in_progress else None
    step.become(MoveStage.EVICTING, deferred=True, mark=mark, begun=True, may_tell=True, attempts=1)
    if event.spec.target_node is not None and not event.over_limit and not outcomes.is_forecast(step):
        step.become(holds=True)
        step.order(ReserveTarget(event.key, event.move))
    if not outcomes.is_victim(step):
        step.order(FollowReplacement(event.key, event.spec, event.since))
    if step.state.reason != DEFERRED:
        step.write(
            Phase.EVICTING, DEFERRED, "another component carries the eviction out: found after a restart"
        )
    step.wait(TimerName.DEFERRAL, max(0.0, LONGEST_S - event.evicting_for_s))
    _await_sign(step)


def left(step: Step) -> None:
    """Record that the pod leaves; a ready replacement that is gone meanwhile was one of a failed attempt."""
    landing = step.state.landing
    found = None if landing is None or landing.replacement is None else landing.replacement
    if found is not None:
        pod = step.around.pod(found.uid)
        if pod is None or pod.terminating or pod.phase == "Failed":
            step.become(landing=None, replacement=None)
    step.wait_no_more()
    step.become(deferred=False)
    outcomes.leaves(step, "Accepted")


def marked(step: Step, event: events.EvictionMarked) -> None:
    """Handle the annotation that appears on the pod, or is removed from it."""
    if step.state.deferred:
        step.become(mark=event.present)
        _await_sign(step)
    elif event.present and TimerName.RETRY in step.state.timers:
        begin(step, "the pod says that its eviction is in progress")


def late(step: Step, timer: TimerName) -> None:
    """Give up if nothing shows that the pod will leave, or time has run out."""
    step.wait_no_more(timer)
    state = step.state
    if timer is TimerName.DEFERRAL:
        why = "the pod did not leave in time"
    elif state.mark is False:
        why = "the annotation that said so was removed, and the pod stays"
    elif state.mark is None and state.replacement is None:
        why = (
            f"within {SIGN_S:.0f} s neither the annotation of an eviction in progress nor another pod"
            " appeared"
        )
    else:
        return
    outcomes.end(step, Landing(Phase.FAILED, ABANDONED, f"{state.message}; {why}"))


def followed(transition: Transition) -> Transition:
    """The transition of a replacement's event, for a pod that may be carried off by others."""

    @wraps(transition)
    def heeded(step: Step, event: events.ReplacementEvent) -> None:
        if not step.state.deferred:
            transition(step, event)
            return
        if isinstance(event, events.ReplacementSeen):
            step.become(landing=None)  # the replacement of an earlier attempt
        transition(step, event)
        step.wait_no_more(TimerName.REPLACEMENT)  # its time begins when the pod has left
        if isinstance(event, events.ReplacementReady | events.ReplacementReturned):
            step.order(FollowReplacement(step.state.key, step.state.spec))
        _await_sign(step)

    return heeded


def _is_marked(step: Step) -> bool:
    pod = step.around.pod(step.state.pod_uid)
    return pod is not None and pod.in_progress


def _await_sign(step: Step) -> None:
    """Set the deadline for a sign, or cancel it."""
    if step.state.mark is not False and _is_marked(step):
        step.become(mark=True)
    state = step.state
    is_expected = state.mark is False or (state.mark is None and state.replacement is None)
    if not is_expected:
        step.wait_no_more(TimerName.SIGN)
    elif TimerName.SIGN not in state.timers:
        step.wait(TimerName.SIGN, SIGN_S)
