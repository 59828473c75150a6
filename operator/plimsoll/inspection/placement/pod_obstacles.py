"""Says what stops a pod on a fork: the message, counts by plugin, and the chance of preemption."""

from collections import Counter

from pydantic import Field

from plimsoll.engine.decision import Decision
from plimsoll.framework import PluginError, PodInfo, Status
from plimsoll.inspection.answer import AnswerPart
from plimsoll.inspection.placement.fork_queue import ForkQueue


class PluginRefusal(AnswerPart):
    """A reason that a plugin refuses nodes for."""

    plugin: str
    reason: str
    nodes: int = Field(
        description="How many nodes it refuses for this reason; 0 when it refuses the pod as a whole."
    )


class PreemptionChance(AnswerPart):
    """What preemption would do for the pod."""

    node: str = Field(description="The node that would take the pod.")
    victims: list[str] = Field(description="Pods that would have to leave it first, as namespace/name.")


class PodObstacle(AnswerPart):
    """Why a pod has no place."""

    pod: str = Field(description="The pod, as namespace/name.")
    message: str = Field(description="As in the PodScheduled condition, in kube-scheduler's words.")
    plugins: list[PluginRefusal] = Field(description="The same by plugin, the reason of most nodes first.")
    preemption: PreemptionChance | None = Field(
        description="What preemption would do; null when it would not help."
    )


def pod_obstacle(queue: ForkQueue, pod: PodInfo, decision: Decision) -> PodObstacle:
    """Explain a decision about a pod, on the fork as it is now."""
    chance = None if decision.diagnosis is None else queue.preemption(pod)
    return PodObstacle(
        pod=pod.key,
        message=decision.message,
        plugins=[] if decision.diagnosis is None else _refusals(queue, pod),
        preemption=None
        if chance is None
        else PreemptionChance(node=chance[0], victims=[victim.key for victim in chance[1]]),
    )


def _refusals(queue: ForkQueue, pod: PodInfo) -> list[PluginRefusal]:
    try:
        evaluation = queue.scheduler_of(pod).evaluate(pod)
    except PluginError as exc:
        return [PluginRefusal(plugin=exc.plugin, reason=str(exc), nodes=0)]
    if not evaluation.pre_filter.is_success:
        return [_refusal(evaluation.pre_filter, reason, 0) for reason in evaluation.pre_filter.reasons]
    counts = Counter(
        (status.plugin, reason) for status in evaluation.statuses.values() for reason in status.reasons
    )
    return [
        PluginRefusal(plugin=plugin, reason=reason, nodes=nodes)
        for (plugin, reason), nodes in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


def _refusal(status: Status, reason: str, nodes: int) -> PluginRefusal:
    return PluginRefusal(plugin=status.plugin, reason=reason, nodes=nodes)
