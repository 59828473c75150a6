"""Notices that a policy and an autoscaler empty the same nodes.

Two that empty nodes undo each other's work: one fills the node that the other is about to remove. An
autoscaler that removes empty nodes only is what such a policy needs. So what counts is not that an autoscaler
is there, but that it marks nodes for removal on which pods still run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from plimsoll.framework.descheduling.strategy import empties_nodes
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import counted
from plimsoll.planning.moves import Objective, RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.toolkit.descheduling.disruption_signals import removing
from plimsoll.toolkit.descheduling.leaving_pods import goes_with_its_node

#: Condition and reason of policies that empty nodes next to an autoscaler that does the same.
CONTESTED, AUTOSCALER = "Contested", "AutoscalerEmptiesNodes"

#: Seconds for which a sighting counts.
HOLDS_S = 86_400.0

#: What to switch off in each autoscaler, so that it removes only what is empty.
REMEDIES = {
    "Karpenter": "set disruption.consolidationPolicy: WhenEmpty in its NodePools (drift and expiry stay)",
    "cluster-autoscaler": "run it with --scale-down-utilization-threshold=0 --ignore-daemonsets-utilization",
}


class _Sighting(Struct, frozen=True):
    at: float  #: in monotonic seconds
    owner: str
    node: str
    pods: int


@dataclass(eq=False)
class ContestedNodes:
    """The latest sighting of each policy that empties nodes."""

    clock: Clock
    _seen: dict[str, _Sighting] = field(default_factory=dict, init=False)

    def look(self, policy: str, rebalancing: RebalancingConfig, cluster: Cluster) -> None:
        """Look at the nodes of a policy in its run."""
        if not empties(rebalancing):
            self._seen.pop(policy, None)
            return
        for row, node in enumerate(cluster.nodes):
            owner = removing(node) if rebalancing.nodes.matches(node.labels) else ""
            if owner not in REMEDIES:
                continue
            pods = sum(not goes_with_its_node(pod) for pod in cluster.pods_on(row))
            if pods:
                self._seen[policy] = _Sighting(self.clock.monotonic(), owner, node.name, pods)
                return

    def forget(self, policy: str) -> None:
        """Forget a policy that no longer rebalances, or has another spec."""
        self._seen.pop(policy, None)

    def advice(self, policy: str) -> Mapping[str, tuple[str, str]]:
        """The condition, for a day after a sighting: reason and sentence by type."""
        seen = self._seen.get(policy)
        if seen is None or self.clock.monotonic() - seen.at >= HOLDS_S:
            return {}
        said = (
            f"this policy empties nodes, and so does {seen.owner}, which was about to remove node {seen.node}"
            f" with {counted(seen.pods, 'pod')}; let one of them do it: {REMEDIES[seen.owner]}, or remove the"
            " strategies that empty nodes from this policy"
        )
        return {CONTESTED: (AUTOSCALER, said)}


def empties(rebalancing: RebalancingConfig) -> bool:
    """Whether a policy empties nodes, by its strategies or its objective."""
    by_strategy = any(
        empties_nodes(each) or each.name == "HighNodeUtilization" for each in rebalancing.strategies
    )
    return by_strategy or rebalancing.goal.objective is Objective.FEWEST_NODES
