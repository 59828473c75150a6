"""Usage of each node by the Prometheus queries of a policy: any number of named resources.

Units: billionths of cpu and memory; percent of a hundred for other resources.
Edges: a node without a valid value of each resource is left out, and Upstream then stops.
"""

from collections.abc import Iterable, Mapping

from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.toolkit.descheduling.node_usage import (
    BILLION,
    NodeUsage,
    UsageError,
    because,
    capacity_of,
    tell_left_out,
)
from plimsoll.toolkit.descheduling.starting_nodes import started_nodes_told


class QueriedResources:
    """Usage from the policy's Prometheus queries, for the resources that thresholds name."""

    def __init__(self, resources: Iterable[str]) -> None:
        self.resources = tuple(resources)

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        """The measured usage of the nodes under consideration."""
        names = started_nodes_told(context)
        found = self.some(names, context)
        if not found and names:
            measured = ", ".join(self.resources)
            raise UsageError(because(f"the Prometheus queries measure {measured} of no node", context))
        tell_left_out("the Prometheus queries returned no sound value", found, names, context)
        return found

    def some(self, names: Iterable[str], context: StrategyContext) -> list[NodeUsage]:
        """The measured usage of the named nodes."""
        measured = context.measurements.queried
        if measured is None:
            raise UsageError(because("there is no answer to the Prometheus queries", context))
        found = []
        for name in names:
            sample = measured.get(name, {})
            if not sample.keys() >= set(self.resources):
                if context.is_exact:
                    raise UsageError(f"the Prometheus queries returned no sound value for node {name}")
                continue
            node = context.node(name)
            room = capacity_of(node, self.resources)
            room |= {each: 100 * BILLION for each in self.resources if each not in ("cpu", "memory")}
            found.append(NodeUsage(node, {each: sample[each] for each in self.resources}, room))
        return found

    def pod(self, pod: PodInfo, context: StrategyContext) -> Mapping[str, int] | None:
        """The measured usage of a pod; None if a resource is measured on nodes only."""
        measured = context.measurements.queried_pods
        if measured is None or not set(self.resources) <= {"cpu", "memory"}:
            return None
        sample = measured.get(pod.key, {})
        if not sample.keys() >= set(self.resources):
            raise UsageError(f"the Prometheus queries returned no sound value for pod {pod.key}")
        return sample
