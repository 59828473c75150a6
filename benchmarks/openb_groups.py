"""OpenB as gangs: jobs that want one rack, placed by our search and by the published rules of others.

    python benchmarks/openb_groups.py --trace FOLDER [--page docs/benchmarks/groups.md]

OpenB names no owners and no racks, so both are made: nodes with GPUs form racks of 16 of one model, in the
list's order, and pods that ask for whole GPUs and are alike form jobs whose GPUs are drawn. A job lasts as
long as the median of its pods in the trace, at most an hour. Jobs arrive at random times, so many that they
ask for ``--load`` of all GPUs on average; the list is used ``--rounds`` times, on each ``--every``-th node. A
job starts when all of its pods fit, in the order of arrival; a later one may start before an earlier one that
does not fit. The first hour, in which the cluster fills, is not counted.

Ours is the scheduler's own search for groups with the default plugins. The rules of others are played: a few
lines each, by amounts alone, written from their documents (see :class:`Rule`). They are not those programs.
"""

import argparse
import heapq
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from openb import GPU, MODEL, NodeClass, Shape, Trace, drawn_trace, on_models, read_trace, trace_rows
from rich.console import Console
from rich.table import Table

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import BoolArray, IntArray, Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.columns import validate

RACK = "example.com/rack"

#: Nodes of a rack, GPUs that jobs have, and how often; the longest that a job lasts, in seconds.
RACK_NODES, JOB_GPUS, OFTEN, LONGEST_S = 16, (1, 4, 8, 16, 32, 64), (4, 3, 3, 2, 1, 1), 3_600.0

#: What stands on the page before and after the table.
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


@dataclass(frozen=True, slots=True)
class Job:
    """Equal pods that start together; times in seconds."""

    number: int
    shape: Shape
    pods: int
    arrives: float
    lasts: float

    @property
    def gpus(self) -> float:
        """GPUs of all pods."""
        return self.pods * self.shape.gpu / 1000


def in_racks(trace: Trace, every: int) -> tuple[tuple[NodeClass, ...], tuple[str, ...]]:
    """The nodes with GPUs, and the rack of each: so many of one model, the last of a model with fewer."""
    by_model: dict[str, list[NodeClass]] = {}
    for node in [each for each in trace.nodes if each.gpu][::every]:
        by_model.setdefault(node.model, []).append(node)
    nodes = [(node, f"{model}-{at // RACK_NODES:02}") for model, same in by_model.items()
             for at, node in enumerate(same)]  # fmt: skip
    return tuple(node for node, _ in nodes), tuple(rack for _, rack in nodes)


def has_whole_gpus(shape: Shape) -> bool:
    """Whether a pod asks for GPUs, and for no part of one."""
    return shape.gpu > 0 and not shape.gpu % 1000


def largest_rack(shape: Shape, nodes: Sequence[NodeClass], racks: Sequence[str]) -> int:
    """The most pods of a shape that an empty rack holds."""
    rooms = Counter[str]()
    for node, rack in zip(nodes, racks, strict=True):
        if shape.fits(node):
            cpu, memory, gpu = _wanted(shape).tolist()
            rooms[rack] += min(node.cpu // cpu, node.memory // memory, node.gpu // gpu)
    return max(rooms.values(), default=0)


def drawn_jobs(
    pods: Sequence[tuple[Shape, float, int]], gpus: float, load: float, rounds: int, draw: random.Random
) -> list[Job]:
    """Jobs of pods that are alike, by arrival.

    Args:
        pods: Shape and seconds of each pod of the list, and the most of its shape that a rack holds.
        gpus: GPUs of all nodes.
        load: GPUs that jobs ask for on average, as a share of these.
        rounds: How often the list is used.
        draw: Draws sizes and arrivals.
    """
    made: list[tuple[Shape, int, float]] = []
    for _ in range(rounds):
        begun: dict[Shape, tuple[int, list[float]]] = {}
        for shape, seconds, most in pods:
            if shape not in begun:
                wanted = draw.choices(JOB_GPUS, OFTEN)[0]
                begun[shape] = min(max(1, wanted * 1000 // shape.gpu), most), []
            count, lasts = begun[shape]
            lasts.append(seconds)
            if len(lasts) == count:
                made.append((shape, count, statistics.median(lasts)))
                del begun[shape]
        made += [(shape, len(lasts), statistics.median(lasts)) for shape, (_, lasts) in begun.items()]
    draw.shuffle(made)
    work = sum(shape.gpu / 1000 * count * lasts for shape, count, lasts in made)
    times = sorted(draw.uniform(0, work / (gpus * load)) for _ in made)
    return [
        Job(number, shape, count, at, lasts)
        for number, ((shape, count, lasts), at) in enumerate(zip(made, times, strict=True))
    ]


# -- ours --------------------------------------------------------------------------------------------


class Ours:
    """The scheduler's search for groups.

    Args:
        nodes: The nodes.
        racks: The rack of each.
        required: Whether a job must be in one rack, rather than should.
        packs: Whether nodes are filled (``NodeResourcesFit`` with ``MostAllocated``) rather than evened out.
    """

    def __init__(
        self, nodes: Sequence[NodeClass], racks: Sequence[str], *, required: bool = False, packs: bool = False
    ) -> None:
        self._within = RACK if required else ""
        self._near = () if required else (RACK,)
        self._cluster, self._pods = Cluster(), dict[int, list[str]]()
        for number, (node, rack) in enumerate(zip(nodes, racks, strict=True)):
            self._cluster.set_node(
                a_node(
                    f"node-{number:04}",
                    cpu=f"{node.cpu}m",
                    memory=f"{node.memory}Mi",
                    labels={MODEL: node.model, RACK: rack},
                    allocatable={GPU: node.gpu},
                )
            )
        resources = [{"name": name, "weight": 1} for name in (GPU, "cpu", "memory")]
        fit = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}}
        defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        config = ProfileConfig("s", args=fit if packs else {})
        self._scheduler = ProfileScheduler(
            build_profile(config, Registry(PLUGINS), defaults),
            self._cluster,
            choose=random.Random(1).randrange,
        )

    def start(self, job: Job) -> list[int] | None:
        """The rows of the nodes of its pods; None if it waits."""
        shape, info = job.shape, self._cluster.templates.info
        affinity = on_models(shape.models) if shape.models else None
        pods = [
            info(
                a_pod(
                    f"job-{job.number}-{at}",
                    cpu=f"{shape.cpu}m",
                    memory=f"{shape.memory}Mi",
                    requests={GPU: shape.gpu},
                    affinity=affinity,
                )
            )
            for at in range(job.pods)
        ]
        if job.pods == 1:
            decision = schedule(self._scheduler, pods[0])
            names = [decision.node] if decision.outcome is AttemptOutcome.SCHEDULED else []
        else:
            group = [(pod, self._scheduler) for pod in pods]
            found = place_together(group, self._cluster, job.pods, within=self._within, near=self._near)
            pods = [each.decision.pod for each in found.placements]
            names = [each.node for each in found.placements] if found.is_feasible else []
        if not names:
            return None
        for pod, name in zip(pods, names, strict=True):
            self._cluster.place(pod, name)
        self._pods[job.number] = [pod.uid for pod in pods]
        return [self._cluster.rows[name] for name in names]

    def end(self, job: Job) -> None:
        """Remove its pods."""
        for uid in self._pods.pop(job.number):
            self._cluster.displace(uid)

    def check(self) -> None:
        """Compare the cluster with its objects."""
        validate(self._cluster)


# -- the rules of others, played ---------------------------------------------------------------------


@dataclass(slots=True)
class Rule:
    """A published rule, by amounts of cpu, memory and GPUs.

    kube-scheduler 1.36 with ``TopologyAwareWorkloadScheduling`` (KEP-5732): each rack that takes all pods is
    tried, and the one that is fullest afterwards is taken; its nodes are evened out. There is no preferred
    level: a job that names the rack waits for one, a job that does not is placed pod by pod anywhere.

    KAI-Scheduler 0.17 (``docs/topology``) with a preferred rack: the rack with the least room that takes all
    pods; if none does, racks with most room first. Its nodes are filled.

    Args:
        nodes: The nodes.
        racks: The rack of each.
        choose: Rows in the order in which they are filled, for a job and the pods that each node takes.
        packs: Whether nodes are filled rather than evened out.
    """

    nodes: Sequence[NodeClass]
    racks: Sequence[str]
    choose: Callable[["Rule", Job, IntArray], list[IntArray]]
    packs: bool = False
    free: IntArray = field(init=False)
    full: IntArray = field(init=False)
    ids: IntArray = field(init=False)
    _places: dict[int, list[int]] = field(default_factory=dict)
    _models: dict[Shape, BoolArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.full = np.array([(node.cpu, node.memory, node.gpu) for node in self.nodes], dtype=np.int64)
        self.free = self.full.copy()
        self.ids = np.unique(self.racks, return_inverse=True)[1]

    def start(self, job: Job) -> list[int] | None:
        """The rows of the nodes of its pods; None if it waits."""
        wanted = _wanted(job.shape)
        if job.shape not in self._models:
            fits = [not job.shape.models or node.model in job.shape.models for node in self.nodes]
            self._models[job.shape] = np.array(fits)
        rooms = (self.free // wanted).min(axis=1) * self._models[job.shape]
        if rooms.sum() < job.pods:
            return None
        places: list[int] = []
        for rows in self.choose(self, job, rooms):
            while len(places) < job.pods and (rooms[rows] > 0).any():
                open_to = rows[rooms[rows] > 0]
                used = ((self.full - self.free + wanted) / self.full)[open_to]
                score = used[:, 2] if self.packs else -used[:, :2].mean(axis=1)
                row = int(open_to[score.argmax()])
                self.free[row] -= wanted
                rooms[row] -= 1
                places.append(row)
        if len(places) < job.pods:
            self._give_back(places, wanted)
            return None
        self._places[job.number] = places
        return places

    def end(self, job: Job) -> None:
        """Remove its pods."""
        self._give_back(self._places.pop(job.number), _wanted(job.shape))

    def check(self) -> None:
        """Every node is as empty as at the beginning."""
        assert (self.free == self.full).all()

    def in_rack(self, rack: int) -> IntArray:
        """The rows of a rack."""
        return np.flatnonzero(self.ids == rack)

    def _give_back(self, places: Sequence[int], wanted: IntArray) -> None:
        for row in places:
            self.free[row] += wanted


def _wanted(shape: Shape) -> IntArray:
    # Some pods of the list ask for no memory.
    return np.array((shape.cpu, shape.memory, shape.gpu), dtype=np.int64).clip(1)


def anywhere(rule: Rule, *_: object) -> list[IntArray]:
    """kube-scheduler where the job names no rack."""
    return [np.arange(len(rule.nodes))]


def fullest_rack(rule: Rule, job: Job, rooms: IntArray) -> list[IntArray]:
    """kube-scheduler where the job names the rack."""
    if job.pods == 1:
        return anywhere(rule)
    holding = np.flatnonzero(np.bincount(rule.ids, rooms) >= job.pods)
    used = np.array(
        [(rule.full - rule.free)[rule.ids == each].sum(axis=0) for each in range(rule.ids.max() + 1)]
    )
    total = np.array([rule.full[rule.ids == each].sum(axis=0) for each in range(rule.ids.max() + 1)])
    shares = (used + job.pods * _wanted(job.shape)) / total
    return [rule.in_rack(int(holding[shares[holding, :2].mean(axis=1).argmax()]))] if len(holding) else []


def least_room(rule: Rule, job: Job, rooms: IntArray) -> list[IntArray]:
    """KAI where the job prefers the rack."""
    if job.pods == 1:
        return anywhere(rule)
    sums = np.bincount(rule.ids, rooms).astype(np.int64)
    holding = np.flatnonzero(sums >= job.pods)
    order = (
        [int(holding[sums[holding].argmin()])] if len(holding) else np.argsort(-sums, kind="stable").tolist()
    )
    return [rule.in_rack(each) for each in order]


# -- the experiment ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Result:
    """What came of the jobs.

    Attributes:
        whole: Share of the jobs of several pods that were in one rack.
        racks: Racks of such a job, on average.
        waits: Seconds that jobs of several pods waited: on average, and all but one of twenty at most.
        allocated: Share of the GPUs that jobs had, on average until the last one arrived.
        never: Jobs that never started.
        cpu_s: CPU seconds of all decisions.
    """

    name: str
    whole: float
    racks: float
    waits: tuple[float, float]
    allocated: float
    never: int
    cpu_s: float


def played(name: str, jobs: Sequence[Job], racks: Sequence[str], gpus: float, scheduler: Any) -> Result:
    """Let the jobs come, run and end."""
    began = time.process_time()
    running: list[tuple[float, int]] = []
    waiting: list[Job] = []
    refused: dict[Shape, int] = {}
    used, busy, now = 0.0, 0.0, 0.0
    counts, waits = list[int](), list[float]()
    arrivals, last = iter(jobs), jobs[-1].arrives
    coming = next(arrivals, None)

    def begin(job: Job) -> bool:
        if used + job.gpus > gpus or job.pods >= refused.get(job.shape, job.pods + 1):
            return False
        places = scheduler.start(job)
        if places is None:
            refused[job.shape] = job.pods
            return False
        if job.pods > 1 and job.arrives > LONGEST_S:
            counts.append(len({racks[row] for row in places}))
            waits.append(now - job.arrives)
        heapq.heappush(running, (now + job.lasts, job.number))
        return True

    while coming is not None or running:
        ends = running[0][0] if running else float("inf")
        comes = coming.arrives if coming is not None else float("inf")
        busy += used * max(0.0, min(ends, comes, last) - min(max(now, LONGEST_S), last))
        now = min(ends, comes)
        if ends <= comes:
            job = jobs[heapq.heappop(running)[1]]
            scheduler.end(job)
            used -= job.gpus
            refused.clear()
            for each in tuple(waiting):
                if begin(each):
                    waiting.remove(each)
                    used += each.gpus
        else:
            assert coming is not None
            if begin(coming):
                used += coming.gpus
            else:
                waiting.append(coming)
            coming = next(arrivals, None)
    scheduler.check()
    waits.sort()
    return Result(
        name,
        counts.count(1) / len(counts),
        statistics.fmean(counts),
        (statistics.fmean(waits), waits[len(waits) * 19 // 20]),
        busy / (last - LONGEST_S) / gpus,
        len(waiting),
        time.process_time() - began,
    )


def carry_out(
    trace: Trace, lasts: Sequence[float], load: float, rounds: int, every: int, seed: int
) -> Iterator[Result]:
    """Each scheduler with the same jobs."""
    nodes, racks = in_racks(trace, every)
    gpus = sum(node.gpu for node in nodes) / 1000
    most = {shape: largest_rack(shape, nodes, racks) for shape in set(trace.pods) if has_whole_gpus(shape)}
    pods = [
        (shape, min(max(seconds, 1.0), LONGEST_S), most[shape])
        for shape, seconds in zip(trace.pods, lasts, strict=True)
        if most.get(shape)
    ]
    jobs = drawn_jobs(pods, gpus, load, rounds, random.Random(seed))
    for name, scheduler in (
        ("Plimsoll, rack preferred, nodes filled", Ours(nodes, racks, packs=True)),
        ("Plimsoll, rack preferred", Ours(nodes, racks)),
        ("Plimsoll, rack required", Ours(nodes, racks, required=True)),
        ("kube-scheduler's rule, rack required (played)", Rule(nodes, racks, fullest_rack)),
        ("kube-scheduler's rule, no rack named (played)", Rule(nodes, racks, anywhere)),
        ("KAI's rule, rack preferred (played)", Rule(nodes, racks, least_room, packs=True)),
    ):
        yield played(name, jobs, racks, gpus, scheduler)


def as_table(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """The cells of each row."""
    return [
        (
            each.name,
            f"{each.whole:.1%}",
            f"{each.racks:.2f}",
            f"{each.waits[0]:,.0f} s",
            f"{each.waits[1]:,.0f} s",
            f"{each.allocated:.1%}",
            f"{each.never}",
            f"{each.cpu_s:.1f}",
        )
        for each in results
    ]


HEADINGS = (
    "",
    "in one rack",
    "racks a job",
    "wait, mean",
    "wait, 95 %",
    "GPUs allocated",
    "never started",
    "CPU s",
)


def write(page: Path, rows: Sequence[Sequence[str]]) -> None:
    """Put the table on a page, between its marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 1)], *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Print a line for each scheduler."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, help="The folder of the OpenB lists; a drawn cluster without.")
    parser.add_argument("--pod-list", default="default")
    parser.add_argument("--load", type=float, default=0.9, help="GPUs asked for, as a share of all.")
    parser.add_argument("--rounds", type=int, default=2, help="How often the list of pods is used.")
    parser.add_argument("--every", type=int, default=8, help="Each such node with GPUs is used.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path, help="A page on which the table is written.")
    given = parser.parse_args()

    if given.trace is None:
        trace, draw = drawn_trace(200, 1500, given.seed), random.Random(given.seed)
        lasts = [draw.lognormvariate(6.5, 1.5) for _ in trace.pods]
    else:
        trace = read_trace(given.trace, given.pod_list)
        lasts = [
            float(row["deletion_time"]) - float(row["scheduled_time"] or row["creation_time"])
            for row in trace_rows(given.trace / f"openb_pod_list_{given.pod_list}.csv.gz")
        ]
    console, results = Console(width=140), []
    for result in carry_out(trace, lasts, given.load, given.rounds, given.every, given.seed):
        results.append(result)
        console.print(f"{result.name}: {result.cpu_s:.1f} CPU s")
    rows = as_table(results)
    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if given.page is not None:
        write(given.page, rows)


if __name__ == "__main__":
    main()
