"""Descheduler's check whether a pod fits a node (NodeFit), cheaper and weaker than the scheduler's filters.

For planner Upstream only, where upstream uses it (evictor option ``nodeFit``, candidates of two strategies).
It ignores spreading, pod affinity, other pods' anti-affinity, volumes, ports and earlier moves of the plan;
the other planners ask the scheduler's own filters.

Source: descheduler v0.36, ``pkg/descheduler/node/node.go`` (NodeFit) and ``pkg/utils/predicates.go``.
"""

from collections.abc import Iterable

from msgspec import Struct

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.requests import to_integer
from plimsoll.model.selectors import Selector, SelectorError, compile_selector
from plimsoll.model.taints import untolerated
from plimsoll.toolkit.descheduling.node_usage import BASIC, exact_requests, requested, rounded


class AntiAffinityTerm(Struct, frozen=True):
    """A required anti-affinity term as upstream reads it: only names of namespaces and the selector."""

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str

    def matches(self, pod: PodInfo) -> bool:
        """Whether the term selects the pod."""
        return pod.namespace in self.namespaces and self.selector.matches(pod.labels)


def anti_affinity_terms(pod: PodInfo) -> tuple[AntiAffinityTerm, ...]:
    """The pod's required anti-affinity terms, up to the first with an invalid selector."""
    return pod.template.memo("own anti-affinity", lambda: _terms(pod))


def has_malformed_term(pod: PodInfo) -> bool:
    """Whether one of the terms has an invalid selector."""
    return len(anti_affinity_terms(pod)) < len(pod.template.sample.spec.required_anti_affinity)


def refusal_of(pod: PodInfo, node: Node, context: StrategyContext) -> str:
    """Why the pod does not fit the node, in upstream's words; "" when it fits."""
    if node.spec.unschedulable:
        return "node is not schedulable"
    if not pod.template.required_nodes.matches(node.labels, node.name):
        return "pod node selector does not match the node label"
    if untolerated(node.spec.taints, pod.pod.spec.tolerations, numeric=True) is not None:
        return "pod does not tolerate taints on the node"
    terms = anti_affinity_terms(pod)
    if has_malformed_term(pod):
        return "pod has an inter-pod anti-affinity rule that cannot be read"
    if terms:
        for other in context.pods(node.name):
            if other.name != pod.name and any(
                term.topology_key in node.labels and term.matches(other) for term in terms
            ):
                return "pod matches inter-pod anti-affinity rule of other pod on node"
    if pod.pod.node_name != node.name:
        lacking = _lacking(pod, node, context)
        if lacking:
            return f"insufficient {lacking}"
    return ""


def fits_any_other_node(pod: PodInfo, nodes: Iterable[str], context: StrategyContext) -> bool:
    """Whether the pod fits one of the nodes other than its own."""
    return fits_any_node(pod, (name for name in nodes if name != pod.pod.node_name), context)


def fits_any_node(pod: PodInfo, nodes: Iterable[str], context: StrategyContext) -> bool:
    """Whether the pod fits one of the nodes; its own node is not checked for resources."""
    return any(not refusal_of(pod, context.node(name), context) for name in nodes)


def fits_some_node(pod: PodInfo, context: StrategyContext) -> bool:
    """Whether the pod fits one of the nodes under consideration, which may include its own.

    The node that the previous pod fitted is checked first.
    """
    latest = context.kept.get(_LATEST)
    if latest in context.considered and not refusal_of(pod, context.node(latest), context):
        return True
    for name in context.nodes:
        if not refusal_of(pod, context.node(name), context):
            context.kept[_LATEST] = name
            return True
    return False


#: The key under which :func:`fits_some_node` keeps that node for the run.
_LATEST = "fits some node"


def _lacking(pod: PodInfo, node: Node, context: StrategyContext) -> str:
    wanted = exact_requests(pod)
    used = requested(node.name, [*wanted, "pods"], context)
    for name in [*wanted, "pods"]:
        known = name in BASIC or name in node.status.allocatable
        allocatable = node.status.allocatable.get(name, 0)
        # Pods cannot use up a resource that the node does not have, so a request of 0 fits.
        free = to_integer(name, allocatable) - rounded(name, used[name]) if known else 0
        if free < (1 if name == "pods" else rounded(name, wanted[name])):
            return name
    return ""


def _terms(pod: PodInfo) -> tuple[AntiAffinityTerm, ...]:
    terms = []
    written = pod.template.sample.spec.required_anti_affinity
    for term in written:
        try:
            selector = compile_selector(term.label_selector, among=len(written))
        except SelectorError:
            break
        namespaces = frozenset(term.namespaces or (pod.namespace,))
        terms.append(AntiAffinityTerm(namespaces, selector, term.topology_key))
    return tuple(terms)
