"""What a rebalancing cycle costs: strategies, plan and re-validation, on a cluster out of balance.

    python benchmarks/rebalancing.py --nodes 5000 --pods 100000

Nodes of 16 cores in three zones; pods of twenty replicas an application, thrown on the nodes unevenly; a
tenth of the applications spreads over zones, a tenth forbids two on a node, a tenth wants ssd. The cluster
is primed as a running operator's is: its scheduler has placed pods of some applications before. Medians
of several plans; the last line is the resident memory with everything built.
"""

import argparse
import random
import resource
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from plimsoll.engine.cycle import Scheduler
from plimsoll.engine.limits import Ceiling, Limits
from plimsoll.engine.moves import Circumstances, EvictionPlan, Rebalancing
from plimsoll.engine.plan import plan, revalidate
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import Cluster, Registry
from plimsoll.framework.strategy_registry import EvictorRegistry, StrategyRegistry
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod

ZONE = "topology.kubernetes.io/zone"
SCHEDULER = "default-scheduler"
REPLICAS = 20
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LIMITS = Limits(
    total=Ceiling(count=10),
    per_node=Ceiling(count=2),
    per_namespace=Ceiling(count=5),
    per_workload=Ceiling(count=1),
)
STRATEGIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("RemovePodsViolatingNodeTaints", {}),
    ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [REQUIRED]}),
    ("RemovePodsViolatingInterPodAntiAffinity", {}),
    ("RemoveDuplicates", {}),
    ("RemovePodsViolatingTopologySpreadConstraint", {}),
    (
        "LowNodeUtilization",
        {
            "thresholds": {"cpu": 20, "memory": 20, "pods": 20},
            "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
        },
    ),
)


def wishes(app: int) -> dict[str, Any]:
    """What makes pods of an application hard to place."""
    selector = {"matchLabels": {"app": f"a{app}"}}
    match app % 10:
        case 0:
            spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            return {"topologySpreadConstraints": [{**spread, "labelSelector": selector}]}
        case 1:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
        case 2:
            term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}
        case _:
            return {}


def a_cluster(nodes: int, pods: int, seed: int) -> Cluster:
    """The cluster of the benchmark."""
    dice = random.Random(seed)
    cluster = Cluster()
    for number in range(nodes):
        labels = {ZONE: "abc"[number % 3], "disk": "ssd" if number % 4 else "hdd"}
        taints = ["maintenance:NoSchedule"] if number % 500 == 7 else ()
        cluster.set_node(a_node(f"n{number:05}", cpu="16", memory="64Gi", labels=labels, taints=taints))
    applications = max(1, pods // REPLICAS)
    for number in range(pods):
        app = number % applications
        node = f"n{int(nodes * dice.random() ** 1.5):05}"
        pod = a_pod(
            f"p{number}",
            namespace=f"ns{app % 50}",
            labels={"app": f"a{app}"},
            owner=f"ReplicaSet/a{app}",
            cpu=f"{dice.choice([100, 250, 500, 1000])}m",
            memory="1Gi",
            node=node,
            **wishes(app),
        )
        cluster.place(cluster.templates.info(pod), node)
    return cluster


def a_policy(names: list[str], profile: Profile) -> Rebalancing:
    """Those of the strategies, with the evictor and limits that a policy has by default."""
    registry = StrategyRegistry(IN_TREE)
    evictor = EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 2}, "evictor")
    return Rebalancing(
        strategies=[registry.build(name, args, name) for name, args in STRATEGIES if name in names],
        evictors=(evictor,),
        profiles={SCHEDULER: profile},
        limits=LIMITS,
    )


def timed(work: Callable[[], EvictionPlan], repeats: int) -> tuple[EvictionPlan, float]:
    """The result, and the median of the seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        made = work()
        seconds.append(time.perf_counter() - start)
    return made, statistics.median(seconds)


def main() -> None:
    """Print one line a strategy, one for all of them, one for re-validation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    cluster = a_cluster(given.nodes, given.pods, given.seed)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig(SCHEDULER), Registry(PLUGINS), defaults)
    scheduler = Scheduler(profile, cluster)
    for pod in list(cluster.pods.values())[: 10 * REPLICAS]:
        scheduler.rank(pod)
    around = Circumstances(now=NOW)
    print(f"{given.nodes} nodes, {given.pods} pods, median of {given.repeats}")
    names = [name for name, _ in STRATEGIES]
    for chosen in [[name] for name in names] + [names]:
        policy = a_policy(chosen, profile)
        made, seconds = timed(lambda policy=policy: plan(policy, cluster, around), given.repeats)
        label = chosen[0] if len(chosen) == 1 else "all six"
        print(f"{label:45} {seconds:7.3f} s  {len(made.moves):3} moves  {made.refused_by_reason()}")
    start = time.perf_counter()
    for move in made.moves:
        revalidate(move, policy, cluster, around)
    each = (time.perf_counter() - start) / max(1, len(made.moves))
    print(f"{'re-validating one move':45} {each:7.3f} s")
    print(f"{'memory':45} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:7.0f} MB")


if __name__ == "__main__":
    main()
