"""Says which nodes are still starting, so that their present use says little about their later use.

A node is starting while one of these holds:

- it has a taint that its autoscaler, its cloud or its kubelet's agent removes once it can take pods;
- Karpenter has registered it and not initialized it, which covers the startupTaints of a NodePool;
- it exists for less than ``YOUNG`` and a pod of a DaemonSet on it is not ready. Later such a pod is a fault
  of its own, for which a node is not kept.

Such a node is not emptied, as the pods for which it came are not there yet. Its measured use is left out.
Source: cluster-autoscaler 1.36 (``utils/taints``; ``--scale-down-delay-after-add`` is ten minutes as well),
Karpenter 1.12 (``pkg/apis/v1/labels.go``, ``taints.go``).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.disruption_signals import not_emptied

#: For how long after its creation a node may wait for its DaemonSets.
YOUNG = timedelta(minutes=10)

#: Number of nodes that a remark names.
SHOWN = 5

TAINTS = ("karpenter.sh/unregistered", "node.cloudprovider.kubernetes.io/uninitialized")
PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
REGISTERED, INITIALIZED = "karpenter.sh/registered", "karpenter.sh/initialized"


def starting(node: Node, pods: Iterable[PodInfo], now: datetime) -> str:
    """Why a node counts as starting, as a clause; "" if it does not.

    Args:
        node: The node.
        pods: Those on it.
        now: The present time, with a time zone.
    """
    for taint in node.spec.taints:
        if taint.key in TAINTS or taint.key.startswith(PREFIXES):
            return f"it is starting: taint {taint.key}"
    labels, created = node.metadata.labels, node.metadata.creation_timestamp
    if REGISTERED in labels and labels.get(INITIALIZED) != "true":
        return f"it is starting: Karpenter has not labelled it {INITIALIZED}"
    if created is None or now - created >= YOUNG:
        return ""
    for each in pods:
        owner = each.pod.metadata.controller
        if owner is not None and owner.kind == "DaemonSet" and not each.pod.is_ready:
            return f"it is starting: pod {each.key} of a DaemonSet is not ready"
    return ""


def is_starting(node: Node, context: StrategyContext) -> bool:
    """Whether strategies take the node as starting; planner Upstream knows no such nodes."""
    return not context.is_exact and bool(starting(node, context.placed(node.name), context.now))


def started_nodes(context: StrategyContext) -> list[str]:
    """The nodes under consideration whose measured use counts."""
    return [each for each in context.nodes if not is_starting(context.node(each), context)]


def started_nodes_told(context: StrategyContext) -> list[str]:
    """The same; a remark names the others."""
    found = started_nodes(context)
    late = sorted(set(context.nodes).difference(found))
    if late:
        named = ", ".join(late[:SHOWN]) + (", ..." if len(late) > SHOWN else "")
        context.remarks.append(f"what starting nodes use does not count: {named}")
    return found


def why_not_emptied(node: Node, pods: Iterable[PodInfo], now: datetime) -> str:
    """Why strategies that empty nodes leave this one unchanged, as a clause; "" if they do not."""
    return not_emptied(node) or starting(node, pods, now)


def kept(node: Node, context: StrategyContext) -> str:
    """The same for a strategy, by the pods of its context."""
    return why_not_emptied(node, context.placed(node.name), context.now)
