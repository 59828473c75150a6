"""Determines the nodes on which a DaemonSet would run a pod, and builds the pod for a node.

Source: Kubernetes v1.36, ``pkg/controller/daemon/daemon_controller.go`` (``NodeShouldRunDaemonPod``) and
``daemon/util/daemonset_util.go`` (tolerations, and the affinity that names the node).
"""

from collections.abc import Iterable, Iterator

import msgspec

from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Affinity, NodeAffinityTerms, Pod, Toleration
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.selectors import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    compile_node_matcher,
)
from plimsoll.model.taints import untolerated

_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def with_daemon_tolerations(pod: Pod) -> Pod:
    """The pod with the tolerations that the DaemonSet controller adds."""
    conditions = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if pod.spec.host_network else [])]
    added = [
        Toleration(key=f"node.kubernetes.io/{condition}", operator="Exists", effect=effect)
        for condition, effect in conditions
    ]
    spec = msgspec.structs.replace(pod.spec, tolerations=(*pod.spec.tolerations, *added))
    return msgspec.structs.replace(pod, spec=spec)


def runs_on(template: Pod, node: Node) -> bool:
    """Whether the DaemonSet of this pod template runs a pod on the node."""
    if template.spec.node_name and template.spec.node_name != node.name:
        return False
    matcher = compile_node_matcher(template.spec.node_selector, template.spec.node_affinity.required)
    return (
        matcher.matches(node.labels, node.name)
        and untolerated(node.spec.taints, template.spec.tolerations) is None
    )


def daemon_pod(template: Pod, node: str) -> Pod:
    """The pod of the template for one node; every term of its affinity selects that node."""
    spec = template.spec
    named = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node,))
    required = spec.node_affinity.required
    terms = (NodeSelectorTerm(),) if required is None else required.node_selector_terms
    bound = NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(match_expressions=term.match_expressions, match_fields=(named,))
            for term in terms
        )
    )
    affinity = spec.affinity or Affinity()
    nodes = NodeAffinityTerms(required=bound, preferred=spec.node_affinity.preferred)
    return msgspec.structs.replace(
        template,
        metadata=msgspec.structs.replace(
            template.metadata,
            name=f"{template.name}-{node}",
            uid=f"new:DaemonSet:{template.namespace}/{template.name}-{node}",
        ),
        spec=msgspec.structs.replace(
            spec, affinity=msgspec.structs.replace(affinity, node_affinity=nodes), node_name=""
        ),
    )


def daemon_templates(pods: Iterable[PodInfo]) -> Iterator[Pod]:
    """A template of each DaemonSet that owns some of the pods, without the node affinity; sorted by name."""
    found: dict[str, Pod] = {}
    for pod in pods:
        owner = pod.pod.metadata.controller
        if owner is not None and owner.kind == "DaemonSet":
            found.setdefault(f"{pod.namespace}/{owner.name}", pod.pod)
    for key in sorted(found):
        yield _unbound(found[key], key.partition("/")[2])


def _unbound(pod: Pod, name: str) -> Pod:
    """The pod without the node name in its affinity."""
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required
        terms = () if required is None else required.node_selector_terms
        freed = tuple(
            msgspec.structs.replace(
                term, match_fields=tuple(each for each in term.match_fields if each.key != NAME_FIELD)
            )
            for term in terms
        )
        # A term without requirements matches nothing; the controller adds one where there is no affinity.
        is_bare = all(not term.match_expressions and not term.match_fields for term in freed)
        selector = None if is_bare else NodeSelector(node_selector_terms=freed)
        nodes = msgspec.structs.replace(affinity.node_affinity, required=selector)
        affinity = msgspec.structs.replace(affinity, node_affinity=nodes)
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, name=name),
        spec=msgspec.structs.replace(pod.spec, affinity=affinity, node_name=""),
    )
