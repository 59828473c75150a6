r"""Pods bound per second, latency, CPU and memory of whole schedulers, end to end, against any API server.

    make bench-e2e ARGS='--nodes 1000 --families basic'                              # development cluster
    make bench-e2e ARGS='--nodes 1000,5000 --kubeconfig FILE'                        # yours
    make bench-e2e ARGS='--kubeconfig FILE --scheduler-command "kube-scheduler --config FILE"'
    make bench-e2e ARGS='--programs FOLDER'                    # a control plane and kube-scheduler from there

For each number of nodes and each family, and for each scheduler in turn: pods are put on nodes, pods are made
that wait, and only then the scheduler is started, so that it never waits for new pods. Measured are

* bound/s: from the scheduler's first write that a watch of the pods shows to the last of them bound;
* CPU s per 1,000 pods: of the scheduler's process, from that first write until it has become idle (events
  and what its watches bring back are part of it; reading the cluster at its start is not);
* p50 and p99: from a pod's appearance in the watch to its node's, with pods made at a fixed rate;
* alone: the same, p50, with pods made one at a time, each when the one before has its node;
* peak memory of the process, as the kernel saw it;
* the family *devices* (not among the defaults) needs the controller that makes claims from templates: pods
  whose claims it has made wait, each for one GPU; of pods that arrive its work is a part of the latency;
* writes/pod: requests of the scheduler that write, from its start until it is idle, by its own metrics: the
  bindings, the events, conditions of pods that fit nowhere, its lease;
* events that the API server has of them afterwards: a scheduler that drops some spares their cost.

What one bound pod costs, without start-up, before and after a change, three times in turn::

    python benchmarks/end_to_end --families basic --pods 20000 --per-node 35 --arriving 0 --pairs 3 \
        --variant before:PYTHONPATH=OTHER-TREE/operator --variant after

*ceiling* is a binder that decides nothing and watches nothing, in this process: two requests a pod, as every
scheduler must send. No scheduler on this machine and API server is faster.
"""

import argparse
import asyncio
import json
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from contestants import Contestant, Running, another, kube_scheduler, ours
from control_plane import api_server
from sightings import Sightings, watching

from load import NAME, UNSCHEDULABLE, WORKLOADS, Family, Load, a_pod, family
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import connected

#: Seconds between two looks at a scheduler's CPU; below this share of one core it is at rest.
REST_S, REST_SHARE = 2.0, 0.03

FAMILIES = (
    "basic",
    "spreading",
    "preferred-spreading",
    "affinity",
    "preferred-affinity",
    "anti-affinity",
    "preferred-anti-affinity",
    "preemption",
    "unschedulable",
)

POLICY = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": NAME},
    "spec": {"scheduling": {"schedulerName": NAME}},
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much, and how long at most.

    Attributes:
        nodes: Nodes.
        initial: Pods on nodes before, at most.
        pods: Pods that wait when the scheduler starts, at most.
        arriving: Pods made at a fixed rate, at most.
        rate: Of them, a second.
        alone: Pods made one at a time, at most.
        patience_s: Seconds a family takes at most.
        per_node: Pods of it at most, by node; 0: what the family says.
    """

    nodes: int
    initial: int
    pods: int
    arriving: int
    rate: float
    alone: int
    patience_s: float
    per_node: float


@dataclass(frozen=True, slots=True)
class Result:
    """One row; times in seconds, memory in MiB. Nothing is left out: pods that were not bound are counted."""

    nodes: int
    family: str
    scheduler: str
    ceiling_per_s: float
    pods: int
    unbound: int
    bound_per_s: float
    cpu_s_per_1000: float
    cpu_s_at_start: float
    started_s: float
    p50_s: float
    p99_s: float
    alone_s: float
    late: int
    peak_mib: float
    events: int
    writes_per_pod: float | None


async def rest(running: Running, events: Callable[[], Awaitable[int]], patience_s: float) -> float:
    """The CPU seconds of a process once it is idle and writes no more events, or when patience ends."""
    deadline = time.monotonic() + patience_s
    before, counted = running.cpu_s(), -1
    while time.monotonic() < deadline:
        await asyncio.sleep(REST_S)
        now = running.cpu_s()
        if now - before < REST_SHARE * REST_S:
            count = await events()
            if count == counted:
                return now
            counted = count  # idle, unless it waited for a busy server
        before = now
    return before


async def arrive(load: Load, what: Family, scheduler: str, count: int, rate: float) -> None:
    """Create pods at a fixed rate, whatever happens to those before."""
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            group.create_task(load.pod(a_pod(f"late-{number:06}", what.measured, scheduler, number % 10)))


def percentile(values: list[float], share: float) -> float:
    """Nearest rank; 0 of nothing."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


@dataclass(slots=True)
class Measurement:
    """One scheduler, one family."""

    load: Load
    what: Family
    contestant: Contestant
    scale: Scale
    log: Path
    ceiling_per_s: float = 0.0

    async def result(self) -> Result:
        """Prepare, start the scheduler, measure, end it."""
        load, what, scale = self.load, self.what, self.scale
        room = int(scale.nodes * (scale.per_node or what.most))
        waiting, alone = min(scale.pods, room * 2 // 3), min(scale.alone, room // 6)
        arriving = min(scale.arriving, room // 3 - alone)
        scheduler = self.contestant.scheduler_name
        for index, pattern in enumerate(what.initial):
            # Preemption needs a full cluster; elsewhere there is enough for the others to look at.
            most = scale.nodes if what.name == "preemption" else scale.initial
            count = min(most, int(scale.nodes * pattern["perNode"]))
            await load.pods(f"initial{index}", pattern, scheduler, count)
            self.ceiling_per_s = await load.bind(f"initial{index}", count, scale.nodes)
        if what.has_claims:
            await load.with_devices(scale.nodes)
        if what.churns:
            await load.pods("large", WORKLOADS["unschedulable"]["measured"], scheduler, UNSCHEDULABLE)
        async with watching(load.session, NAME, has_claims=what.has_claims) as sightings:
            await load.pods("pod", what.measured, scheduler, waiting)
            if what.has_claims:
                await load.devices.until_claimed()
            running = Running(self.contestant, self.log)
            churning = asyncio.create_task(load.churn(scheduler)) if what.churns else None
            try:
                return await self._measured(running, sightings, waiting, arriving, alone)
            finally:
                if churning is not None:
                    churning.cancel()
                    with suppress(asyncio.CancelledError):
                        await churning
                running.stop()

    async def _measured(
        self, running: Running, seen: Sightings, waiting: int, arriving: int, alone: int
    ) -> Result:
        """Let the scheduler bind what waits, then what arrives, then pods one at a time."""
        patience_s = self.scale.patience_s

        def bound(prefix: str, least: int) -> bool:
            return seen.bound_by_prefix[prefix] >= least or not running.is_alive()

        events = await self.load.events()
        began = time.perf_counter()
        await seen.until(lambda: seen.began is not None or not running.is_alive(), patience_s)
        at_start = running.cpu_s()
        await seen.until(lambda: bound("pod", waiting), patience_s)
        # A scheduler that is kept busy by pods that fit nowhere is never idle.
        done = running.cpu_s() if self.what.churns else await rest(running, self.load.events, 60)
        events = await self.load.events() - events
        writes = await asyncio.to_thread(running.writes)
        moments = seen.bound_of("pod")
        first = seen.began or began
        if not moments or not running.is_alive():
            raise RuntimeError(f"{running.contestant.label} does not bind: {running.said()}")
        await arrive(self.load, self.what, running.contestant.scheduler_name, arriving, self.scale.rate)
        await seen.until(lambda: bound("late", arriving), 30.0)
        waits = seen.waits_of("late")
        for number in range(alone):
            await self.load.pod(
                a_pod(f"alone-{number:06}", self.what.measured, self.contestant.scheduler_name, number % 10)
            )
            await seen.until(partial(bound, "alone", number + 1), 30.0)
        return Result(
            nodes=self.scale.nodes,
            family=self.what.name,
            scheduler=running.contestant.label,
            ceiling_per_s=round(self.ceiling_per_s, 1),
            pods=waiting,
            unbound=waiting - len(moments),
            bound_per_s=round((len(moments) - 1) / max(moments[-1] - first, 1e-9), 1),
            cpu_s_per_1000=round((done - at_start) / len(moments) * 1000, 3),
            cpu_s_at_start=round(at_start, 2),
            started_s=round(first - began, 2),
            p50_s=round(percentile(waits, 0.5), 4),
            p99_s=round(percentile(waits, 0.99), 4),
            alone_s=round(percentile(seen.waits_of("alone"), 0.5), 4),
            late=arriving - len(waits),
            peak_mib=round(running.peak_mib(), 1),
            events=events,
            writes_per_pod=None if writes is None else round(writes / len(moments), 3),
        )


COLUMNS = "nodes family scheduler pods bound/s CPU-s/1,000 p50-ms p99-ms alone-ms peak-MiB ceiling/s events"
COLUMNS += " writes/pod"
HEADER = f"| {COLUMNS.replace(' ', ' | ').replace('-', ' ')} |"


def row(result: Result) -> str:
    """A line of the table."""
    unbound = f" ({result.unbound} not bound)" if result.unbound else ""
    late = f" ({result.late} not bound)" if result.late else ""
    writes = "" if result.writes_per_pod is None else f"{result.writes_per_pod:.2f}"
    return (
        f"| {result.nodes:,} | {result.family} | {result.scheduler} | {result.pods:,}{unbound} "
        f"| {result.bound_per_s:,.0f} | {result.cpu_s_per_1000:.2f} | {1000 * result.p50_s:,.0f} "
        f"| {1000 * result.p99_s:,.0f}{late} | {1000 * result.alone_s:,.0f} "
        f"| {result.peak_mib:,.0f} | {result.ceiling_per_s:,.0f} | {result.events:,} | {writes} |"
    )


@contextmanager
def a_cluster(given: Path | None, programs: Path | None, folder: Path) -> Iterator[Path]:
    """The cluster that was named, one of given programs, or a development cluster without controllers."""
    if given is not None:
        yield given
        return
    with api_server(programs, folder) as kubeconfig:
        yield kubeconfig


async def compare(
    kubeconfig: Path,
    scales: Iterable[Scale],
    families: Iterable[str],
    contestants: Iterable[Contestant],
    folder: Path,
) -> AsyncIterator[Result]:
    """All rows, as they come; the cluster is as before afterwards."""
    async with connected(kubeconfig) as session:
        load, made = Load(session), 0
        await load.install()
        await load.clean(0)
        await load.install()
        with suppress(APIError):
            await session.request("POST", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies", POLICY)
        try:
            for scale in scales:
                await load.nodes(range(made, scale.nodes))
                made = max(made, scale.nodes)
                for name in families:
                    for contestant in contestants:
                        log = folder / f"{contestant.label}-{name}-{scale.nodes}.log"
                        yield await Measurement(load, family(name), contestant, scale, log).result()
                        await load.empty()
        finally:
            await load.clean(made)


async def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="1000", help="comma-separated, ascending")
    parser.add_argument("--families", default=",".join(FAMILIES), help="comma-separated: %(default)s")
    parser.add_argument("--initial", type=int, default=1000, help="pods on nodes before, at most")
    parser.add_argument("--pods", type=int, default=2000, help="pods that wait, at most")
    parser.add_argument("--arriving", type=int, default=300, help="pods for the latency, at most")
    parser.add_argument("--rate", type=float, default=50.0, help="of them, a second")
    parser.add_argument("--alone", type=int, default=50, help="pods one at a time, at most")
    parser.add_argument("--per-node", type=float, default=0.0, help="pods on a node; 0: the family's")
    parser.add_argument("--variant", action="append", help="of plimsoll: LABEL, or LABEL:NAME=VALUE ...")
    parser.add_argument("--pairs", type=int, default=1, help="measure all so many times, in turn")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds a measurement takes at most")
    parser.add_argument("--kubeconfig", type=Path, help="left out: a development cluster is started")
    parser.add_argument("--programs", type=Path, help="folder of etcd, kube-apiserver and kube-scheduler")
    parser.add_argument("--scheduler-command", help="another scheduler's, in the foreground, for comparison")
    parser.add_argument("--scheduler-name", default="default-scheduler", help="of the pods it serves")
    parser.add_argument("--only-other", action="store_true", help="do not measure plimsoll")
    parser.add_argument("--logs", type=Path, help="keep the schedulers' logs in this folder")
    parser.add_argument("--output", type=Path, help="append each result as a line of JSON")
    chosen = parser.parse_args()
    scales = [
        Scale(
            int(nodes),
            chosen.initial,
            chosen.pods,
            chosen.arriving,
            chosen.rate,
            chosen.alone,
            chosen.patience,
            chosen.per_node,
        )
        for nodes in chosen.nodes.split(",")
    ]
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}\n")
    print(HEADER)
    print("| ---: | --- | --- |" + " ---: |" * 10, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with a_cluster(chosen.kubeconfig, chosen.programs, folder) as kubeconfig:
            variants = [] if chosen.only_other else chosen.variant or ["plimsoll"]
            contestants = [ours(kubeconfig, NAME, each) for each in variants]
            if chosen.programs:
                contestants.append(kube_scheduler(chosen.programs, kubeconfig, folder))
            if chosen.scheduler_command:
                contestants.append(another(chosen.scheduler_command, chosen.scheduler_name))
            families = chosen.families.split(",")
            results = compare(kubeconfig, scales, families, contestants * chosen.pairs, folder)
            async for result in results:
                print(row(result), flush=True)
                if chosen.output:
                    with chosen.output.open("a") as sink:
                        server = "kube-apiserver" if chosen.kubeconfig or chosen.programs else "roadstead"
                        sink.write(json.dumps({**asdict(result), "server": server}) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
