"""Keeps the latest plan of each NodeMaintenance, by node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.node_maintenance import MaintainedMove
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import EvictionPlan, Refused
from plimsoll.rebalancing.maintenance.progress import NodePlan

#: The refusal of pods that stay only because another pod of their bundle does.
FOLLOWS = "NotAll"


@dataclass(eq=False)
class MaintenancePlans:
    """The latest plan of each maintenance's policy, merged by node."""

    cluster: Cluster
    latest: Callable[[str], EvictionPlan | None]  #: the plan of a policy's last run
    _seen: dict[str, EvictionPlan] = field(default_factory=dict, init=False)
    _nodes: dict[str, dict[str, NodePlan]] = field(default_factory=dict, init=False)

    def of(self, policy: str) -> Mapping[str, NodePlan]:
        """What the latest plans say, by node."""
        plan = self.latest(policy)
        nodes = self._nodes.setdefault(policy, {})
        if plan is not None and self._seen.get(policy) is not plan:
            self._seen[policy] = plan
            nodes.update(by_node(plan, self.cluster))
        return nodes

    def forget(self, policy: str) -> None:
        """Forget what is known of a policy's nodes."""
        self._nodes.pop(policy, None)


def by_node(plan: EvictionPlan, cluster: Cluster) -> dict[str, NodePlan]:
    """What a plan says of each node: its moves, or the refusal that keeps it as it is."""
    found: dict[str, NodePlan] = {}
    moves: dict[str, list[MaintainedMove]] = {}
    for each in plan.moves:
        move = MaintainedMove(pod=each.pod.key, target=each.target, surge=each.surge is not None)
        moves.setdefault(each.source, []).append(move)
    refused: dict[str, Refused] = {}
    for refusal in plan.refused:
        row = cluster.row_of_pod(refusal.pod.uid)
        node = "" if row is None else cluster.nodes[row].name
        known = refused.get(node)
        if node and (known is None or known.refusal.reason == FOLLOWS):
            refused[node] = refusal
    for node, made in moves.items():
        found[node] = NodePlan(tuple(made))
    for node, why in refused.items():
        if node not in found:
            message = f"pod {why.pod.key}: {why.refusal.message}"
            found[node] = NodePlan(reason=why.refusal.reason, message=message)
    return found
