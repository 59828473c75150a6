"""Clusters whose load book is fed by hand, and policies that place and move by it as users write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from planning.rounds import NOW, PLACE
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Enabled, PluginSet, Profile, ProfileConfig, build_profile
from plimsoll.framework import PodInfo, Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.planning.moves import EvictionPlan, PlanningContext, RebalancingConfig
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.policies.rebalancing import Registries, rebalancing_of
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.usage.load_keeper import LoadKeeper

MILLI, GIB = 10**6, 2**30
AROUND = PlanningContext(now=NOW)

#: By the metrics API.
MEASURED = {"metricsUtilization": {"source": "KubernetesMetrics"}}

#: Any number of moves in a run.
ALL = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%", "perMinute": "100%"}


def scored_by_load(*, by_requests: bool = True) -> Profile:
    """kube-scheduler's default plugins with NodeLoad, weight 3."""
    off = frozenset() if by_requests else frozenset({"NodeResourcesFit", "NodeResourcesBalancedAllocation"})
    plugins = {
        "multiPoint": PluginSet(enabled=(Enabled("NodeLoad", 3),)),
        "score": PluginSet(disabled=off),
    }
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return build_profile(ProfileConfig(PLACE, plugins=plugins), Registry(PLUGINS), defaults)


def a_policy(
    *strategies: tuple[str, Mapping[str, Any]], profile: Profile | None = None, **spec: Any
) -> RebalancingConfig:
    """As a SchedulingPolicy says, with a metrics API."""
    usual = {"mode": "Enforce", "limits": ALL, "metricsProviders": [{"source": "KubernetesMetrics"}]}
    spec = usual | {"evictor": {"minReplicas": 0}} | spec
    spec["strategies"] = [{"name": name, "args": dict(args)} for name, args in strategies]
    policy = SchedulingPolicy.model_validate({"metadata": {"name": "p"}, "spec": {"rebalancing": spec}})
    return rebalancing_of(
        policy,
        Registries(StrategyRegistry(IN_TREE), EvictorRegistry(EVICTORS)),
        profiles={PLACE: profile or scored_by_load()},
        objects=ClusterObjects(),
        now=NOW,
    )


class LoadWorld:
    """Nodes of ten cores and 64 GiB with pods that use so many thousandths of a core each.

    Args:
        nodes: What the pods of each node use; ``p1-0`` is the first one of node ``n1``.
        request: What each pod requests, in thousandths of a core, or by its name.
    """

    def __init__(self, nodes: Sequence[Sequence[int]], request: int | Mapping[str, int] = 10) -> None:
        self.cluster = Cluster()
        self.uses: dict[str, int] = {}
        for number, pods in enumerate(nodes):
            name = f"n{number}"
            self.cluster.set_node(a_node(name, cpu="10", memory="64Gi", pods=110))
            for each, use in enumerate(pods):
                asked = request if isinstance(request, int) else request[f"p{number}-{each}"]
                pod = a_pod(
                    f"p{number}-{each}",
                    node=name,
                    owner=f"StatefulSet/w{number}-{each}",
                    cpu=f"{asked}m",
                    memory="1Mi",
                )
                self.uses[pod.metadata.name] = use
                self.cluster.place(self.cluster.templates.info(pod), name)
        self.keeper = LoadKeeper(self.cluster)
        self.now = 1_000.0
        self.settle()

    def read(self, seconds: float = 15.0, without: frozenset[str] = frozenset()) -> None:
        """All pods and nodes are read, but those of these names."""
        self.now += seconds
        nodes = {node.name: (0, GIB) for node in self.cluster.nodes}
        pods = []
        for pod, row in self.cluster.placed():
            cpu, memory = nodes[self.cluster.nodes[row].name]
            nodes[self.cluster.nodes[row].name] = cpu + self.uses[pod.name], memory + GIB
            if pod.name not in without:
                pods.append(LoadReading(pod.key, self.uses[pod.name] * MILLI, GIB, self.now))
        known = [
            LoadReading(name, cpu * MILLI, memory, self.now)
            for name, (cpu, memory) in nodes.items()
            if name not in without
        ]
        self.keeper.observe(self.now, nodes=LoadReadings.of(known), pods=LoadReadings.of(pods))

    def settle(self, without: frozenset[str] = frozenset()) -> None:
        """So many readings that all levels are what pods use now, whatever they used before."""
        for seconds in (6_000.0, 6_000.0, 150.0, 150.0):
            self.read(seconds, without)

    def share(self, node: str) -> float:
        """Percent of its cpu that a node uses."""
        pods = self.cluster.pods_on(self.cluster.rows[node])
        return sum(self.uses[pod.name] for pod in pods) / 100

    def carry_out(self, made: EvictionPlan) -> None:
        """Each pod leaves; its owner's next one, of the same name, is on the target and uses the same."""
        for move in made.moves:
            self.cluster.displace(move.pod.uid)
        for move in made.moves:
            self.cluster.place(self._heir(move.pod, move.target), move.target)

    def _heir(self, pod: PodInfo, node: str) -> PodInfo:
        named = msgspec.structs.replace(pod.pod.metadata, uid=f"{pod.uid}'")
        spec = msgspec.structs.replace(pod.pod.spec, node_name=node)
        return self.cluster.templates.info(msgspec.structs.replace(pod.pod, metadata=named, spec=spec))
