"""Pods per second of the engine alone: no API server, one process, one core.

The workloads are those of kube-scheduler's scheduler_perf, in ``workloads.yaml`` next to this file. Each
cell of the table runs in a process of its own, so that its peak memory is its own::

    python benchmarks/engine.py --nodes 100,1000,5000 --families basic,spreading

A pod costs what it costs a scheduler that has the decoded object: compiling its template (or finding it),
deciding, and placing it. Pods a second are counted by the CPU time of one core, which says the same on a
machine that is busy with other things; the wall clock's stand next to them.
"""

import gc
import multiprocessing
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from output import append, calibration_s
from rich.console import Console
from rich.table import Table

from plimsoll.commands.parameters import Option, command_of
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Node, Pod, Registry
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.usage.load_keeper import LoadKeeper

T = TypeVar("T")

WORKLOADS = Path(__file__).with_name("workloads.yaml")
SEED = 7
SIZES = "100,1000,5000,50000"
MANY_NODES = 10_000
"""Beyond so many nodes a tenth of the attempts is measured: making the cluster takes the time."""
BY_LOAD = "+load"
"""Behind the name of a family: the same with the plugin NodeLoad (weight 3), and nodes that were measured."""
ALL = "all"
"""Instead of a number of templates: every pod has its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement.

    Attributes:
        attempts: Scheduling attempts that were timed.
        cpu_us: CPU time an attempt, microseconds.
        best_us: The same in the best tenth of the run: other load on the machine weighs least in it.
        per_wall_second: Attempts by wall clock.
        slowest_us: The 99th percentile of the CPU time of an attempt, microseconds.
        peak_mib: Peak resident memory of the whole process, MiB.
        outcomes: How many were scheduled, and how many not.
    """

    attempts: int
    cpu_us: float
    best_us: float
    per_wall_second: float
    slowest_us: float
    peak_mib: float
    outcomes: dict[str, int]

    @property
    def per_cpu_second(self) -> float:
        """Attempts in a second of one core."""
        return 1e6 / self.cpu_us


def read_nodes(cluster: Cluster) -> None:
    """Attach a load book, and measure every node."""
    rng = random.Random(SEED)
    used = (LoadReading(node.name, rng.random() * 2e9, rng.random() * 2**33, 1.0) for node in cluster.nodes)
    LoadKeeper(cluster).observe(1.0, nodes=LoadReadings.of(used))


def scheduler(cluster: Cluster, *, by_load: bool = False) -> ProfileScheduler:
    """The default profile, ties broken by a seeded die; maybe with NodeLoad."""
    rng = random.Random(SEED)
    profile = build_profile(
        ProfileConfig("default-scheduler"),
        Registry(IN_TREE),
        [
            Enabled(*each)
            for each in ({**DEFAULT_PLUGINS, "NodeLoad": 3} if by_load else DEFAULT_PLUGINS).items()
        ],
    )
    return ProfileScheduler(profile, cluster, choose=rng.randrange)


def nodes_of(workload: Mapping[str, Any], count: int) -> Iterator[Node]:
    """The nodes of a workload; zones go round."""
    zones = workload.get("zones", 3)
    for number in range(count):
        name = f"node-{number}"
        yield convert(
            Node,
            {
                "metadata": {
                    "name": name,
                    "labels": {
                        "kubernetes.io/hostname": name,
                        "topology.kubernetes.io/zone": f"zone{number % zones + 1}",
                    },
                },
                "status": {
                    "allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )


def pods_of(pattern: Mapping[str, Any], prefix: str, count: int, templates: int | None) -> Iterator[Pod]:
    """Pods of one pattern; siblings differ in a label and a few bytes of memory."""
    spec: dict[str, Any] = dict(pattern.get("spec", {}))
    requests = pattern.get("requests", {"cpu": "100m", "memory": 500 * 2**20})
    for number in range(count):
        variety = number if templates is None else number % templates
        name = f"{prefix}-{number}"
        yield convert(
            Pod,
            {
                "metadata": {
                    "name": name,
                    "namespace": pattern.get("namespace", "default"),
                    "uid": name,
                    "labels": {**pattern.get("labels", {}), "variety": f"v{variety}"},
                },
                "spec": {
                    **spec,
                    "containers": [
                        {
                            "name": "pause",
                            "image": "pause",
                            "resources": {"requests": {**requests, "memory": requests["memory"] + variety}},
                        }
                    ],
                },
            },
        )


def prepared(family: str, node_count: int) -> tuple[Cluster, Mapping[str, Any]]:
    """The cluster of a workload with its initial pods, spread evenly."""
    workload = yaml.safe_load(WORKLOADS.read_text(encoding="utf-8"))[family.removesuffix(BY_LOAD)]
    cluster = Cluster()
    for node in nodes_of(workload, node_count):
        cluster.set_node(node)
    for position, pattern in enumerate(workload.get("initial", ())):
        count = int(pattern["perNode"] * node_count)
        for number, pod in enumerate(pods_of(pattern, f"initial-{position}", count, 10)):
            cluster.place(cluster.templates.info(pod), f"node-{number % node_count}")
    return cluster, workload


def measure(family: str, node_count: int, templates: int | None, most: int) -> Cell:
    """Run one cell in this process."""
    cluster, workload = prepared(family, node_count)
    measured = workload["measured"]
    count = min(most, int(measured["perNode"] * node_count))
    pods = list(pods_of(measured, "measured", count, templates))
    by_load = family.endswith(BY_LOAD)
    if by_load:
        read_nodes(cluster)
    engine = scheduler(cluster, by_load=by_load)
    for pod in pods_of(measured, "warm-up", min(10, count), 10):
        apply(cluster, schedule(engine, cluster.templates.info(pod)), engine)
    outcomes: dict[str, int] = {}
    durations: list[float] = []
    # The way a long-running process runs: what exists already is not searched for garbage again.
    gc.collect()
    gc.freeze()
    cpu, start = time.process_time(), time.perf_counter()
    together = workload.get("together", 1)
    tenths = [(0, cpu)]
    for batch in batched(pods, together):
        begun = time.process_time()
        if len(durations) > tenths[-1][0] and len(durations) >= len(pods) * len(tenths) / 10:
            tenths.append((len(durations), time.process_time()))
        if together > 1:
            members = [(cluster.templates.info(pod), engine) for pod in batch]
            gang = place_together(members, cluster, len(members))
            for placement in gang.placements if gang.is_feasible else ():
                apply(cluster, placement.decision, engine)
            outcome = AttemptOutcome.SCHEDULED if gang.is_feasible else AttemptOutcome.UNSCHEDULABLE
            durations += [(time.process_time() - begun) / len(batch)] * len(batch)
            outcomes[str(outcome)] = outcomes.get(str(outcome), 0) + len(batch)
            continue
        decision = schedule(engine, cluster.templates.info(batch[0]))
        apply(cluster, decision, engine)
        durations.append(time.process_time() - begun)
        kind = "preempted" if decision.nomination and decision.nomination.victims else str(decision.outcome)
        outcomes[kind] = outcomes.get(kind, 0) + 1
    tenths.append((len(pods), time.process_time()))
    cpu, wall = tenths[-1][1] - cpu, time.perf_counter() - start
    return Cell(
        attempts=len(pods),
        cpu_us=cpu / len(pods) * 1e6,
        best_us=min((end - cpu) / (done - before) for (before, cpu), (done, end) in pairwise(tenths)) * 1e6,
        per_wall_second=len(pods) / wall,
        slowest_us=statistics.quantiles(durations, n=100)[-1] * 1e6,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        outcomes=outcomes,
    )


def batched(pods: Sequence[Pod], size: int) -> Iterator[Sequence[Pod]]:
    """So many at a time."""
    for start in range(0, len(pods), size):
        yield pods[start : start + size]


def apply(cluster: Cluster, decision: Decision, engine: ProfileScheduler) -> None:
    """Do what was decided: place the pod, after its victims have left if it needs any."""
    nomination = decision.nomination
    if decision.outcome is AttemptOutcome.SCHEDULED:
        cluster.place(decision.pod, decision.node)
    elif decision.outcome is AttemptOutcome.ERROR:
        raise RuntimeError(decision.message)
    elif nomination is not None and nomination.node and nomination.victims:
        for victim in nomination.victims:
            cluster.displace(victim.uid)
        again = schedule(engine, decision.pod)
        if again.outcome is AttemptOutcome.SCHEDULED:
            cluster.place(decision.pod, again.node)


def in_child(task: Callable[..., T], *args: object) -> T:
    """Run a cell in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, args)


def main(
    nodes: Annotated[str, Option(help="Numbers of nodes, separated by commas.")] = "100,1000,5000,50000",
    families: Annotated[str, Option(help="Workloads, separated by commas; all by default.")] = "",
    varieties: Annotated[str, Option(help="Numbers of templates, or all (different).")] = "10,all",
    most: Annotated[
        int, Option(help=f"Attempts a cell at most; a tenth of it beyond {MANY_NODES} nodes.")
    ] = 2000,
    output: Annotated[Path | None, Option(help="Append each cell as a line of JSON.")] = None,
) -> None:
    """Print a table a number of nodes, and how the figures grow."""
    chosen = families.split(",") if families else list(yaml.safe_load(WORKLOADS.read_text(encoding="utf-8")))
    sizes = [int(number) for number in nodes.split(",")]
    console = Console(width=120)
    cells: dict[tuple[str, str], list[Cell]] = {}
    for size in sizes:
        table = a_table(
            f"{size:,} nodes, all default plugins, one core",
            (
                "attempts",
                "pods/s of CPU",
                "by the wall",
                "CPU µs/pod",
                "best tenth",
                "p99 µs",
                "peak MiB",
                "",
            ),
        )
        for family in chosen:
            for variety in varieties.split(","):
                attempts = most if size <= MANY_NODES else max(1, most // 10)
                templates = None if variety == ALL else int(variety)
                cell = in_child(measure, family, size, templates, attempts)
                cells.setdefault((family, variety), []).append(cell)
                append(
                    output,
                    nodes=size,
                    family=family,
                    templates=variety,
                    attempts=cell.attempts,
                    pods_per_cpu_s=cell.per_cpu_second,
                    cpu_us=cell.cpu_us,
                    best_us=cell.best_us,
                    p99_us=cell.slowest_us,
                    peak_mib=cell.peak_mib,
                    unit_s=calibration_s() if output else 0.0,
                )
                table.add_row(
                    family,
                    variety,
                    str(cell.attempts),
                    f"{cell.per_cpu_second:,.0f}",
                    f"{cell.per_wall_second:,.0f}",
                    f"{cell.cpu_us:,.0f}",
                    f"{cell.best_us:,.0f}",
                    f"{cell.slowest_us:,.0f}",
                    f"{cell.peak_mib:,.0f}",
                    ", ".join(f"{count} {outcome}" for outcome, count in sorted(cell.outcomes.items())),
                )
        console.print(table)
    if len(sizes) > 1:
        growth = a_table(
            "How they grow: CPU µs/pod, and peak MiB, by number of nodes",
            (*(f"{size:,}" for size in sizes), *(f"{size:,}, MiB" for size in sizes)),
        )
        for (family, variety), row in cells.items():
            figures = (*(cell.cpu_us for cell in row), *(cell.peak_mib for cell in row))
            growth.add_row(family, variety, *(f"{figure:,.0f}" for figure in figures))
        console.print(growth)
    for place, size in enumerate(sizes if varieties.count(",") > 1 else ()):
        growth = a_table(
            f"How they grow at {size:,} nodes: CPU µs/pod by number of templates", varieties.split(",")
        )
        growth.columns.pop(1)
        for family in chosen:
            costs = [cells[family, variety][place].cpu_us for variety in varieties.split(",")]
            growth.add_row(family, *(f"{cost:,.0f}" for cost in costs))
        console.print(growth)


def a_table(title: str, headings: Sequence[str]) -> Table:
    """An empty table of figures by workload and templates."""
    table = Table(title=title)
    for heading in ("workload", "templates", *headings):
        table.add_column(heading, justify="left" if heading in ("workload", "") else "right")
    return table


if __name__ == "__main__":
    command_of(main)()
