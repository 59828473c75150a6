"""Measures a rebalancing cycle on a cluster out of balance: strategies, plan and re-validation.

    python benchmarks/rebalancing.py --nodes 1000,5000

Nodes of 16 cores in three zones; pods of twenty replicas an application, thrown on the nodes unevenly; a
tenth of the applications spreads over zones, a tenth forbids two on a node, a tenth wants ssd. The cluster
is primed as a running operator's is: its scheduler has placed pods of some applications before. CPU
seconds, medians of several plans, with the limits and the evictor that a policy has by default; the peak
memory is that of a process with everything built. Each size runs in a process of its own; the last lines
say how seconds and memory grow with it.
"""

import argparse
import random
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
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
            term: dict[str, Any] = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
        case 2:
            term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}
        case _:
            return {}


def a_cluster(nodes: int, pods: int, seed: int) -> Cluster:
    """The cluster of the benchmark."""
    rng = random.Random(seed)
    cluster = Cluster()
    for number in range(nodes):
        labels = {ZONE: "abc"[number % 3], "disk": "ssd" if number % 4 else "hdd"}
        taints = ["maintenance:NoSchedule"] if number % 500 == 7 else ()
        cluster.set_node(a_node(f"n{number:05}", cpu="16", memory="64Gi", labels=labels, taints=taints))
    applications = max(1, pods // REPLICAS)
    for number in range(pods):
        app = number % applications
        node = f"n{int(nodes * rng.random() ** 1.5):05}"
        pod = a_pod(
            f"p{number}",
            namespace=f"ns{app % 50}",
            labels={"app": f"a{app}"},
            owner=f"ReplicaSet/a{app}",
            cpu=f"{rng.choice([100, 250, 500, 1000])}m",
            memory="1Gi",
            node=node,
            **wishes(app),
        )
        cluster.place(cluster.templates.info(pod), node)
    return cluster


def a_policy(names: list[str], profile: Profile) -> RebalancingConfig:
    """Those of the strategies, with the evictor and limits that a policy has by default."""
    registry = StrategyRegistry(IN_TREE)
    evictor = EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 2}, "evictor")
    return RebalancingConfig(
        strategies=[registry.build(name, args, name) for name, args in STRATEGIES if name in names],
        evictors=(evictor,),
        profiles={SCHEDULER: profile},
        limits=LIMITS,
    )


def timed(work: Callable[[], EvictionPlan], repeats: int) -> tuple[EvictionPlan, float]:
    """The result, and the median of the CPU seconds."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        made = work()
        seconds.append(time.process_time() - start)
    return made, statistics.median(seconds)


def measure(nodes: int, pods: int, repeats: int, seed: int) -> tuple[float, float]:
    """Print one line a strategy, one for all of them, one for re-validation.

    Returns:
        CPU seconds of a cycle with all strategies, and peak MiB.
    """
    cluster = a_cluster(nodes, pods, seed)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig(SCHEDULER), Registry(PLUGINS), defaults)
    scheduler = ProfileScheduler(profile, cluster)
    for pod in list(cluster.pods.values())[: 10 * REPLICAS]:
        scheduler.rank(pod)
    around = PlanningContext(now=NOW)
    print(f"{nodes} nodes, {pods} pods, median of {repeats}")
    names = [name for name, _ in STRATEGIES]
    for chosen in [[name] for name in names] + [names]:
        policy = a_policy(chosen, profile)
        made, seconds = timed(partial(plan, policy, cluster, around), repeats)
        label = chosen[0] if len(chosen) == 1 else "all six"
        print(f"{label:45} {seconds:7.3f} s  {len(made.moves):3} moves  {made.refused_by_reason()}")
    start = time.process_time()
    for move in made.moves:
        revalidate(move, policy, cluster, around)
    each = (time.process_time() - start) / max(1, len(made.moves))
    print(f"{'re-validating one move':45} {each:7.3f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'memory':45} {peak:7.0f} MiB", flush=True)
    return seconds, peak


def main() -> None:
    """Measure each size, then say how it grows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="1000", help="how many, or several sizes: 1000,5000")
    parser.add_argument("--pods", type=int, help="of each size; left out, 20 a node")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    found = []
    for nodes in map(int, given.nodes.split(",")):
        pods = given.pods if given.pods is not None else REPLICAS * nodes
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            found.append(
                (nodes, pods, *process.submit(measure, nodes, pods, given.repeats, given.seed).result())
            )
    for (few, fewer, before, small), (many, more, after, large) in pairwise(found):
        print(
            f"{few} to {many} nodes, {fewer} to {more} pods:"
            f" a cycle takes {after / before:.1f} times as long, and {large / small:.1f} times the memory"
        )


if __name__ == "__main__":
    main()
