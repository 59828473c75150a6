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
    """Counts placed pods in scope; the first call counts all levels in one pass over the cluster.

    The tally calls it before the first move of a cycle is booked, so the counts are from the start of the
    cycle. Pods of one template and namespace have the same scope, which is evaluated once for each.

    Args:
        cluster: The placed pods.
        evictors: The policy's evictors, its scope among them. Without a scope all pods count.
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
        """The number of pods overall, on a node, in a namespace or of an owner (``namespace/uid``)."""
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
                for owner in pod.pod.metadata.owners:
                    by_owner[f"{pod.namespace}/{owner.uid}"] += 1
        return {LimitLevel.NODE: by_node, LimitLevel.NAMESPACE: by_namespace, LimitLevel.WORKLOAD: by_owner}
