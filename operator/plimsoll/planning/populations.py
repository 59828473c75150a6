"""Counts the pods in a policy's scope at each level of the limits, for ceilings that are shares."""

from collections import Counter
from collections.abc import Iterable

from plimsoll.framework import PodTemplate
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.scope import PolicyScope


class Populations:
    """The placed pods in scope; one pass over the cluster counts all levels, on the first call.

    The tally calls it before the first move of a cycle is booked, so the counts are those of the cycle's
    beginning. Pods of one template and namespace are in scope together: the scope is evaluated once for each.

    Args:
        cluster: The placed pods.
        evictors: Of the policy; its scope is among them. Without a scope all pods count.
        nodes: Pods on other nodes are out of scope.
    """

    def __init__(
        self, cluster: Cluster, evictors: Iterable[Evictor] = (), nodes: Selector = EVERYTHING
    ) -> None:
        self._cluster = cluster
        # Strategies with evictors of their own share one scope.
        self._scopes = list({id(each): each for each in evictors if isinstance(each, PolicyScope)}.values())
        self._nodes = nodes
        self._counts: dict[LimitLevel, Counter[str]] | None = None

    def __call__(self, level: LimitLevel, key: str) -> int:
        """Returns the pods of all, a node, a namespace or an owner, whose key is ``namespace/uid``."""
        if self._counts is None:
            self._counts = self._counted()
        if level.ends_cycle:
            return self._counts[LimitLevel.NODE].total()
        return self._counts[level][key]

    def _counted(self) -> dict[LimitLevel, Counter[str]]:
        by_node: Counter[str] = Counter()
        by_namespace: Counter[str] = Counter()
        by_owner: Counter[str] = Counter()
        known: dict[PodTemplate, bool] = {}
        for row, node in enumerate(self._cluster.nodes):
            if not self._nodes.matches(node.labels):
                continue
            for pod in self._cluster.pods_on(row):
                inside = known.get(pod.template)
                if inside is None:
                    inside = known[pod.template] = not any(
                        scope.excludes(pod, self._cluster.objects) for scope in self._scopes
                    )
                if not inside or pod.stands_in_for is not None:
                    continue
                by_node[node.name] += 1
                by_namespace[pod.namespace] += 1
                for owner in pod.pod.metadata.owner_references:
                    by_owner[f"{pod.namespace}/{owner.uid}"] += 1
        return {LimitLevel.NODE: by_node, LimitLevel.NAMESPACE: by_namespace, LimitLevel.WORKLOAD: by_owner}
