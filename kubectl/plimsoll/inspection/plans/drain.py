"""Plans a NodeMaintenance as the operator foresees it: all of its nodes on one copy of the cluster."""

from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework.errors import PlimsollError
from plimsoll.inspection.plans.answer import Plan
from plimsoll.inspection.plans.plans import plan_of, replaced
from plimsoll.inspection.state import ClusterState
from plimsoll.policies.node_maintenance import policy_of, selected
from plimsoll.toolkit.descheduling.leaving_pods import may_leave


class NoSuchNodeError(PlimsollError):
    """A node that is to be emptied does not exist."""


def drain_plan(state: ClusterState, given: NodeMaintenance) -> tuple[Plan, tuple[str, ...]]:
    """The plan of a maintenance, and the names of its nodes that cannot be emptied now.

    Raises:
        NoSuchNodeError: A node does not exist.
    """
    cluster = state.cluster
    nodes = selected(given, cluster.nodes)
    missing = [name for name in nodes if name not in cluster.rows]
    if missing:
        raise NoSuchNodeError(f"{state.content.source} has no node {missing[0]}")
    policy = policy_of(given, nodes, Mode.DRY_RUN)
    documents = [each.document for each in state.policies.values()]
    planned = plan_of(state.with_policies(replaced(documents, [policy.to_wire()])), (policy.metadata.name,))
    left = {move.source_node for each in planned.policies for move in each.moves}
    full = [name for name in nodes if any(map(may_leave, cluster.pods_on(cluster.rows[name])))]
    return planned, tuple(name for name in full if name not in left)
