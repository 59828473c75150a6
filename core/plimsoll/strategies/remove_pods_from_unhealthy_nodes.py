"""RemovePodsFromUnhealthyNodes: close nodes with a bad condition to new pods, and move their pods away.

Formula::

    matches(node)   = a condition of the node has a listed type and status
    unhealthy(node) = such a condition has held for its timeoutSeconds
    closed          = unhealthy nodes, the longest unhealthy first, at most ``maxNodes``, and those that have
                      been healthy again for less than ``recoverySeconds``
    candidate       = a pod on a closed node that still matches
    target          = the node with the highest score of the scheduler that does not look unhealthy itself

Units: seconds, and numbers of nodes.
Edges: in mode Enforce the operator closes them by the taint ``plimsoll.dev/unhealthy:NoSchedule``, and opens
them again by itself; in the other modes the moves alone are shown. A pod that an evictor protects, or
that has no other place, stays, and the others leave all the same. While half of all nodes or more match a
condition or are not ready, no node is closed and no pod is moved: then the reports are at fault, or the
network. A node that is not ready can be closed, by type ``Ready``; its pods are left to Kubernetes, which
deletes them by their tolerations of ``node.kubernetes.io/not-ready``, as no kubelet would end an evicted pod.
Types as others have them: ``KernelDeadlock``, ``ReadonlyFilesystem``, ``FrequentKubeletRestart`` and
``FrequentContainerdRestart`` of node-problem-detector; ``SystemMemoryContentionPressure``,
``KubepodsMemoryContentionPressure`` and the same for ``Disk`` of a kubelet with pressure stall information
(KEP-5394, alpha in 1.36); a failed device, where its monitor reports a condition of the node.
Source: our own; ``unhealthyNodeConditions`` as in Cluster API's MachineHealthCheck (v1beta2).
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import ClassVar

from plimsoll.framework import Node
from plimsoll.framework.descheduling import Planner, Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Gravity, Vicinity
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations, until_closed
from plimsoll.toolkit.descheduling.eviction_order import cheapest_candidates_first
from plimsoll.toolkit.descheduling.leaving_pods import may_leave
from plimsoll.toolkit.descheduling.unhealthy_nodes import NodeHealth, UnhealthyNodesArgs, health_of


class RemovePodsFromUnhealthyNodesArgs(UnhealthyNodesArgs):
    """Arguments; the strategy does not exist upstream."""


class RemovePodsFromUnhealthyNodes(Strategy):
    """Move pods off nodes with a bad condition."""

    name: ClassVar = "RemovePodsFromUnhealthyNodes"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemovePodsFromUnhealthyNodesArgs
    planners: ClassVar = frozenset({Planner.PROVEN})

    def __init__(self, args: RemovePodsFromUnhealthyNodesArgs) -> None:
        self.args = args

    def candidates(self, context: StrategyContext) -> Candidates:
        """Node by node, the longest unhealthy first; on each the least important pods first."""
        health = self._health(context)
        if health.halted:
            context.remarks.append(health.halted)
            return
        for name, why in health.waiting.items():
            context.remarks.append(f"node {name} {why}, and waits: maxNodes is {self.args.max_nodes}")
        avoided = health.ill.union(health.closed)
        destinations = Destinations.among(frozenset(context.cluster.rows).difference(avoided))
        for name in health.leaving:
            if name not in context.considered:
                continue
            reason = f"its node {health.closed[name]}"
            found = [
                Candidate(pod, name, reason, destinations=destinations)
                for pod in context.pods(name)
                if may_leave(pod) and context.may_go(pod, reason)
            ]
            yield from until_closed(cheapest_candidates_first(found, context))

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Nodes whose pods are to leave, by the number of these."""
        leaving = context.considered.intersection(self._health(context).leaving)
        found = {
            name: sum(map(may_leave, context.placed(name)))
            for name in sorted(leaving if near is None else leaving & near.nodes)
        }
        return {
            Complaint(f"node {name} is unhealthy and not empty", Gravity.RULE): float(count)
            for name, count in found.items()
            if count
        }

    def judge(
        self,
        nodes: Collection[Node],
        is_selected: Callable[[Node], bool],
        now: datetime,
        also_closed: Collection[str] = (),
    ) -> NodeHealth:
        """The judgement about all nodes, with the arguments of ``health_of``."""
        return health_of(self.args, nodes, is_selected, now, also_closed)

    def _health(self, context: StrategyContext) -> NodeHealth:
        """The judgement, made once in a run: its moves change no node."""
        key = RemovePodsFromUnhealthyNodes, self.args
        if key not in context.kept:
            nodes, selector = context.cluster.nodes, context.selector
            context.kept[key] = self.judge(nodes, lambda node: selector.matches(node.labels), context.now)
        found: NodeHealth = context.kept[key]
        return found


def halted(strategies: Iterable[Strategy], nodes: Collection[Node], now: datetime) -> str:
    """Why a policy with these strategies moves nothing while so many nodes look ill; "" if it may."""
    ours = (each for each in strategies if isinstance(each, RemovePodsFromUnhealthyNodes))
    return next((found for each in ours if (found := each.judge(nodes, lambda _: True, now).halted)), "")
