"""RemovePodsViolatingInterPodAntiAffinity: pods whose own required anti-affinity is broken.

A pod is a candidate when one of its required anti-affinity terms matches another pod on the same node,
or on a node with the same value of the term's topology key.

Edges: the pod that declares the rule goes, never the one it objects to; pods of equal names (in two
namespaces) never conflict; on the same node the topology key need not exist; namespace selectors and
matchLabelKeys are not read; terminating pods still conflict; an accepted candidate conflicts no longer.
Source: descheduler v0.36, ``removepodsviolatinginterpodantiaffinity``.
"""

from collections.abc import Iterator
from typing import ClassVar

from plimsoll.framework.node_fit import AntiAffinityTerm, anti_affinity_terms
from plimsoll.framework.pod_scope import ScopedArgs
from plimsoll.framework.strategy import Candidate, Candidates, Strategy, StrategyKind, Verdict
from plimsoll.framework.strategy_context import StrategyContext
from plimsoll.model.node import Node
from plimsoll.model.pod_info import PodInfo
from plimsoll.model.priority import low_to_high


class Rivals:
    """The pods that one term objects to, by node and by domain."""

    def __init__(self, term: AntiAffinityTerm) -> None:
        self._term = term
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_domain: dict[str, dict[str, PodInfo]] = {}

    def add(self, pod: PodInfo, node: Node) -> None:
        """A pod of that node, if the term matches it."""
        if not self._term.matches(pod):
            return
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
        scope = {
            name: sorted(filter(self.args.covers, context.pods(name)), key=lambda pod: low_to_high(pod.pod))
            for name in context.nodes
        }
        terms = {term for pods in scope.values() for pod in pods for term in anti_affinity_terms(pod)}
        rivals = {term: Rivals(term) for term in terms}
        for name, pods in scope.items():
            for pod in pods:
                for each in rivals.values():
                    each.add(pod, context.node(name))
        for name, pods in scope.items():
            node = context.node(name)
            for pod in pods:
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


def _rival(pod: PodInfo, node: Node, rivals: dict[AntiAffinityTerm, Rivals]) -> PodInfo | None:
    """Some pod that the pod must not be near to, and is; namesakes never count."""
    for term in anti_affinity_terms(pod):
        for other in rivals[term].near(node):
            if other.name != pod.name:
                return other
    return None
