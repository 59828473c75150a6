"""Topology spread constraints as plain values: which pods count, and on which nodes.

Source: Kubernetes v1.36, ``pod.spec.topologySpreadConstraints``; KEP-3094 (node inclusion policies) and
KEP-3243 (matchLabelKeys).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Toleration, TopologySpreadConstraint
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.selectors import NodeMatcher, Selector, SelectorError, compile_selector
from plimsoll.model.taints import untolerated


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A spread constraint without what does not tell it from others; hashable.

    Attributes:
        nodes: Only nodes that match count; None when the constraint ignores node affinity.
        tolerations: Only nodes whose taints these tolerate count; None when it ignores taints.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    nodes: NodeMatcher | None
    tolerations: frozenset[Toleration] | None

    def admits(self, node: Node) -> bool:
        """Whether the node's domain counts for the constraint's pods."""
        if self.nodes is not None and not self.nodes.matches(node.labels, node.name):
            return False
        return (
            self.tolerations is None or untolerated(node.spec.taints, self.tolerations, numeric=True) is None
        )


def spread_constraints_of(pod: PodInfo, wanted: tuple[str, ...]) -> tuple[SpreadConstraint, ...]:
    """A pod's constraints of the wanted kinds, such as ``DoNotSchedule``; remembered by template."""
    return pod.template.memo(("spread constraints", wanted), lambda: tuple(_compiled(pod, wanted)))


def _compiled(pod: PodInfo, wanted: tuple[str, ...]) -> Iterator[SpreadConstraint]:
    for each in pod.pod.spec.topology_spread_constraints:
        if each.when_unsatisfiable in wanted:
            selector = _selector(each, pod)
            if selector is not None:
                yield SpreadConstraint(
                    max_skew=each.max_skew,
                    topology_key=each.topology_key,
                    selector=selector,
                    nodes=pod.template.required_nodes if each.node_affinity_policy == "Honor" else None,
                    tolerations=frozenset(pod.pod.spec.tolerations)
                    if each.node_taints_policy == "Honor"
                    else None,
                )


def _selector(constraint: TopologySpreadConstraint, pod: PodInfo) -> Selector | None:
    """The pods that count: the selector's, of the pod's own revision where the constraint asks for that."""
    try:
        selector = compile_selector(constraint.label_selector)
    except SelectorError:
        return None
    keys = constraint.match_label_keys
    return selector.and_equal({key: pod.labels[key] for key in keys if key in pod.labels})
