"""Measures a rebalancing cycle on a cluster out of balance: strategies, plan and re-validation.

    python benchmarks/rebalancing.py --nodes 1000,5000 [--changed 1%] [--case duplicates|refused]

Nodes of 16 cores in three zones; pods of twenty replicas an application, thrown on the nodes unevenly; a
tenth of the applications spreads over zones, a tenth forbids two on a node, a tenth wants ssd. The cluster
is primed as a running operator's is: its scheduler has placed pods of some applications before, and
garbage is collected as the operator has it. CPU
seconds, medians of several plans, with the limits and the evictor that a policy has by default; the peak
memory is that of a process with everything built. The case *duplicates* has 200 owners with many pods on few
nodes, *refused* a cluster in which almost every pod is proposed and none finds a better place; both without
limits but one move of an owner. Each size runs in a process of its own; the last lines
say how seconds and memory grow with it.
"""

import argparse
import gc
import random
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
from output import append, calibration_s

from plimsoll.app.process import THRESHOLDS
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.rebalancing.runs.kept_findings import KeptFindings
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


def a_policy(names: list[str], profile: Profile, case: str = "usual") -> RebalancingConfig:
    """Those of the strategies, with the evictor of a policy by default, and in the usual case its limits."""
    registry = StrategyRegistry(IN_TREE)
    evictor = EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 2}, "evictor")
    return RebalancingConfig(
        strategies=[registry.build(name, args, name) for name, args in CASES[case][1] if name in names],
        evictors=(evictor,),
        profiles={SCHEDULER: profile},
        limits=LIMITS if case == "usual" else Limits(),
    )


def crowded(nodes: int, pods: int, seed: int) -> Cluster:
    """Two hundred owners, so that each has many pods on few nodes."""
    return _spread(nodes, pods, seed, owners=200)


def full(nodes: int, pods: int, seed: int) -> Cluster:
    """Nodes above the target everywhere but for one in twenty, whose taint no pod tolerates."""
    return _spread(nodes, pods, seed, owners=max(1, pods // REPLICAS), reserved=20)


def _spread(nodes: int, pods: int, seed: int, owners: int, reserved: int = 0) -> Cluster:
    rng, cluster, open_to_all = random.Random(seed), Cluster(), []
    for number in range(nodes):
        name = f"n{number:05}"
        closed = bool(reserved) and number % reserved == 0
        taints = ["reserved:NoSchedule"] if closed else ()
        cluster.set_node(
            a_node(name, cpu="16", memory="64Gi", labels={ZONE: "abc"[number % 3]}, taints=taints)
        )
        open_to_all += [] if closed else [name]
    for number in range(pods):
        app = number % owners
        share = rng.random() if reserved else rng.random() ** 1.5
        pod = a_pod(
            f"p{number}",
            namespace=f"ns{app % 50}",
            labels={"app": f"a{app}"},
            owner=f"ReplicaSet/a{app}",
            cpu=f"{(100, 250, 500, 1000)[app % 4]}m",
            memory="1Gi",
            node=open_to_all[int(len(open_to_all) * share)],
        )
        cluster.place(cluster.templates.info(pod), pod.node_name)
    return cluster


#: Clusters and strategies by the name of the case; without limits but for the usual one.
CASES: dict[str, tuple[Callable[[int, int, int], Cluster], tuple[tuple[str, dict[str, Any]], ...]]] = {
    "usual": (a_cluster, STRATEGIES),
    "duplicates": (crowded, (("RemoveDuplicates", {}),)),
    "refused": (
        full,
        (
            (
                "LowNodeUtilization",
                {"thresholds": {"cpu": 10, "memory": 10}, "targetThresholds": {"cpu": 20, "memory": 20}},
            ),
        ),
    ),
}


def change(cluster: Cluster, share: float, chance: random.Random) -> None:
    """A share of the pods: half of them restart in their place, half are replaced on another node."""
    nodes, pods = cluster.nodes, list(cluster.pods.values())
    for number, info in enumerate(chance.sample(pods, int(len(pods) * share))):
        status = msgspec.structs.replace(info.pod.status, reason=f"{chance.random()}")
        changed = msgspec.structs.replace(info.pod, status=status)
        node = info.pod.node_name
        if number % 2:
            cluster.displace(info.uid)
            node = chance.choice(nodes).name
            name = f"{info.name}-{chance.randrange(10**9)}"
            metadata = msgspec.structs.replace(info.pod.metadata, name=name, uid=name)
            spec = msgspec.structs.replace(info.pod.spec, node_name=node)
            changed = msgspec.structs.replace(changed, metadata=metadata, spec=spec)
        cluster.place(cluster.templates.info(changed), node)


def timed(work: Callable[[], EvictionPlan]) -> tuple[EvictionPlan, float]:
    """The result, and the CPU seconds."""
    start = time.process_time()
    made = work()
    return made, time.process_time() - start


def planned(
    policy: RebalancingConfig, cluster: Cluster, around: PlanningContext, kept: KeptFindings
) -> EvictionPlan:
    """What a run computes."""
    fork = cluster.fork()
    kept.bring_up(fork)
    return make_plan(policy, fork, around)


def measure(
    case: str, nodes: int, pods: int, repeats: int, seed: int, changed: float, output: Path | None
) -> tuple[float, float]:
    """Print one line a strategy, one for all of them, one for re-validation.

    A cold plan counts everything, as the first run of a process; a warm one follows a run before it, after
    which pods have changed. Both are made on a fork, which is part of them.

    Returns:
        CPU seconds of a warm cycle with all strategies, and peak MiB.
    """
    make, strategies = CASES[case]
    cluster, chance = make(nodes, pods, seed), random.Random(seed)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig(SCHEDULER), Registry(PLUGINS), defaults)
    scheduler = ProfileScheduler(profile, cluster)
    for pod in list(cluster.pods.values())[: 10 * REPLICAS]:
        scheduler.rank(pod)
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()  # as when the operator has listed everything
    around, kept = PlanningContext(now=NOW), KeptFindings()
    print(f"{case}: {nodes} nodes, {pods} pods, median of {repeats}, {changed:.1%} changed before warm plans")
    print(f"{'':45} {'cold':>7} {'warm':>9}")
    names = [name for name, _ in strategies]
    for chosen in [[name] for name in names] + ([names] if len(names) > 1 else []):
        policy = a_policy(chosen, profile, case)
        cold, warm = [], []
        for _ in range(repeats):
            made, seconds = timed(lambda: planned(policy, cluster, around, KeptFindings()))  # noqa: B023 - called here
            cold.append(seconds)
        planned(policy, cluster, around, kept)
        for _ in range(repeats):
            change(cluster, changed, chance)
            made, seconds = timed(lambda: planned(policy, cluster, around, kept))  # noqa: B023 - likewise
            warm.append(seconds)
        label = chosen[0] if len(chosen) == 1 else "all of them"
        append(
            output,
            nodes=nodes,
            pods=pods,
            case=case,
            strategy=label,
            cold_s=statistics.median(cold),
            warm_s=statistics.median(warm),
            unit_s=calibration_s() if output else 0.0,
        )
        print(
            f"{label:45} {statistics.median(cold):7.3f} {statistics.median(warm):7.3f} s"
            f"  {len(made.moves):3} moves  {made.refused_by_reason()}"
        )
    start = time.process_time()
    for move in made.moves[:10]:
        revalidate(move, policy, cluster, around)
    each = (time.process_time() - start) / max(1, len(made.moves[:10]))
    print(f"{'re-validating one move':45} {each:7.3f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'memory':45} {peak:7.0f} MiB", flush=True)
    return statistics.median(warm), peak


def main() -> None:
    """Measure each size, then say how it grows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="1000", help="how many, or several sizes: 1000,5000")
    parser.add_argument("--pods", type=int, help="of each size; left out, 20 a node")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", choices=sorted(CASES), default="usual")
    parser.add_argument(
        "--changed", default="1%", help="share of the pods that change before each warm plan, such as 1%%"
    )
    parser.add_argument("--output", type=Path, help="append each line as JSON")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    found = []
    for nodes in map(int, given.nodes.split(",")):
        pods = given.pods if given.pods is not None else REPLICAS * nodes
        changed = float(given.changed.rstrip("%")) / 100
        asked = (given.case, nodes, pods, given.repeats, given.seed, changed, given.output)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            found.append((nodes, pods, *process.submit(measure, *asked).result()))
    for (few, fewer, before, small), (many, more, after, large) in pairwise(found):
        print(
            f"{few} to {many} nodes, {fewer} to {more} pods:"
            f" a cycle takes {after / before:.1f} times as long, and {large / small:.1f} times the memory"
        )


if __name__ == "__main__":
    main()
