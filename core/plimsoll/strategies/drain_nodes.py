"""DrainNodes: empty named nodes completely, or leave them unchanged.

Formula::

    source = a node of ``nodes``, in this order, while fewer than ``most`` nodes are accepted in the run
             and fewer than ``mostPerZone`` of its zone, ``busyZones`` included
    target = the node with the highest score of the scheduler that is neither in ``nodes`` nor in ``avoided``

Either all pods of the node leave, each for its proven place, or none of them.

Units: numbers of nodes.
Edges: pods of DaemonSets and static pods stay (with ``ignoreDaemonSets`` false, a node that has some is left
unchanged), terminating and ended pods do not count; a single pod that is protected, or has no place, keeps
its node unchanged. Nodes that do not exist are left out. The limits of the policy apply, except ``perNode``.
Pods of one owner leave one after another, each when the previous pod's replacement is Ready.
Source: our own; NodeMaintenance uses it. What ``kubectl drain`` (v1.36) does, with a proof.
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from pydantic import Field, StrictBool, StrictInt, StrictStr

from plimsoll.framework import PluginArgs, PodInfo
from plimsoll.framework.descheduling import (
    Bundle,
    Planner,
    Refusal,
    Strategy,
    StrategyContext,
    StrategyKind,
    Verdict,
    low_to_high,
)
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Gravity, Vicinity
from plimsoll.framework.descheduling.measurements import Protected
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, Destinations
from plimsoll.toolkit.descheduling.leaving_pods import may_leave
from plimsoll.toolkit.scheduling.topology_levels import ZONE

#: Why pods are moved, as records say it.
REASON = "its node is to be drained"

Count = Annotated[StrictInt, Field(ge=0)]


class DrainNodesArgs(PluginArgs):
    """Arguments; the strategy does not exist upstream."""

    nodes: list[StrictStr] = Field(default=[], description="Nodes to empty, in this order.")
    avoided: list[StrictStr] = Field(
        default=[], description="Further nodes on which no replacement is placed."
    )
    most: Count | None = Field(
        default=None, description="Nodes to empty in one run, at most; left out, all of them."
    )
    most_per_zone: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="Nodes of one zone that are being emptied at the same time, at most."
    )
    busy_zones: dict[StrictStr, Count] = Field(
        default={}, description="Number of nodes that are being emptied already, by zone."
    )
    in_turn: StrictBool = Field(
        default=False,
        description="Whether pods of one owner may leave several nodes in one run, each when the replacement "
        "of the one before it is ready.",
    )
    ignore_daemon_sets: StrictBool = Field(
        default=True, description="Whether nodes with pods of DaemonSets are emptied of all other pods."
    )
    longest_grace_seconds: Count | None = Field(
        default=None,
        description="Nodes with a pod whose terminationGracePeriodSeconds is longer are left unchanged; left "
        "out, pods get whatever they ask for.",
    )


class DrainNodes(Strategy):
    """Empty named nodes, either of all their pods or of none."""

    name: ClassVar = "DrainNodes"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = DrainNodesArgs
    planners: ClassVar = frozenset({Planner.PROVEN})
    empties_nodes: ClassVar = True
    is_ordered: ClassVar = True

    def __init__(self, args: DrainNodesArgs) -> None:
        self.args = args
        self._nodes = frozenset(args.nodes)
        self.to_empty = self._nodes | set(args.avoided)

    def candidates(self, context: StrategyContext) -> Candidates:
        """One bundle for each node that can be emptied."""
        others = [name for name in context.cluster.rows if name not in self.to_empty]
        destinations = Destinations.among(frozenset(others))
        accepted, zones = 0, Counter(self.args.busy_zones)
        for name in self.args.nodes:
            if accepted == self.args.most:
                return
            if name not in context.cluster.rows:
                continue
            zone = context.node(name).labels.get(ZONE, "")
            if self.args.most_per_zone is not None and zone and zones[zone] >= self.args.most_per_zone:
                continue
            bundle = self._bundle(name, destinations, context)
            if bundle is None:
                continue
            verdict = yield bundle
            if verdict is Verdict.ACCEPTED:
                accepted += 1
                zones[zone] += 1

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Nodes with pods that are to leave, by the number of these."""
        chosen = self._nodes if near is None else self._nodes & near.nodes
        found = {name: self._leaving(name, context) for name in chosen if name in context.cluster.rows}
        return {
            Complaint(f"node {name} is to be drained and not empty", Gravity.RULE): float(len(pods))
            for name, pods in found.items()
            if pods
        }

    def _unwanted(
        self, placed: Iterable[PodInfo], leaving: Iterable[PodInfo]
    ) -> Iterator[tuple[PodInfo, Refusal]]:
        """The pods because of which the node is left unchanged, by the strategy's own choices."""
        if not self.args.ignore_daemon_sets:
            message = "the pod belongs to a DaemonSet, and ignoreDaemonSets is false"
            for pod in placed:
                if pod.pod.metadata.has_owner_of("DaemonSet"):
                    yield pod, Refusal("DaemonSetPods", message)
        longest = self.args.longest_grace_seconds
        for pod in leaving if longest is not None else ():
            asked = pod.pod.spec.termination_grace_period_seconds
            if asked is not None and longest is not None and asked > longest:
                message = f"its grace period is {asked} s, and longestGraceSeconds is {longest}"
                yield pod, Refusal("LongGracePeriod", message)

    def _leaving(self, node: str, context: StrategyContext) -> list[PodInfo]:
        return [pod for pod in context.placed(node) if may_leave(pod)]

    def _bundle(self, node: str, destinations: Destinations, context: StrategyContext) -> Bundle | None:
        """All pods of the node; None for an empty node, and if one of its pods must stay."""
        pods = self._leaving(node, context)
        for pod, refusal in self._unwanted(context.placed(node), pods):
            context.protected.append(Protected(pod, REASON, refusal))
            return None
        if not pods or not all([context.may_go(pod, REASON) for pod in pods]):  # noqa: C419 - each one is reported
            return None
        pods.sort(key=lambda pod: (low_to_high(pod.pod), pod.key))
        placed = (Candidate(pod, node, REASON, destinations=destinations) for pod in pods)
        return Bundle(tuple(placed), one_by_one=True, follows=self.args.in_turn)
