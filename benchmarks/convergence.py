"""Compares planners from the same starts until they converge: evictions, remaining violations, loops.

    PYTHONPATH=tools python benchmarks/convergence.py --starts 30 [--trace FOLDER]

Random clusters whose pods were placed carelessly (``--nodes-between``), four of seven applications with a
PodDisruptionBudget: of none for one of them, of one for the others; with ``--trace`` a part of the OpenB
cluster, too. The strategies, limits and evictor are those of a policy by default, for every planner; a
scheduler with kube-scheduler's default plugins places the replacements and breaks ties randomly. A budget is
a wall: evictions against it are refused, as by the API server, and counted. *Missed* counts the pods that
could still be moved to a node that the scheduler would choose, so that fewer of its rules are violated,
though nothing protects them (``trials.missed_moves``). *For a nodeSelector* counts the evictions of pods
from nodes that their ``nodeSelector`` does not match, by the strategy for node affinity: descheduler makes
none of them, and *violations left*, which takes its view, does not fall by them. The last row of each table
is the start, untouched.
"""

import argparse
import csv
import gzip
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import ContainerStatus
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import Goal, PlanningContext, RebalancingConfig
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from trials.missed_moves import missed
from trials.rounds import USUAL, Story, measured, rounds
from trials.starts import READY, some_start

SCHEDULER = "default-scheduler"
AROUND = PlanningContext(now=datetime(2026, 1, 1, 12, tzinfo=UTC))
LIMITS = Limits(
    total=Ceiling(count=10),
    per_node=Ceiling(count=2),
    per_namespace=Ceiling(count=5),
    per_workload=Ceiling(count=1),
)


def a_policy(planner: Planner, seconds: float) -> RebalancingConfig:
    """The same for every planner."""
    registry = StrategyRegistry(IN_TREE)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return RebalancingConfig(
        strategies=[registry.build(name, args, name) for name, args in USUAL],
        evictors=(EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 2}, "evictor"),),
        profiles={SCHEDULER: build_profile(ProfileConfig(SCHEDULER), Registry(PLUGINS), defaults)},
        limits=LIMITS,
        planner=planner,
        goal=Goal(seconds=seconds),
    )


def budgeted(seed: int, fewest: int = 2, most: int = 9) -> Cluster:
    """A random start in which every second application has a budget."""
    cluster = some_start(seed, fewest, most)
    for app in "aceg":
        budget = convert(
            PodDisruptionBudget,
            {
                "metadata": {"name": app, "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": int(app != "a")},
            },
        )
        cluster.objects.budgets[budget.key] = budget
    return cluster


def openb(folder: Path, nodes: int, pods: int, seed: int) -> Cluster:
    """A part of the trace, by random choice, most pods on the first nodes; equal shapes share an owner."""
    rng = random.Random(seed)
    machines = rng.sample(_rows(folder / "openb_node_list_all_node.csv.gz"), nodes)
    free = [[int(each["cpu_milli"]), int(each["memory_mib"]), int(each["gpu"]), 110] for each in machines]
    built, shapes = [], dict[tuple[str, ...], str]()
    for number, each in enumerate(rng.sample(_rows(folder / "openb_pod_list_default.csv.gz"), pods)):
        shape = (each["cpu_milli"], each["memory_mib"], each["num_gpu"])
        wanted = [int(each["cpu_milli"]), int(each["memory_mib"]), int(each["num_gpu"]), 1]
        for _ in range(100):
            at = int(nodes * rng.random() ** 2)
            if all(need <= have for need, have in zip(wanted, free[at], strict=True)):
                break
        else:
            continue
        free[at] = [have - need for need, have in zip(wanted, free[at], strict=True)]
        app = shapes.setdefault(shape, f"a{len(shapes)}")
        built.append(
            a_pod(
                f"p{number}",
                node=machines[at]["sn"],
                namespace=f"ns{int(app[1:]) % 5}",
                owner=f"ReplicaSet/{app}",
                labels={"app": app},
                cpu=f"{wanted[0]}m",
                memory=f"{wanted[1]}Mi",
                status=READY,
                requests={"nvidia.com/gpu": wanted[2]} if wanted[2] else None,
            )
        )
    return a_cluster(
        [
            a_node(
                each["sn"],
                cpu=f"{each['cpu_milli']}m",
                memory=f"{each['memory_mib']}Mi",
                allocatable={"nvidia.com/gpu": each["gpu"]} if each["gpu"] != "0" else {},
            )
            for each in machines
        ],
        built,
    )


#: Strategies that the usual policy leaves out, with the arguments of each.
FURTHER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("HighNodeUtilization", {"thresholds": {"cpu": 20}}),
    ("PodLifeTime", {"maxPodLifeTimeSeconds": 86_400}),
    ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 10}),
)


def drifted(seed: int) -> Cluster:
    """The same, and some of the pods are old or have been restarted often."""
    cluster, rng = budgeted(seed), random.Random(-seed - 1)
    for pod, row in sorted(cluster.placed(), key=lambda each: each[0].key):
        metadata, status = pod.pod.metadata, pod.pod.status
        age = timedelta(hours=rng.choice([1, 12, 48]))
        restarts = rng.choice([0, 0, 0, 20])
        counted = (ContainerStatus(name="c", restart_count=restarts),)
        cluster.displace(pod.uid)
        cluster.place(
            cluster.templates.info(
                msgspec.structs.replace(
                    pod.pod,
                    metadata=msgspec.structs.replace(metadata, creation_timestamp=AROUND.now - age),
                    status=msgspec.structs.replace(status, container_statuses=counted),
                )
            ),
            cluster.nodes[row].name,
        )
    return cluster


def by_strategy(given: argparse.Namespace) -> None:
    """Print Proven next to Upstream for each strategy alone and for the usual ones together."""
    print(f"\n{given.starts} drifted clusters, at most {given.cycles} cycles each\n")
    print(
        "| Strategy | Planner | evictions | violations left | pods left without a node | returned"
        " | moved again | at rest |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    cases = [(name, [(name, args)]) for name, args in (*USUAL, *FURTHER)]
    for title, strategies in [*cases, ("the usual six together", list(USUAL))]:
        for planner in (Planner.UPSTREAM, Planner.PROVEN):
            registry = StrategyRegistry(IN_TREE)
            built = [registry.build(name, args, name) for name, args in strategies]
            policy = replace(a_policy(planner, given.seconds), strategies=built)
            stories, left = [], 0
            for seed in range(given.starts):
                cluster = drifted(seed)
                stories.append(rounds(cluster, policy, SCHEDULER, AROUND, cycles=given.cycles, seed=seed))
                left += measured(cluster, replace(policy, planner=Planner.UPSTREAM), AROUND).violations
            print(
                f"| {title} | {planner} | {sum(each.evicted for each in stories)} | {left}"
                f" | {sum(len(each.homeless) for each in stories)}"
                f" | {sum(len(each.returned) for each in stories)}"
                f" | {sum(len(each.again) for each in stories)}"
                f" | {sum(each.rested for each in stories)} of {given.starts} |",
                flush=True,
            )


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _for_a_selector(story: Story, cluster: Cluster) -> int:
    """Moves of the strategy for node affinity from nodes that a ``nodeSelector`` does not match."""
    return sum(
        move.strategy == "RemovePodsViolatingNodeAffinity"
        and not move.pod.pod.spec.node_selector.items()
        <= cluster.nodes[cluster.rows[move.source]].metadata.labels.items()
        for moves in story.moves
        for move in moves
    )


def compare(
    title: str,
    starts: Iterable[Callable[[], Cluster]],
    planners: Iterable[Planner],
    given: argparse.Namespace,
) -> None:
    """Print one row a planner: sums over the starts, the spread as their mean."""
    starts = list(starts)
    print(f"\n{title}\n")
    print(
        "| Planner | evictions | for a nodeSelector | violations left | missed | cpu spread | returned"
        " | homeless | cycles | at rest | refused by a budget | over a limit |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for planner in planners:
        policy = a_policy(planner, given.seconds)
        stories, ends, left, selected = [], [], 0, 0
        for seed, start in enumerate(starts):
            cluster = start()
            stories.append(rounds(cluster, policy, SCHEDULER, AROUND, cycles=given.cycles, seed=seed))
            selected += _for_a_selector(stories[-1], cluster)
            left += 0 if planner is Planner.UPSTREAM else len(missed(cluster, policy, AROUND))
            ends.append(measured(cluster, replace(policy, planner=Planner.UPSTREAM), AROUND))
        print(
            f"| {planner} | {sum(each.evicted for each in stories)} | {selected}"
            f" | {sum(each.violations for each in ends)}"
            f" | {'' if planner is Planner.UPSTREAM else left}"
            f" | {sum(each.spread for each in ends) / len(ends):.1f}"
            f" | {sum(len(each.returned) for each in stories)}"
            f" | {sum(len(each.homeless) for each in stories)}"
            f" | {sum(len(each.moves) for each in stories)}"
            f" | {sum(each.rested for each in stories)} of {len(starts)}"
            f" | {sum(len(each.blocked) for each in stories)} | {sum(each.over_limit for each in stories)} |",
            flush=True,
        )
    before = [measured(start(), a_policy(Planner.UPSTREAM, 0), AROUND) for start in starts]
    print(
        f"| the start | 0 | | {sum(each.violations for each in before)}"
        f" | | {sum(each.spread for each in before) / len(before):.1f} | | | | | | |"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starts", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0, help="of the random clusters")
    parser.add_argument("--nodes-between", default="2,9", help="of the random clusters, such as 12,30")
    parser.add_argument("--cycles", type=int, default=40, help="after which a planner is taken to loop")
    parser.add_argument("--seconds", type=float, default=2.0, help="of the search of Optimal, each cycle")
    parser.add_argument("--trace", type=Path, help="folder with the OpenB trace")
    parser.add_argument("--nodes", type=int, default=60, help="of the trace cluster")
    parser.add_argument("--pods", type=int, default=400, help="of the trace cluster")
    parser.add_argument("--by-strategy", action="store_true", help="each strategy alone, Proven and Upstream")
    given = parser.parse_args()
    if given.by_strategy:
        by_strategy(given)
        return
    fewest, most = map(int, given.nodes_between.split(","))
    compare(
        f"{given.starts} random clusters of {fewest} to {most} nodes, at most {given.cycles} cycles each",
        [
            partial(budgeted, seed, fewest, most)
            for seed in range(given.first_seed, given.first_seed + given.starts)
        ],
        Planner,
        given,
    )
    if given.trace:
        compare(
            f"OpenB, {given.nodes} nodes and {given.pods} pods",
            [lambda: openb(given.trace, given.nodes, given.pods, 1)],
            (Planner.UPSTREAM, Planner.PROVEN),
            given,
        )


if __name__ == "__main__":
    main()
