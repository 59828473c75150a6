"""OpenB: the share of a real GPU cluster's pods that fit, before and after making room, and a bound.

    python benchmarks/openb.py --trace FOLDER

The pods of the list are submitted in order and none is deleted; GPUs are one extended resource in
thousandths, and a node takes 110 pods. First the scheduler places what it can. Then the strategies work,
and at last the planner Optimal for the pods that they leave, run after run: each move is proved by the
planner, made, and pending pods are placed by the scheduler, where room was made for them or wherever they
fit by then; the cluster is checked against its objects after every run. The bound is a linear program over
classes of nodes and shapes of pods: no assignment of pods to single nodes can pass it, however many moves
it takes.
"""

import argparse
import csv
import gzip
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import highspy
import msgspec
from rich.console import Console
from rich.table import Table

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Registry
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import Goal, PlanningContext, RebalancingConfig, replacement_of
from plimsoll.planning.planners import make_plan
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.columns import validate

GPU = "plimsoll.dev/gpu-milli"
MODEL = "gpu.model"
SCHEDULER = "default-scheduler"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOST_PODS = 110
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that are alike: cores in milli, memory in MiB, GPUs in thousandths."""

    cpu: int
    memory: int
    gpu: int
    model: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Pods that are alike, in the same units; ``models``: GPU models that will do, none means any."""

    cpu: int
    memory: int
    gpu: int
    models: tuple[str, ...] = ()

    def fits(self, node: NodeClass) -> bool:
        """Whether an empty node of the class takes one."""
        return (
            self.cpu <= node.cpu
            and self.memory <= node.memory
            and self.gpu <= node.gpu
            and (not self.models or node.model in self.models)
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """Nodes and pods, each in the order of the lists."""

    nodes: tuple[NodeClass, ...]
    pods: tuple[Shape, ...]

    @property
    def gpus(self) -> float:
        """GPUs that all pods request."""
        return sum(pod.gpu for pod in self.pods) / 1000


def read_trace(folder: Path, pod_list: str = "gpuspec33") -> Trace:
    """The node list and a pod list of a folder."""
    return Trace(
        tuple(
            NodeClass(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]) * 1000, row["model"])
            for row in trace_rows(folder / "openb_node_list_all_node.csv.gz")
        ),
        tuple(
            Shape(
                int(row["cpu_milli"]),
                int(row["memory_mib"]),
                int(row["num_gpu"] or 0) * int(row["gpu_milli"] or 0),
                tuple(sorted(set(filter(None, (row.get("gpu_spec") or "").split("|"))))),
            )
            for row in trace_rows(folder / f"openb_pod_list_{pod_list}.csv.gz")
        ),
    )


def trace_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a list, by the names of its columns."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def drawn_trace(nodes: int, pods: int, seed: int) -> Trace:
    """A small cluster of the trace's kind."""
    rng = random.Random(seed)
    classes = (
        NodeClass(96_000, 393_216, 8000, "G2"),
        NodeClass(104_000, 524_288, 2000, "T4"),
        NodeClass(32_000, 262_144, 0, ""),
    )
    shapes = (
        Shape(3_152, 5_600, 810),
        Shape(11_400, 48_128, 1000),
        Shape(11_908, 47_104, 470),
        Shape(32_000, 49_152, 0),
        Shape(12_500, 57_344, 0),
        Shape(8_000, 30_517, 470, ("T4",)),
        Shape(64_000, 200_000, 8000),
    )
    weights = (8, 8, 4, 4, 4, 3, 2)
    return Trace(tuple(rng.choices(classes, (5, 3, 2), k=nodes)), tuple(rng.choices(shapes, weights, k=pods)))


# -- the bound ---------------------------------------------------------------------------------------


def upper_bound(trace: Trace, *, of_gpus: bool) -> float:
    """No placement holds more GPUs (or pods) than this: the program over classes and shapes, relaxed."""
    classes, shapes = Counter(trace.nodes), Counter(trace.pods)
    program = highspy.Highs()  # type: ignore[no-untyped-call] # its stubs leave the constructor out
    program.setOptionValue("output_flag", False)  # noqa: FBT003 - the library's signature
    placed = {
        (shape, node): program.addVariable(0, min(count, MOST_PODS * nodes))
        for shape, count in shapes.items()
        for node, nodes in classes.items()
        if shape.fits(node)
    }
    for shape, count in shapes.items():
        mine = [column for (each, _), column in placed.items() if each == shape]
        if mine:
            program.addConstr(program.qsum(mine) <= count)
    for node, nodes in classes.items():
        here = [(shape, column) for (shape, each), column in placed.items() if each == node]
        for room, amount in (
            (node.cpu, lambda shape: shape.cpu),
            (node.memory, lambda shape: shape.memory),
            (node.gpu, lambda shape: shape.gpu),
            (MOST_PODS, lambda _: 1),
        ):
            terms = [column * amount(shape) for shape, column in here if amount(shape)]
            if terms:
                program.addConstr(program.qsum(terms) <= room * nodes)
    worth = [
        column * (shape.gpu / 1000 if of_gpus else 1)
        for (shape, _), column in placed.items()
        if shape.gpu or not of_gpus
    ]
    program.maximize(program.qsum(worth))
    return float(program.getObjectiveValue())


# -- the cluster -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stage:
    """What holds after a stage.

    Attributes:
        name: Of the stage.
        pods: Placed.
        gpus: That they hold.
        moves: Made so far.
        seconds: Of CPU time, in this stage.
    """

    name: str
    pods: int
    gpus: float
    moves: int
    seconds: float


@dataclass(slots=True)
class Experiment:
    """The cluster, its pending pods and its scheduler."""

    trace: Trace
    seed: int = 1
    search: float = 60.0
    moves: int = 0
    stages: list[Stage] = field(default_factory=list)
    cluster: Cluster = field(default_factory=Cluster)
    pending: dict[str, PodInfo] = field(default_factory=dict)
    scheduler: ProfileScheduler = field(init=False)

    def __post_init__(self) -> None:
        for number, node in enumerate(self.trace.nodes):
            self.cluster.set_node(
                a_node(
                    f"node-{number:04}",
                    cpu=f"{node.cpu}m",
                    memory=f"{node.memory}Mi",
                    labels={"kubernetes.io/hostname": f"node-{number:04}", MODEL: node.model},
                    allocatable={GPU: node.gpu} if node.gpu else {},
                )
            )
        defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        self.scheduler = ProfileScheduler(
            build_profile(ProfileConfig(SCHEDULER), Registry(PLUGINS), defaults),
            self.cluster,
            choose=random.Random(self.seed).randrange,
        )

    def submit(self) -> None:
        """All pods in order, each tried once."""
        kinds = {shape: number for number, shape in enumerate(dict.fromkeys(self.trace.pods))}
        for number, shape in enumerate(self.trace.pods):
            pod = a_pod(
                f"pod-{number:04}",
                owner=f"ReplicaSet/w{kinds[shape]}",
                cpu=f"{shape.cpu}m",
                memory=f"{shape.memory}Mi",
                requests={GPU: shape.gpu} if shape.gpu else {},
                affinity=on_models(shape.models) if shape.models else None,
            )
            self.pending[pod.uid] = self.cluster.templates.info(pod)
        self.place_pending()

    def place_pending(self) -> None:
        """Try every pending pod."""
        for uid, pod in list(self.pending.items()):
            decision = schedule(self.scheduler, pod)
            if decision.outcome is AttemptOutcome.SCHEDULED:
                self._place(uid, decision.node)

    def _place(self, uid: str, node: str) -> None:
        pod = self.pending.pop(uid).pod
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        running = msgspec.structs.replace(pod, spec=spec, status=PodStatus(phase="Running"))
        self.cluster.place(self.cluster.templates.info(running), node)

    def run(self, strategies: Sequence[Strategy], planner: Planner) -> int:
        """One cycle: plan, make the moves, place who room was made for, then who fits; the moves made."""
        evictor = EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 0}, "evictor")
        rebalancing = RebalancingConfig(
            strategies=strategies,
            evictors=(evictor,),
            profiles={SCHEDULER: self.scheduler.profile},
            limits=Limits(per_workload=NO_CEILING),
            planner=planner,
            goal=Goal(seconds=self.search),
        )
        made = make_plan(rebalancing, self.cluster, PlanningContext(NOW, unplaced=self.pending.values()))
        if made.failures:
            raise RuntimeError(str(made.failures[0]))
        ends = {move.bundle: position for position, move in enumerate(made.moves)}
        for position, move in enumerate(made.moves):
            self.cluster.displace(move.pod.uid)
            fresh = replacement_of(move.pod, self.cluster)
            if move.target not in self.scheduler.rank(fresh).nodes:
                raise RuntimeError(f"{move.target} does not take {move.pod.key}")
            self.cluster.place(_arrived(move.pod, self.cluster, move.target), move.target)
            if move.beneficiary is not None and ends[move.bundle] == position:
                pod, node = move.beneficiary.pod, move.beneficiary.node
                if node not in self.scheduler.rank(pod).nodes:
                    raise RuntimeError(f"{node} does not take {pod.key}, for which room was made")
                self._place(pod.uid, node)
        self.place_pending()
        validate(self.cluster)
        return len(made.moves)

    def stage(
        self, name: str, work: Sequence[Strategy] | None = None, planner: Planner = Planner.PROVEN
    ) -> Stage:
        """Submit, or run strategies until they have nothing to propose; the planner Optimal once."""
        start = time.process_time()
        if work is None:
            self.submit()
        else:
            while moved := self.run(work, planner):
                self.moves += moved
                if planner is Planner.OPTIMAL:  # it would use its time again for the little that is left
                    break
        placed = self.cluster.pods.values()
        found = Stage(
            name,
            len(placed),
            sum(pod.requests.get(GPU, 0) for pod in placed) / 1000,
            self.moves,
            time.process_time() - start,
        )
        self.stages.append(found)
        return found


def _arrived(pod: PodInfo, cluster: Cluster, node: str) -> PodInfo:
    """The replacement as it runs on its node."""
    awaited = replacement_of(pod, cluster, node).pod
    return cluster.templates.info(
        msgspec.structs.replace(
            awaited,
            metadata=msgspec.structs.replace(awaited.metadata, uid=f"{pod.uid}+"),
            status=msgspec.structs.replace(awaited.status, phase="Running"),
        )
    )


def on_models(models: Sequence[str]) -> dict[str, object]:
    """An affinity that only nodes with one of these GPU models meet."""
    term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": list(models)}]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


BLOCK = {GPU: 1000, "cpu": "11400m", "memory": "48Gi"}
ROOM = ("MakeRoomForPending", {"maxMovesPerPod": 40})
STRATEGIES = (
    ROOM,
    ("DefragmentResource", {"block": BLOCK}),
    ROOM,
)


def main() -> None:
    """Print a line a stage, and the bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, help="The folder of the OpenB lists; a drawn cluster without.")
    parser.add_argument("--pod-list", default="gpuspec33")
    parser.add_argument("--nodes", type=int, default=60, help="Of the drawn cluster.")
    parser.add_argument("--pods", type=int, default=330, help="Of the drawn cluster.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--search", type=float, default=60.0, help="Seconds of Optimal's search.")
    given = parser.parse_args()

    trace = (
        drawn_trace(given.nodes, given.pods, given.seed)
        if given.trace is None
        else read_trace(given.trace, given.pod_list)
    )
    experiment = carry_out(trace, given.seed, given.search)
    Console(width=110).print(a_table(trace, experiment))


def carry_out(trace: Trace, seed: int, search: float) -> Experiment:
    """The scheduler alone, then each strategy until it has nothing to propose, then the optimiser."""
    experiment = Experiment(trace, seed, search)
    registry = StrategyRegistry(IN_TREE)
    experiment.stage("the scheduler alone")
    for name, args in STRATEGIES:
        experiment.stage(f"then {name}", [registry.build(name, args, name)])
    name, args = ROOM
    experiment.stage("then the planner Optimal", [registry.build(name, args, name)], Planner.OPTIMAL)
    return experiment


def a_table(trace: Trace, experiment: Experiment) -> Table:
    """A line a stage, then the bound."""
    bound = upper_bound(trace, of_gpus=True)
    table = Table(
        title=f"{len(trace.nodes):,} nodes, {len(trace.pods):,} pods, {trace.gpus:,.0f} GPUs requested"
    )
    for column in ("", "pods", "GPUs", "of the bound", "moves so far", "CPU s"):
        table.add_column(column, justify="right" if column else "left")
    for stage in experiment.stages:
        share = f"{stage.gpus / bound:.1%}"
        figures = (f"{stage.pods:,}", f"{stage.gpus:,.1f}", share, f"{stage.moves:,}", f"{stage.seconds:.1f}")
        table.add_row(stage.name, *figures)
    table.add_row(
        "no more than", f"{upper_bound(trace, of_gpus=False):,.0f}", f"{bound:,.1f}", "100 %", "", ""
    )
    return table


if __name__ == "__main__":
    main()
