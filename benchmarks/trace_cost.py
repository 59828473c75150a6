"""Replays traces on machines with prices: costs and restarts of consolidation, and a bound from below.

    python benchmarks/trace_cost.py [--data FOLDER] [--traces azure,openb,google] [--hours 24] [--bursts 30]

FOLDER has the folders ``azure-vm-arrivals``, ``openb``, ``google-vm-usage`` and ``cloud-instance-types``;
left out, a small trace and three machines are made up, so that the code runs anywhere.

Time goes in bins of five minutes. In each one pods end and come, an autoscaler adds machines for those that
fit nowhere, a rule of consolidation runs when it is due, and machines without pods are removed. All rules
meet the same pods, the same autoscaler and the same scheduler, ours with ``MostAllocated`` unless something
else is said. Played, so not those programs: the autoscaler and Karpenter's consolidation, as their sources do
it. The scheduler, the planner, ConsolidateNodes, and HighNodeUtilization with descheduler's decisions are
ours.

The bound is a mixed integer program for each bin: the cheapest machines whose cpu, memory, GPUs and pods in
total suffice for the pods of the bin, where a pod counts only on types of machine that take it whole. Pods
may be split over machines of a type, and machines are exchanged without a restart or a wait, so no rule can
cost less. Where the search ends early, what it has proven by then counts.
"""

import argparse
import csv
import gzip
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import highspy
import msgspec
import numpy as np
from openb import trace_rows
from rich.console import Console
from rich.table import Table
from unmovable_pods import FLAVOURS, drawn_arrivals, read_arrivals

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Registry
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.model.prices import PRICE
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod

GPU = "plimsoll.dev/gpu-milli"
SCHEDULER = "default-scheduler"
START = datetime(2026, 1, 1, tzinfo=UTC)
BIN_S = 300
BINS_OF_HOUR = 12

#: Seconds from the order of a machine until its first pod runs: between these, drawn for each.
BOOT_S = (40.0, 90.0)

#: Percent of Azure's batches and of Google's jobs that are played, and how much faster OpenB's pods arrive.
AZURE_PART, GOOGLE_PART, OPENB_FASTER = 8.0, 12.0, 30.0

#: The bound is found for each bin of this number, which shares no divisor with the bins between two runs.
BOUND_EVERY = 7

#: Families of the catalogue, and sizes; those with GPUs where a trace asks for some.
FAMILIES, SIZES = ("c7i", "m7i", "r7i"), ("xlarge", "2xlarge", "4xlarge", "8xlarge")
GPU_FAMILY = "g6"

#: The types where a cluster has groups of one type of machine, as without Karpenter.
ONE_TYPE = {"azure": ("c7i.4xlarge",), "google": ("m7i.4xlarge",), "openb": ("m7i.8xlarge", "g6.48xlarge")}

#: The share of machines that Karpenter disrupts at a time, and the most that one search combines.
KARPENTER_BUDGET, KARPENTER_MOST = 0.1, 100


class Machine(NamedTuple):
    """A type of machine: cores in milli, memory in MiB, pods, GPUs in thousandths, USD an hour."""

    name: str
    cpu: int
    memory: int
    pods: int
    gpu: int
    usd: float

    @property
    def room(self) -> tuple[int, int, int, int]:
        """What it has, in the order of a demand."""
        return self.cpu, self.memory, self.gpu, self.pods


class Demand(NamedTuple):
    """A pod: its owner, its size in the same units, when it comes and how long it runs, in bins."""

    owner: str
    cpu: int
    memory: int
    gpu: int
    comes: int
    bins: int
    is_burst: bool = False

    @property
    def size(self) -> tuple[int, int, int, int]:
        """What it takes; itself is one pod."""
        return self.cpu, self.memory, self.gpu, 1


MADE_UP = (
    Machine("small", 3_900, 7_000, 58, 0, 0.20),
    Machine("middle", 7_900, 14_500, 58, 0, 0.40),
    Machine("large", 15_800, 29_500, 110, 0, 0.80),
)


# -- traces ----------------------------------------------------------------------------------------------


def read_machines(folder: Path, trace: str, *, one_type: bool) -> tuple[Machine, ...]:
    """The catalogue of a trace, of the AWS table."""
    names = {f"{family}.{size}" for family in FAMILIES for size in SIZES}
    if one_type:
        names = set(ONE_TYPE[trace])
    with_gpus = trace == "openb" and not one_type
    found = []
    with (folder / "aws_instance_types.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            has_gpu = row["family"] == GPU_FAMILY and row["usd_per_hour_us_east_1"]
            if row["instance_type"] in names or (with_gpus and has_gpu):
                found.append(
                    Machine(
                        row["instance_type"],
                        int(row["alloc_cpu_milli"]),
                        int(row["alloc_memory_mib"]),
                        int(row["max_pods"]),
                        int(row["gpu_count"] or 0) * 1000,
                        float(row["usd_per_hour_us_east_1"]),
                    )
                )
    return tuple(sorted(found, key=lambda each: (each.usd, each.name)))


def azure(folder: Path, bins: int, seed: int) -> list[Demand]:
    """A part of the batches of Azure's arrivals."""
    return [
        Demand(
            each.owner, FLAVOURS[each.flavour][0] * 1000, int(FLAVOURS[each.flavour][1] * 1024), 0, *each[2:4]
        )
        for each in read_arrivals(folder, bins, AZURE_PART, 0, seed)
    ]


def openb(folder: Path, bins: int, seed: int) -> list[Demand]:
    """OpenB's pods with their run times, whose arrivals follow each other faster.

    As recorded, never more than 56 run at the same time.
    """
    del seed
    rows = [each for each in trace_rows(folder / "openb_pod_list_default.csv.gz") if each["deletion_time"]]
    rows.sort(key=lambda each: float(each["creation_time"]))
    first = float(rows[len(rows) // 10]["creation_time"])
    found = []
    for row in rows[len(rows) // 10 :]:
        comes = int((float(row["creation_time"]) - first) / OPENB_FASTER / BIN_S)
        lasts = (float(row["deletion_time"]) - float(row["scheduled_time"] or row["creation_time"])) / BIN_S
        cpu, memory = int(row["cpu_milli"]), int(row["memory_mib"])
        gpu = int(row["num_gpu"] or 0) * int(row["gpu_milli"] or 0)
        if comes < bins:
            found.append(Demand(f"w{cpu}-{memory}-{gpu}", cpu, memory, gpu, comes, max(1, math.ceil(lasts))))
    return found


def google(folder: Path, bins: int, seed: int) -> list[Demand]:
    """Google's jobs as Deployments that a played autoscaler of pods keeps at ten points of cpu a replica.

    It lowers the number after five minutes below it, as the default of a HorizontalPodAutoscaler is.
    """
    rng = random.Random(seed)
    found = []
    tables = [list(_lines(folder / f"{each}_percent.csv.gz")) for each in ("cpu", "mem")]
    for cpu_line, memory_line in zip(*tables, strict=True):
        name, *samples = cpu_line
        if name == "vm" or rng.random() * 100 >= GOOGLE_PART:
            continue
        used, held = [float(each) for each in samples], [min(float(each), 100) for each in memory_line[1:]]
        memory = int(min(max(4096 * sum(held) / sum(used), 1024), 8192))
        wanted = [max(1, math.ceil(each / 10)) for each in used]
        replicas = [max(wanted[at - 1 : at + 1] or wanted[:1]) for at in range(min(len(wanted), bins))]
        began: list[int] = []
        for at, count in enumerate([*replicas, 0]):
            began += [at] * (count - len(began))
            while len(began) > count:
                since = began.pop()
                found.append(Demand(f"job-{name}", 1000, memory, 0, since, at - since))
    return found


def _lines(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        yield from csv.reader(lines)


def drawn(bins: int, seed: int) -> list[Demand]:
    """Made up arrivals."""
    return [
        Demand(
            each.owner, FLAVOURS[each.flavour][0] * 1000, int(FLAVOURS[each.flavour][1] * 1024), 0, *each[2:4]
        )
        for each in drawn_arrivals(bins, 0, seed)
    ]


def bursts(warm: int, bins: int, pods: int) -> list[Demand]:
    """A deployment of so many pods of two cores, every third hour, for half an hour."""
    return [
        Demand(f"burst-{at}", 2000, 4096, 0, at, BINS_OF_HOUR // 2, is_burst=True)
        for at in range(warm + 7, bins, 3 * BINS_OF_HOUR)
        for _ in range(pods)
    ]


# -- the bound -------------------------------------------------------------------------------------------


class Bound:
    """The least cost of the machines for some pods."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = machines

    def usd(self, demands: Counter[tuple[int, int, int, int]]) -> float:
        """USD an hour."""
        program = highspy.Highs()  # type: ignore[no-untyped-call] # its stubs leave the constructor out
        program.setOptionValue("output_flag", False)  # noqa: FBT003 - the library's signature
        program.setOptionValue("mip_max_nodes", 20)
        program.setOptionValue("mip_rel_gap", 0.002)
        counts = [program.addIntegral(0, sum(demands.values())) for _ in self._machines]
        placed = {
            (size, at): program.addVariable(0, count)
            for size, count in demands.items()
            for at, machine in enumerate(self._machines)
            if _fits(size, machine.room)
        }
        for size, count in demands.items():
            mine = [column for (each, _), column in placed.items() if each == size]
            program.addConstr(program.qsum(mine) == count)
        for at, machine in enumerate(self._machines):
            here = [(size, column) for (size, each), column in placed.items() if each == at]
            for axis, room in enumerate(machine.room):
                terms = [column * size[axis] for size, column in here if size[axis]]
                if terms:
                    program.addConstr(program.qsum(terms) - counts[at] * room <= 0)
        program.minimize(program.qsum([counts[at] * each.usd for at, each in enumerate(self._machines)]))
        return float(program.getInfo().mip_dual_bound)


def _fits(size: Sequence[int], room: Sequence[int]) -> bool:
    return all(one <= other for one, other in zip(size, room, strict=True))


# -- the cluster -----------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """What consolidates, and how pods are placed.

    Attributes:
        every: Bins between two runs, 0 for none.
        strategy: Its name and arguments; None for Karpenter's rule where ``every`` is not 0.
        packs: Whether NodeResourcesFit prefers full nodes.
    """

    name: str
    every: int = 0
    strategy: tuple[str, dict[str, Any]] | None = None
    planner: Planner = Planner.PROVEN
    packs: bool = True


@dataclass
class Result:
    """Sums over the counted bins; ``waits`` are seconds of pods of bursts, of all in a run without bursts."""

    usd: float = 0.0
    bounded: float = 0.0  #: USD an hour in the bins for which there is a bound, and the bounds
    bound: float = 0.0
    restarts: int = 0
    pods: int = 0
    machines: float = 0.0  #: mean
    waits: list[float] = field(default_factory=list)

    def wait(self, share: float) -> float:
        """The seconds that this share of the pods waited at most."""
        return float(np.quantile(self.waits, share, method="higher")) if self.waits else 0.0


@dataclass
class Replay:
    """The cluster under one rule."""

    rule: Rule
    machines: Sequence[Machine]
    seed: int = 1
    cluster: Cluster = field(default_factory=Cluster)
    live: dict[str, Demand] = field(default_factory=dict)
    result: Result = field(default_factory=Result)
    now: int = 0
    _made: int = 0
    types: dict[str, Machine] = field(default_factory=dict)
    _boots: dict[str, float] = field(default_factory=dict)
    _moved: dict[str, int] = field(default_factory=dict)
    _past: list[PastMove] = field(default_factory=list)

    def __post_init__(self) -> None:
        enabled = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        fit = {"scoringStrategy": {"type": "MostAllocated"}} if self.rule.packs else {}
        profile = build_profile(
            ProfileConfig(SCHEDULER, args={"NodeResourcesFit": fit}), Registry(PLUGINS), enabled
        )
        self._draw = random.Random(self.seed)
        self.scheduler = ProfileScheduler(profile, self.cluster, choose=self._draw.randrange)

    @cached_property
    def policy(self) -> RebalancingConfig:
        """The policy of the strategy."""
        if self.rule.strategy is None:
            raise ValueError(f"{self.rule.name} has no strategy")
        name, args = self.rule.strategy
        return RebalancingConfig(
            strategies=[StrategyRegistry(IN_TREE).build(name, args, "args")],
            evictors=(EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 0}, "evictor"),),
            profiles={SCHEDULER: self.scheduler.profile},
            limits=Limits(per_workload=NO_CEILING),
            planner=self.rule.planner,
        )

    def play(self, demands: Sequence[Demand], bins: int, warm: int, bound: Bound | None) -> Result:
        """All bins, of which the first ``warm`` are not counted."""
        by_bin, ends = defaultdict[int, list[Demand]](list), defaultdict[int, list[str]](list)
        for each in demands:
            by_bin[each.comes].append(each)
        only_bursts = any(each.is_burst for each in demands)
        for self.now in range(bins):
            for uid in ends.pop(self.now, ()):
                self.cluster.displace(uid)
                del self.live[uid]
            arriving = {f"{each.owner}-{self.now}-{at}": each for at, each in enumerate(by_bin[self.now])}
            for uid, each in arriving.items():
                self.live[uid] = each
                ends[self.now + each.bins].append(uid)
            waits = self.place(list(arriving))
            self._remove_empty()
            if self.rule.every and self.now % self.rule.every == self.rule.every - 1:
                moved = self._consolidate()
                self.result.restarts += moved if self.now >= warm else 0
                self._remove_empty()
            if self.now >= warm:
                self.result.waits += [
                    waits[uid] for uid, each in arriving.items() if each.is_burst >= only_bursts
                ]
                self._count(bound, bins - warm)
        return self.result

    def place(self, uids: Sequence[str]) -> dict[str, float]:
        """Place pods, with new machines where there is no room; returns how long each waits, in seconds."""
        waits = dict.fromkeys(uids, 0.0)
        left = [uid for uid in uids if not self._bind(uid)]
        while left:
            fresh = [self.add(each) for each in ordered([self.live[uid] for uid in left], self.machines)]
            before, left = left, [uid for uid in left if not self._bind(uid)]
            for uid in set(before) - set(left):
                row = self.cluster.row_of_pod(uid)
                waits[uid] = 0.0 if row is None else self._boots.get(self.cluster.nodes[row].name, 0.0)
            if not fresh or len(before) == len(left):
                raise RuntimeError(f"no machine takes {self.live[left[0]]}")
        self._boots.clear()
        return waits

    def _bind(self, uid: str) -> bool:
        decision = schedule(self.scheduler, self._info(uid, ""))
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            return False
        self._put(uid, decision.node)
        return True

    def _put(self, uid: str, node: str) -> None:
        self.cluster.place(self._info(uid, node), node)

    def _info(self, uid: str, node: str) -> PodInfo:
        each = self.live[uid]
        pod = a_pod(
            uid,
            owner=f"ReplicaSet/{each.owner}",
            cpu=f"{each.cpu}m",
            memory=f"{each.memory}Mi",
            requests={GPU: each.gpu} if each.gpu else {},
            metadata={"uid": uid, "creationTimestamp": START.isoformat()},
        )
        if node:
            spec = msgspec.structs.replace(pod.spec, node_name=node)
            pod = msgspec.structs.replace(pod, spec=spec, status=PodStatus(phase="Running"))
        return self.cluster.templates.info(pod)

    def add(self, machine: Machine) -> str:
        """Add a machine; its name."""
        self._made += 1
        name = f"node-{self._made:05}"
        self.types[name], self._boots[name] = machine, self._draw.uniform(*BOOT_S)
        self.cluster.set_node(
            a_node(
                name,
                cpu=f"{machine.cpu}m",
                memory=f"{machine.memory}Mi",
                pods=machine.pods,
                allocatable={GPU: machine.gpu} if machine.gpu else {},
                annotations={PRICE: f"{machine.usd:.6f} USD"},
                creationTimestamp=self._moment.isoformat(),
            )
        )
        return name

    @property
    def _moment(self) -> datetime:
        return START + timedelta(seconds=self.now * BIN_S)

    def _remove_empty(self) -> None:
        for name in [each.name for row, each in enumerate(self.cluster.nodes) if not self.uids(row)]:
            self.cluster.remove_node(name)

    def uids(self, row: int) -> list[str]:
        """The pods on a node."""
        return [each.uid for each in self.cluster.pods_on(row)]

    def _count(self, bound: Bound | None, bins: int) -> None:
        usd = sum(self.types[each.name].usd for each in self.cluster.nodes)
        self.result.usd += usd * BIN_S / 3600
        self.result.machines += len(self.cluster) / bins
        self.result.pods = max(self.result.pods, len(self.live))
        if self.now % BOUND_EVERY == 0:
            self.result.bounded += usd
            if bound is not None:
                self.result.bound += bound.usd(Counter(each.size for each in self.live.values()))

    # -- rules of consolidation ------------------------------------------------------------------------

    def _consolidate(self) -> int:
        """Run the rule; returns the number of pods that were restarted."""
        if self.rule.strategy is None:
            return Karpenter(self).run()
        late = self.now - BINS_OF_HOUR
        moved = frozenset(uid for uid, when in self._moved.items() if when > late)
        now = self._moment.timestamp()
        context = PlanningContext(self._moment, moved=moved, memory=MoveHistory(self._past, now))
        plan = make_plan(self.policy, self.cluster, context)
        if plan.failures:
            raise RuntimeError(str(plan.failures[0]))
        if self.rule.planner is Planner.UPSTREAM:
            self.restart([move.pod.uid for move in plan.moves])
        else:
            for move in plan.moves:
                self.cluster.displace(move.pod.uid)
                self._put(move.pod.uid, move.target)
                self._moved[move.pod.uid] = self.now
                self._past.append(
                    PastMove(
                        "p",
                        move.strategy,
                        move.workload.key,
                        move.workload.name,
                        move.source,
                        MoveOutcome.SETTLED,
                        now,
                        target=move.target,
                    )
                )
        return len(plan.moves)

    def restart(self, uids: Sequence[str]) -> None:
        """Evict pods, and have the scheduler place their successors."""
        for uid in uids:
            self.cluster.displace(uid)
        self.place(uids)


def ordered(demands: Sequence[Demand], machines: Sequence[Machine]) -> list[Machine]:
    """The machines for pods without a place, as Karpenter orders them.

    The largest pods first, each into the first new machine that some type can be with it; then each becomes
    the cheapest type that takes what is in it.
    """
    rooms = np.array([each.room for each in machines])
    bins: list[np.ndarray[Any, Any]] = []
    for each in sorted(demands, key=lambda one: one.size, reverse=True):
        size = np.array(each.size)
        for at, taken in enumerate(bins):
            if (rooms >= taken + size).all(axis=1).any():
                bins[at] = taken + size
                break
        else:
            bins.append(size)
    return [machine for taken in bins if (machine := cheapest(taken, machines)) is not None]


def cheapest(taken: "np.ndarray[Any, Any]", machines: Sequence[Machine]) -> Machine | None:
    """The cheapest type that has that room."""
    fitting = [each for each in machines if (np.array(each.room) >= taken).all()]
    return min(fitting, key=lambda each: (each.usd, each.name), default=None)


class Karpenter:
    """Karpenter's consolidation of 1.12, played: WhenEmptyOrUnderutilized with the default budget.

    Candidates are sorted by the number of their pods. First the longest series of them is looked for whose
    pods fit on the others and at most one new machine that is cheaper than all of them; then each alone.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def run(self) -> int:
        """Disrupt until nothing is found or the budget is used up; returns the number of restarts."""
        cluster, restarts = self._replay.cluster, 0
        left = math.ceil(len(cluster) * KARPENTER_BUDGET)
        while left > 0:
            names = sorted(
                (each.name for each in cluster.nodes), key=lambda name: (len(self._pods(name)), name)
            )
            chosen, fresh = self._several(names[: min(left, KARPENTER_MOST)]) or self._single(names)
            if not chosen:
                break
            uids = [uid for name in chosen for uid in self._pods(name)]
            for uid in uids:
                cluster.displace(uid)
            for name in chosen:
                cluster.remove_node(name)
            if fresh is not None:
                self._replay.add(fresh)
            self._replay.place(uids)
            restarts, left = restarts + len(uids), left - len(chosen)
        return restarts

    def _several(self, names: list[str]) -> tuple[list[str], Machine | None] | None:
        low, high, best = 2, len(names), None
        while low <= high:
            middle = (low + high) // 2
            found = self._judged(names[:middle])
            if found is None:
                high = middle - 1
            else:
                best, low = found, middle + 1
        return best

    def _single(self, names: list[str]) -> tuple[list[str], Machine | None]:
        for name in names:
            found = self._judged([name])
            if found is not None:
                return found
        return [], None

    def _judged(self, names: list[str]) -> tuple[list[str], Machine | None] | None:
        """These nodes and the machine that replaces them, if any; None if they stay."""
        replay = self._replay
        gone = set(names)
        rest = [each.name for each in replay.cluster.nodes if each.name not in gone]
        free = np.array([np.array(replay.types[each].room) - self._taken(each) for each in rest]).reshape(
            -1, 4
        )
        sizes = sorted((replay.live[uid].size for name in names for uid in self._pods(name)), reverse=True)
        over = np.zeros(4, dtype=np.int64)
        for size in map(np.array, sizes):
            fitting = (free >= size).all(axis=1)
            if fitting.any():
                free[int(fitting.argmax())] -= size
            else:
                over += size
        if not over.any():
            return names, None
        price = sum(replay.types[each].usd for each in names)
        machine = cheapest(over, replay.machines)
        return (names, machine) if machine is not None and machine.usd < price - 1e-9 else None

    def _pods(self, name: str) -> list[str]:
        return self._replay.uids(self._replay.cluster.rows[name])

    def _taken(self, name: str) -> "np.ndarray[Any, Any]":
        sizes = [self._replay.live[uid].size for uid in self._pods(name)]
        taken: np.ndarray[Any, Any] = np.array(sizes).reshape(-1, 4).sum(axis=0)
        return taken


# -- the tables ------------------------------------------------------------------------------------------

#: What a restart must save in the three rows of ours.
SAVINGS = (1, 4, 16)

#: The same where machines have GPUs, which cost ten times as much.
GPU_SAVINGS = (10, 40, 160)


def consolidating(saving: int, **more: Any) -> tuple[str, dict[str, Any]]:
    """ConsolidateNodes with a setting."""
    full = {"thresholds": {"cpu": 100, "memory": 100}, "headroomPercent": 0, "nodes": 1000}
    return "ConsolidateNodes", {**full, "minSavingPerRestart": f"{saving} USD/day", **more}


def rules(every: int, savings: Sequence[int]) -> list[Rule]:
    """All rows; strategies run every so many bins, Karpenter's rule in each one."""
    high = ("HighNodeUtilization", {"thresholds": {"cpu": 50, "memory": 50}})
    return [
        Rule("kube-scheduler alone, LeastAllocated", packs=False),
        Rule("kube-scheduler alone"),
        Rule("HighNodeUtilization, descheduler's decisions", every, high, Planner.UPSTREAM),
        Rule("Karpenter's rule, played", 1),
        *(Rule(f"ConsolidateNodes, {each} USD/day", every, consolidating(each)) for each in savings),
        Rule(
            f"ConsolidateNodes, {savings[0]} USD/day, filledSeconds a day",
            every,
            consolidating(savings[0], filledSeconds=86_400),
        ),
    ]


def traces(
    folder: Path | None, names: Sequence[str], bins: int, seed: int, *, one_type: bool
) -> Iterator[tuple[str, list[Demand], tuple[Machine, ...]]]:
    """Each trace, and the machines that it can have."""
    if folder is None:
        yield "made up", drawn(bins, seed), MADE_UP
        return
    readers = {
        "azure": (azure, "azure-vm-arrivals"),
        "openb": (openb, "openb"),
        "google": (google, "google-vm-usage"),
    }
    for name in names:
        read, where = readers[name]
        machines = read_machines(folder / "cloud-instance-types", name, one_type=one_type)
        demands = [
            each
            for each in read(folder / where, bins, seed)
            if any(_fits(each.size, one.room) for one in machines)
        ]
        yield name, demands, machines


def a_table(title: str, rows: Sequence[tuple[str, Result]], bound: float) -> Table:
    """A line a rule."""
    table = Table(title=title)
    for column in ("", "USD", "above the bound", "restarts", "machines", "wait p50", "p99"):
        table.add_column(column, justify="right" if column else "left")
    for name, found in rows:
        table.add_row(
            name,
            f"{found.usd:,.0f}",
            f"{found.bounded / bound - 1:.1%}",
            f"{found.restarts:,}",
            f"{found.machines:,.1f}",
            f"{found.wait(0.5):.0f} s",
            f"{found.wait(0.99):.0f} s",
        )
    return table


def main() -> None:
    """Play each rule on each trace, and print a table a trace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folders of the traces; left out, a trace is made up")
    parser.add_argument("--traces", default="azure,openb,google")
    parser.add_argument("--hours", type=int, default=16)
    parser.add_argument("--warm", type=int, default=4, help="of these, hours that are not counted")
    parser.add_argument("--one-type", action="store_true", help="one type of machine instead of a catalogue")
    parser.add_argument("--every", type=int, default=3, help="bins between two runs of a strategy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", default="", help="only rows that contain this text")
    parser.add_argument(
        "--bursts", type=int, default=0, help="pods of a burst, with and without headroom for it"
    )
    given = parser.parse_args()

    bins, warm = given.hours * BINS_OF_HOUR, given.warm * BINS_OF_HOUR
    names = given.traces.split(",")
    for name, demands, machines in traces(given.data, names, bins, given.seed, one_type=given.one_type):
        savings = GPU_SAVINGS if any(each.gpu for each in machines) else SAVINGS
        wanted = [each for each in rules(given.every, savings) if given.rules in each.name]
        if given.bursts:
            demands.extend(bursts(warm, bins, given.bursts))
            room = [{"pods": given.bursts, "requests": {"cpu": "2", "memory": "4Gi"}}]
            wanted = [
                Rule(f"{savings[0]} USD/day{words}", given.every, consolidating(savings[0], **more))
                for words, more in (("", {}), (f", headroom of {given.bursts}", {"headroom": room}))
            ]
        console = Console(width=120)
        rows = []
        for row in played(wanted, demands, machines, bins, warm, given.seed):
            rows.append(row)
            console.print(f"{name}: {row[0]}: {row[1].usd:.0f} USD, {row[1].restarts} restarts")
        title = f"{name}: hours {given.warm} to {given.hours}, {rows[0][1].pods:,} pods at most"
        console.print(a_table(title, rows, rows[0][1].bound))


def played(
    wanted: Sequence[Rule],
    demands: Sequence[Demand],
    machines: Sequence[Machine],
    bins: int,
    warm: int,
    seed: int,
) -> Iterator[tuple[str, Result]]:
    """Each rule and what came of it; the bound is in the first one's result, as all have the same pods."""
    for at, rule in enumerate(wanted):
        bound = Bound(machines) if at == 0 else None
        yield rule.name, Replay(rule, machines, seed).play(demands, bins, warm, bound)


if __name__ == "__main__":
    main()
