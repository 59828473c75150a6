"""Explains why a pod is pending: refusals by plugin, the nearest miss, remedies, and events for it."""

from pydantic import Field

from plimsoll.answers.answer import AnswerPart
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import Decision
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import EnqueueExtensions, PodInfo
from plimsoll.framework.plugin_answers import judged
from plimsoll.inspection.explanations.examination import Examination, RefusalGroup
from plimsoll.inspection.explanations.nearest import NearMiss, nearest_misses
from plimsoll.inspection.explanations.suggestions import Help, suggestions
from plimsoll.inspection.placement.pod_obstacles import PluginRefusal

#: Maximum number of node names shown per group.
EXAMPLES = 3


class RefusedNodes(AnswerPart):
    """Nodes refused for the same reasons."""

    nodes: int = Field(description="Number of nodes that are refused for this reason.")
    examples: list[str] = Field(description="Names of some of them.")
    pool: str = Field(description="label=value that these nodes and no others have; empty without one.")
    reasons: list[str] = Field(description="All reasons of all plugins.")


class MissingThing(AnswerPart):
    """One thing that a node lacks."""

    kind: str = Field(
        description="Resource, Uncordoning, Toleration, Label, Port, TopologySpread, PodAffinity, "
        "PodAntiAffinity or Other."
    )
    plugin: str = Field(description="The plugin that refuses the node for it.")
    subject: str = Field(description="The resource, taint, label, port or topology domain.")
    amount: int = Field(
        description="Missing amount of a resource, in milli for cpu, bytes for memory and storage; else 1."
    )
    text: str = Field(description="What is missing, in words; follows the name of the node.")
    remedy: str = Field(description="What mends it; tested together with those of the node's other lacks.")


class NearestNode(AnswerPart):
    """A node that a small change would make feasible."""

    node: str = Field(description="Name of the node.")
    text: str = Field(description="What it lacks, in a sentence.")
    lacks: list[MissingThing] = Field(description="What the node lacks, each thing by itself.")


class PreemptionOutlook(AnswerPart):
    """The effect that preemption would have now."""

    node: str = Field(description="The node that would be cleared; empty without one.")
    victims: list[str] = Field(description="Pods that would leave it, most important first.")
    message: str = Field(description="Why it cannot help; empty when it can.")


class Wakening(AnswerPart):
    """Events after which a refusing plugin requeues the pod."""

    plugin: str = Field(description="Plugin whose refusal the event may end.")
    events: list[str] = Field(description="Resource and change; some are looked at more closely by hints.")


class PendingExplanation(AnswerPart):
    """Why the pod is pending."""

    message: str = Field(description="What the PodScheduled condition says, or would say now.")
    nodes: int = Field(description="Nodes of the cluster.")
    feasible: list[str] = Field(description="Nodes that take the pod now.")
    target_node: str = Field(description="The node that an attempt would choose now; empty without one.")
    plugins: list[PluginRefusal] = Field(description="Refusals by plugin, the most nodes first.")
    groups: list[RefusedNodes] = Field(description="Refused nodes by their reasons, the largest group first.")
    nearest: list[NearestNode] = Field(description="The nearest miss first; then those that others refuse.")
    helps: list[Help] = Field(description="What would let it fit, the smallest change first.")
    preemption: PreemptionOutlook | None = Field(description="None where some node takes the pod.")
    wakes: list[Wakening] = Field(description="What wakes it.")


def explain_pending(scheduler: ProfileScheduler, pod: PodInfo) -> PendingExplanation:
    """Explain a pod without a node.

    Raises:
        PluginError: A plugin failed for the pod.
    """
    decision = schedule(scheduler, pod)
    if decision.error is not None:
        raise decision.error
    examination = Examination(scheduler, pod)
    feasible = examination.names(examination.found.rows)
    misses = [] if feasible else nearest_misses(examination)
    return PendingExplanation(
        message=decision.message,
        nodes=len(scheduler.cluster),
        feasible=feasible,
        target_node=decision.node,
        plugins=_by_plugin(examination),
        groups=[_group(examination, each) for each in examination.groups()],
        nearest=[_nearest(each) for each in misses],
        helps=[] if feasible else suggestions(examination, misses),
        preemption=_preemption(decision),
        wakes=_wakes(scheduler, decision),
    )


def _by_plugin(examination: Examination) -> list[PluginRefusal]:
    if not examination.rejected.is_success:
        status = examination.rejected
        nodes = len(examination.cluster)
        return [PluginRefusal(plugin=status.plugin, reason=status.message, nodes=nodes)]
    found = [
        PluginRefusal(plugin=plugin, reason=reason, nodes=count)
        for plugin, reasons in examination.by_plugin().items()
        for reason, count in reasons.items()
    ]
    return sorted(found, key=lambda each: (-each.nodes, each.plugin, each.reason))


def _group(examination: Examination, group: RefusalGroup) -> RefusedNodes:
    return RefusedNodes(
        nodes=len(group.rows),
        examples=examination.names(group.rows)[:EXAMPLES],
        pool=group.pool,
        reasons=[reason for _, reasons in group.reasons for reason in reasons],
    )


def _nearest(miss: NearMiss) -> NearestNode:
    lacks = [
        MissingThing(
            kind=lack.kind,
            plugin=lack.plugin,
            subject=lack.subject,
            amount=lack.amount,
            text=lack.text,
            remedy=remedy.text,
        )
        for lack, remedy in zip(miss.lacks, miss.remedies, strict=True)
    ]
    return NearestNode(node=miss.node, text=miss.text, lacks=lacks)


def _preemption(decision: Decision) -> PreemptionOutlook | None:
    nomination = decision.nomination
    if nomination is None:
        return None
    if nomination.status.is_success and nomination.node:
        victims = [each.key for each in nomination.victims]
        return PreemptionOutlook(node=nomination.node, victims=victims, message="")
    return PreemptionOutlook(
        node="", victims=[], message=nomination.status.message.rpartition("preemption: ")[2]
    )


def _wakes(scheduler: ProfileScheduler, decision: Decision) -> list[Wakening]:
    diagnosis, nomination = decision.diagnosis, decision.nomination
    if diagnosis is None:
        return []
    names = diagnosis.plugins | (nomination.waits_for if nomination is not None else frozenset())
    found = []
    for plugin in scheduler.profile.plugins:
        if plugin.name not in names:
            continue
        events = ["any event"]
        if isinstance(plugin, EnqueueExtensions):
            registered = judged(plugin.name, "eventsToRegister", plugin.events_to_register)
            events = [f"{each.resource}/{each.actions.label}" for each in registered]
        found.append(Wakening(plugin=plugin.name, events=events))
    return found
