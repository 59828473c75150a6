"""Decides whether a policy that moves by load is degraded: two yardsticks, or nothing is measured."""

from collections.abc import Mapping

from plimsoll.framework.descheduling.context import considered_nodes
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.load.load_book import LoadBook
from plimsoll.load.states import LoadState
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.load.load_guards import TWO_YARDSTICKS
from plimsoll.planning.load.load_lines import moving_by_load
from plimsoll.planning.moves import RebalancingConfig

#: The machine reason of policies whose planner Optimal goes by load while nothing is measured.
NOT_MEASURED = "NotMeasured"


def by_load_conditions(rebalancing: RebalancingConfig, cluster: Cluster) -> Mapping[str, str]:
    """Problems of a policy's moves by load: sentences by machine reason; "" for none."""
    return {
        TWO_YARDSTICKS: two_yardsticks(rebalancing, cluster),
        NOT_MEASURED: not_measured(rebalancing, cluster),
    }


def two_yardsticks(rebalancing: RebalancingConfig, cluster: Cluster) -> str:
    """The strategies that move pods by load although a profile places them regardless of it; "" for none.

    One half would move pods off a hot node, and the other half would place them there again.
    """
    moving = sorted(moving_by_load(rebalancing.strategies))
    without = {name for name, each in rebalancing.profiles.items() if not each.scores_load}
    if not moving or not without:
        return ""
    placed = sorted(without & {pod.pod.spec.scheduler_name for pod in cluster.pods.values()})
    if not placed:
        return ""
    consequence = "" if rebalancing.planner is Planner.UPSTREAM else ", so they are not moved for that"
    return (
        f"{', '.join(moving)} moves pods by what nodes use, and profile {', '.join(placed)} places them"
        f" without{consequence}: enable the score plugin NodeLoad there, or take metricsUtilization out of"
        " the strategy"
    )


def not_measured(rebalancing: RebalancingConfig, cluster: Cluster) -> str:
    """Why the planner Optimal cannot plan by load; "" if it can, or does not need to."""
    moving = sorted(moving_by_load(rebalancing.strategies))
    if rebalancing.planner is not Planner.OPTIMAL or not moving:
        return ""
    names = considered_nodes(cluster, rebalancing.nodes)
    if cluster.has_index(LoadBook):
        book = cluster.index(LoadBook)
        if not names or any(book.state(cluster.rows[name]) is LoadState.MEASURED for name in names):
            return ""
    return (
        f"planner Optimal plans by what nodes use, as {', '.join(moving)} does, and no node is measured;"
        " until the metrics API answers, no pod moves for that"
    )
