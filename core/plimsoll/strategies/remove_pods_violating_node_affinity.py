"""RemovePodsViolatingNodeAffinity: evict pods whose node violates, or only partly meets, their node affinity.

Required: the scheduler's filter NodeAffinity refuses the pod's node. Preferred: some node that all filters of
the scheduler accept matches preference terms of more weight than the pod's own node does.

Formula::

    weight(node) = sum of the weights of the preference terms that match it

Units: weights as in the pod's preferences, 1..100 each.
Edges: a node selector, and a profile's ``addedAffinity``, count as required. An unknown type stops the
strategy with a message.
Source: descheduler v0.36, ``removepodsviolatingnodeaffinity``.
Differs: under planner Upstream the pod must have a required node affinity, its node not match it or its node
selector, and the pod fit some node by descheduler's own check, which for preferences may be its own; a pod
that has only a ``nodeSelector`` stays, unknown types are ignored, and pods come in the order in which they
are listed. Upstream compares with the best node
even if the pod does not fit there, and then evicts endlessly (issues 1707, 1920).
"""

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field, StrictStr

from plimsoll.framework import Node, PodInfo
from plimsoll.framework.descheduling import CannotJudgeError, Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import (
    Complaint,
    Complaints,
    Gravity,
    Vicinity,
    pods_near,
)
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations, until_closed
from plimsoll.framework.selectors import NodeAffinityTerms, NodeTerm, compile_node_term
from plimsoll.toolkit.descheduling.eviction_order import cheapest_candidates_first
from plimsoll.toolkit.descheduling.filter_answers import is_refused, refused_nodes
from plimsoll.toolkit.descheduling.node_fit import fits_some_node
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

#: The scheduler's filter that decides whether a required affinity is met, and all that read nodes only.
FILTER = "NodeAffinity"
BY_NODE = (FILTER, "TaintToleration", "NodeUnschedulable")

WRONG = "its node does not match the pod's required node affinity"

Preferences = tuple[tuple[int, NodeTerm], ...]


class RemovePodsViolatingNodeAffinityArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    node_affinity_type: tuple[StrictStr, ...] = Field(
        min_length=1, description=f"Which affinities to repair: {REQUIRED}, {PREFERRED}."
    )


class RemovePodsViolatingNodeAffinity(Strategy):
    """Move pods to nodes that match their affinity."""

    name: ClassVar = "RemovePodsViolatingNodeAffinity"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsViolatingNodeAffinityArgs

    def __init__(self, args: RemovePodsViolatingNodeAffinityArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Pods by type and node, the least important first."""
        unknown = [kind for kind in self.args.node_affinity_type if kind not in (REQUIRED, PREFERRED)]
        if unknown and not context.is_exact:
            raise CannotJudgeError(
                f'there is no nodeAffinityType "{unknown[0]}"; use {REQUIRED} or {PREFERRED}'
            )
        for kind in self.args.node_affinity_type:
            if kind not in (REQUIRED, PREFERRED):
                continue
            for name in context.nodes:
                found = list(self._violating(kind, name, context))
                yield from until_closed(cheapest_candidates_first(found, context))

    def _violating(self, kind: str, name: str, context: StrategyContext) -> Iterable[Candidate]:
        node = context.node(name)
        for pod in context.pods(name):
            affinity = pod.template.sample.spec.node_affinity
            if not self.args.covers(pod):
                continue
            reason = (
                _broken(pod, node, context) if kind == REQUIRED else _improvable(pod, affinity, node, context)
            )
            if reason and context.may_go(pod, reason):
                yield Candidate(pod, name, reason, destinations=_destinations(kind, pod, node, context))

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Pods whose required affinity is violated, 1 each; for preferred terms, the missing weight.

        The best possible node counts, whether or not the pod fits there now. Otherwise a pod would be
        reported again as soon as room appears on another node.
        """
        found: dict[Complaint, float] = {}
        for pod, name in pods_near(context, near):
            affinity = pod.template.sample.spec.node_affinity
            if not self.args.covers(pod):
                continue
            node = context.node(name)
            if REQUIRED in self.args.node_affinity_type and is_refused(pod, name, FILTER, context):
                sentence = f"pod {pod.key} is on a node that its required node affinity does not match"
                found[Complaint(sentence, Gravity.RULE)] = 1.0
            if PREFERRED in self.args.node_affinity_type and affinity.preferred:
                missed = self._highest(pod, affinity, context) - _weight(_preferences(pod, affinity), node)
                if missed > 0:
                    sentence = f"pod {pod.key} could be on a node that it prefers"
                    found[Complaint(sentence, Gravity.PREFERENCE)] = float(missed)
        return found

    def _highest(self, pod: PodInfo, affinity: NodeAffinityTerms, context: StrategyContext) -> int:
        """The highest weight among the nodes that match the pod's required node rules."""
        key = (self.name, pod.template)
        if key not in context.kept:
            preferences = _preferences(pod, affinity)
            refused = [each for name in BY_NODE if (each := refused_nodes(pod, name, context)) is not None]
            rows = context.cluster.rows
            context.kept[key] = max(
                (
                    _weight(preferences, node)
                    for node in map(context.node, context.nodes)
                    if not any(each[rows[node.name]] for each in refused)
                ),
                default=0,
            )
        highest: int = context.kept[key]
        return highest


def _broken(pod: PodInfo, node: Node, context: StrategyContext) -> str:
    if not context.is_exact:
        return WRONG if is_refused(pod, node.name, FILTER, context) else ""
    required = pod.template.sample.spec.node_affinity.required
    if required is None or pod.template.required_nodes.matches(node.labels, node.name):
        return ""
    return WRONG if fits_some_node(pod, context) else ""


def _improvable(pod: PodInfo, affinity: NodeAffinityTerms, node: Node, context: StrategyContext) -> str:
    if not affinity.preferred:
        return ""
    preferences = _preferences(pod, affinity)
    present = _weight(preferences, node)
    better = {
        other.name: weight
        for other in map(context.node, context.nodes)
        if (weight := _weight(preferences, other)) > present
    }
    if context.is_exact:
        if not better or not fits_some_node(pod, context):
            return ""
    else:
        rows = context.prospects.feasible(pod) if better else None
        if rows is not None:
            fitting = {context.cluster.nodes[row].name for row in rows.tolist()}
            better = {name: weight for name, weight in better.items() if name in fitting}
        if not better:
            return ""
    best = max(better, key=lambda name: (better[name], name))
    return (
        f"node {best} matches the pod's preferred node affinity better:"
        f" weight {better[best]}, its own node {present}"
    )


def _preferences(pod: PodInfo, affinity: NodeAffinityTerms) -> Preferences:
    return pod.template.memo("preferred nodes", lambda: _compiled(affinity))


def _destinations(kind: str, pod: PodInfo, node: Node, context: StrategyContext) -> Destinations | None:
    """For required affinity, all nodes that pass the filters; for preferred affinity, the better ones."""
    affinity = pod.template.sample.spec.node_affinity
    if kind == REQUIRED:
        return None
    preferences = _preferences(pod, affinity)
    present = _weight(preferences, node)
    return Destinations(
        lambda name: _weight(preferences, context.node(name)) > present,
        lambda name: float(_weight(preferences, context.node(name))),
    )


def _compiled(affinity: NodeAffinityTerms) -> Preferences:
    among = len(affinity.preferred)
    return tuple(
        [(each.weight, compile_node_term(each.preference, among=among)) for each in affinity.preferred]
    )


def _weight(preferences: Preferences, node: Node) -> int:
    return sum(weight for weight, term in preferences if term.matches(node.labels, node.name))
