"""Explains a policy: its present effect, its last and next run, its obstacles."""

from datetime import datetime

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.api.v1alpha1.annotations import PAUSE_REASON, PAUSED_BY
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy, SchedulingPolicyStatus
from plimsoll.inspection.explanations.past_moves import age_text
from plimsoll.inspection.plans.plans import policy_plans
from plimsoll.inspection.state import ClusterState, JudgedPolicy
from plimsoll.inspection.unknown_objects import UnknownObjectError
from plimsoll.model.counted import counted

#: What a policy does with the moves of its plan, by mode.
_DEEDS = {
    Mode.DRY_RUN: "predicts moves and makes none (mode DryRun)",
    Mode.APPROVE: "proposes moves, which wait for approval (mode Approve)",
    Mode.ENFORCE: "moves pods (mode Enforce)",
}


class PolicyConditionView(AnswerPart):
    """One condition of its status."""

    type: str = Field(description="Type of the condition, such as Ready.")
    status: str = Field(description="True, False or Unknown.")
    reason: str = Field(description="Reason of the condition, for programs.")
    message: str = Field(description="Sentence that explains the condition.")


class PolicyExplanation(Answer):
    """Whether a policy acts, and why not."""

    name: str = Field(description="Name of the SchedulingPolicy.")
    acts: bool = Field(description="Whether it places pods, or evicts or proposes pods to be moved, now.")
    summary: list[str] = Field(description="The answer in a few sentences.")
    conditions: list[PolicyConditionView] = Field(description="Conditions of the policy, from its status.")


def explain_policy(state: ClusterState, name: str) -> PolicyExplanation:
    """Explain the policy with this name.

    Raises:
        UnknownObjectError: It does not exist.
    """
    judged = state.policies.get(name)
    if judged is None:
        raise UnknownObjectError("SchedulingPolicy", name, list(state.policies))
    status = SchedulingPolicyStatus.model_validate(judged.document.get("status") or {})
    obstacle = _obstacle(state, judged, status)
    summary = [f"does not act: {obstacle}"] if obstacle else []
    policy = judged.policy
    if policy is not None:
        summary += [", and ".join(_deeds(policy))] if not obstacle else []
        summary += _runs(state, status)
        if policy.spec.rebalancing is not None:
            summary += [f"now: {plan.outlook}" for plan in policy_plans(state, {name})]
            summary += _others(state, name)
    return PolicyExplanation(
        name=name,
        acts=not obstacle and policy is not None and _is_acting(policy),
        summary=summary,
        conditions=[
            PolicyConditionView(type=each.type, status=each.status, reason=each.reason, message=each.message)
            for each in status.conditions
        ],
    )


def _is_acting(policy: SchedulingPolicy) -> bool:
    spec = policy.spec
    return spec.scheduling is not None or (
        spec.rebalancing is not None and spec.rebalancing.mode is not Mode.DRY_RUN
    )


def _obstacle(state: ClusterState, judged: JudgedPolicy, status: SchedulingPolicyStatus) -> str:
    """Why the policy does nothing; "" if it does something."""
    policy = judged.policy
    if policy is None:
        return judged.unknown or f"it is not accepted: {judged.problem[1]}"
    if policy.spec.suspend:
        notes = policy.metadata.annotations
        by = f" by {notes[PAUSED_BY]}" if notes.get(PAUSED_BY) else ""
        why = f" ({notes[PAUSE_REASON]})" if notes.get(PAUSE_REASON) else ""
        return f"it is suspended{by}{why}; plimsoll resume {judged.name} lets it go on"
    if state.stop and policy.spec.scheduling is None:
        return state.stop
    if not status.conditions:
        return "no operator has looked at it; plimsoll check says why"
    ready = next((each for each in status.conditions if each.type == "Ready"), None)
    return ready.message if ready is not None and ready.status == "False" else ""


def _deeds(policy: SchedulingPolicy) -> list[str]:
    spec = policy.spec
    placing = f"places pods with schedulerName {spec.scheduling.scheduler_name}" if spec.scheduling else ""
    moving = _DEEDS[spec.rebalancing.mode] if spec.rebalancing else ""
    return [each for each in (placing, moving) if each]


def _runs(state: ClusterState, status: SchedulingPolicyStatus) -> list[str]:
    said, last = [state.stop] if state.stop else [], status.last_run
    if last is not None:
        ended = f": {last.message}" if last.message else f": {last.result or 'under way'}"
        said.append(f"last run {_ago(state, last.start_time)} ago{ended}")
    if status.next_run_time is not None:
        left = round(status.next_run_time.timestamp() - state.now)
        said.append(f"next run in {age_text(left)}" if left > 0 else "its next run is due")
    if status.totals is not None:
        totals = status.totals
        said.append(
            f"in all: {counted(totals.moved, 'move')} ended well, {totals.returned} returned,"
            f" {totals.failed} failed"
        )
    return said


def _ago(state: ClusterState, moment: datetime) -> str:
    return age_text(round(state.now - moment.timestamp()))


def _others(state: ClusterState, name: str) -> list[str]:
    others = [
        f"{other} ({policy.spec.rebalancing.mode})"
        for other, policy in state.working.items()
        if other != name and policy.spec.rebalancing is not None
    ]
    return [f"other policies that rebalance: {', '.join(others)}"] if others else []
