"""RemovePodsViolatingInterPodAntiAffinity: pods whose own required anti-affinity is broken.

Formula::

    candidate = one of its required anti-affinity terms matches another pod on the same node,
                or on a node with the same value of the term's topology key

Units: none.
Edges: the pod that declares the rule goes, never the one it objects to; pods of equal names (in two
namespaces) never conflict; on the same node the topology key need not exist; namespace selectors and
matchLabelKeys are not read; terminating pods still conflict; an accepted candidate conflicts no longer.
Source: descheduler v0.36, ``removepodsviolatinginterpodantiaffinity``.
Differs: of equal pods the Proven planner proposes the one first that costs least to move (deletion cost, not
serving, restarts, age).
"""

from collections.abc import Iterator
from typing import ClassVar

from plimsoll.framework import (
    Node,
    PodInfo,
    PodTemplate,
    ScopedArgs,
    Strategy,
    StrategyContext,
    StrategyKind,
    Verdict,
)
from plimsoll.framework.node_fit import AntiAffinityTerm, anti_affinity_terms
from plimsoll.framework.strategy import Candidate, Candidates
from plimsoll.framework.turns import least_important_first


class Rivals:
    """The pods that one term objects to, by node and by domain."""

    def __init__(self, term: AntiAffinityTerm) -> None:
        self._term = term
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_domain: dict[str, dict[str, PodInfo]] = {}

    def add(self, pod: PodInfo, node: Node) -> None:
        """A pod of that node, which the term matches."""
        self._by_node.setdefault(node.name, {})[pod.key] = pod
        domain = node.labels.get(self._term.topology_key)
        if domain is not None:
            self._by_domain.setdefault(domain, {})[pod.key] = pod

    def remove(self, pod: PodInfo, node: Node) -> None:
        """A pod of that node goes."""
        self._by_node.get(node.name, {}).pop(pod.key, None)
        self._by_domain.get(node.labels.get(self._term.topology_key, ""), {}).pop(pod.key, None)

    def near(self, node: Node) -> Iterator[PodInfo]:
        """Those on the node, then those in its domain."""
        yield from self._by_node.get(node.name, {}).values()
        domain = node.labels.get(self._term.topology_key)
        if domain is not None:
            yield from self._by_domain.get(domain, {}).values()


class RemovePodsViolatingInterPodAntiAffinityArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2; they also hide the pods that others conflict with."""


class RemovePodsViolatingInterPodAntiAffinity(Strategy):
    """Move pods away from pods that they must not be near to."""

    name: ClassVar = "RemovePodsViolatingInterPodAntiAffinity"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsViolatingInterPodAntiAffinityArgs

    def __init__(self, args: RemovePodsViolatingInterPodAntiAffinityArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Node by node, the pods that matter least first."""
        groups = [group for group in context.siblings() if self.args.covers(group[1][0])]
        rivals = _rivals_of(groups, context)
        if not rivals:
            return
        scope: dict[str, list[PodInfo]] = {name: [] for name in context.nodes}
        for _, pods in groups:
            if anti_affinity_terms(pods[0]):
                for pod in pods:
                    scope[context.node_of(pod)].append(pod)
        for name, pods in scope.items():
            node = context.node(name)
            for pod in least_important_first(pods, context):
                rival = _rival(pod, node, rivals)
                if rival is None:
                    continue
                reason = f"the pod's required anti-affinity forbids it to be near pod {rival.key}"
                if not (context.is_evictable(pod, reason) and context.is_movable(pod, reason)):
                    continue
                verdict = yield Candidate(pod, name, reason)
                if verdict is Verdict.ACCEPTED:
                    for each in rivals.values():
                        each.remove(pod, node)
                if verdict is Verdict.NODE_CLOSED:
                    break


def _rivals_of(
    groups: list[tuple[PodTemplate, list[PodInfo]]], context: StrategyContext
) -> dict[AntiAffinityTerm, Rivals]:
    """The pods that each term objects to; terms are looked up by a label that they ask for."""
    terms = {term for _, pods in groups for term in anti_affinity_terms(pods[0])}
    rivals = {term: Rivals(term) for term in terms}
    by_label: dict[tuple[str, str] | None, list[AntiAffinityTerm]] = {}
    for term in terms:
        by_label.setdefault(_asked_label(term), []).append(term)
    for template, pods in groups:
        labels: list[tuple[str, str] | None] = [None, *template.labels.items()]
        for term in (term for label in labels for term in by_label.get(label, ())):
            if term.matches(pods[0]):
                for pod in pods:
                    rivals[term].add(pod, context.node(context.node_of(pod)))
    return rivals


def _asked_label(term: AntiAffinityTerm) -> tuple[str, str] | None:
    """A label with its one value that every pod meant by the term has; None when there is none."""
    for requirement in term.selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


def _rival(pod: PodInfo, node: Node, rivals: dict[AntiAffinityTerm, Rivals]) -> PodInfo | None:
    """Some pod that the pod must not be near to, and is; namesakes never count."""
    for term in anti_affinity_terms(pod):
        for other in rivals[term].near(node):
            if other.name != pod.name:
                return other
    return None
