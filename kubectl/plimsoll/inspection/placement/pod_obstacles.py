"""Explains why a pod does not fit on a fork: the message, counts by plugin, and the effect of preemption."""

from collections import Counter

from msgspec.structs import replace
from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.engine.decision import Decision
from plimsoll.framework import PluginError, PodInfo, Status
from plimsoll.offline.cluster import OfflineCluster


class PluginRefusal(AnswerPart):
    """A reason for which a plugin refuses nodes."""

    plugin: str = Field(description="Plugin that refuses.")
    reason: str = Field(description="Reason that the plugin gives, as in the message of the pod.")
    nodes: int = Field(
        description="How many nodes it refuses for this reason; 0 when it refuses the pod as a whole."
    )


class PreemptionChance(AnswerPart):
    """The effect that preemption would have for the pod."""

    node: str = Field(description="The node that would take the pod.")
    victims: list[str] = Field(description="Pods that would have to leave it first, as namespace/name.")


class PodObstacle(AnswerPart):
    """Why a pod has no node."""

    pod: str = Field(description="The pod, as namespace/name.")
    reason: str = Field(description="Why, in kube-scheduler's words, without what preemption said.")
    message: str = Field(
        description="Why the pod has no node, as in the PodScheduled condition, in kube-scheduler's words."
    )
    plugins: list[PluginRefusal] = Field(
        description="Refusals of each plugin, the reason of most nodes first."
    )
    preemption: PreemptionChance | None = Field(
        description="What preemption would do; null when it would not help."
    )


def pod_obstacle(queue: OfflineCluster, pod: PodInfo, decision: Decision) -> PodObstacle:
    """Explain a decision about a pod, on the present fork."""
    if decision.diagnosis is None:  # not tried, or not individually
        text = decision.message
        return PodObstacle(pod=pod.key, reason=text, message=text, plugins=[], preemption=None)
    whole = queue.attempt(pod)
    nomination = whole.nomination
    chance = None
    if nomination is not None and nomination.status.is_success and nomination.node:
        victims = [victim.key for victim in nomination.victims]
        chance = PreemptionChance(node=nomination.node, victims=victims)
    return PodObstacle(
        pod=pod.key,
        reason=str(replace(decision.diagnosis, post_filter_message="")),
        message=whole.message,
        plugins=_refusals(queue, pod),
        preemption=chance,
    )


def _refusals(queue: OfflineCluster, pod: PodInfo) -> list[PluginRefusal]:
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
