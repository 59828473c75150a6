"""Measures how long pods wait for their node while a plan is made, and while none is.

    python benchmarks/during_a_plan.py [--nodes 5000] [--pods 100000] [--rate 30] [--seconds 20] [--rounds 2]

This process is the API server (the development cluster's) of a large cluster, and creates pods at a steady
rate. ``plimsoll run``, a process of its own, binds them. In every second phase a policy rebalances in mode
DryRun, run after run: seven strategies, which want most of the pods elsewhere, and no node that takes them,
so that every candidate is judged, refused, and nothing is written. Phases alternate, and each begins when the
operator is idle, or its plan under way.

Each row: milliseconds from a pod's creation to the write that binds it; by the operator's own metrics, which
decisions and which requests 99 of 100 were not slower than, as a bucket's bound; CPU seconds of the operator
and of processes that it started for each second of the phase, its largest memory, and plans that ended.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from child_processes import cpu_s, free_port, process
from output import append
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from startup import CRDS, ask

from roadstead.assembly import built_in_api, extended_server
from roadstead.cluster import kubeconfig, new_token
from roadstead.kubelets.nodes import make_node
from roadstead.store.api import Api

NAME, POLICIES, ZONE = "during", "schedulingpolicies.plimsoll.dev", "topology.kubernetes.io/zone"

#: Pods of one application, and of the first applications that ask for something special.
REPLICAS = 20

#: Metrics of the operator: deciding on a pod that gets a node, and a request until the server's answer.
DECISION = "plimsoll_scheduler_scheduling_algorithm_duration_seconds"
REQUEST = "plimsoll_rest_client_request_duration_seconds"

#: CPU seconds after which an operator that was idle has a plan under way.
PLANNING_S = 1.0

UTILISATION = {"thresholds": {"cpu": 20, "pods": 20}, "targetThresholds": {"cpu": 50, "pods": 50}}
STRATEGIES: list[dict[str, Any]] = [
    {"name": "RemovePodsViolatingNodeTaints"},
    {
        "name": "RemovePodsViolatingNodeAffinity",
        "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    },
    {"name": "RemovePodsViolatingInterPodAntiAffinity"},
    {"name": "RemoveDuplicates"},
    {"name": "RemovePodsViolatingTopologySpreadConstraint"},
    {"name": "LowNodeUtilization", "args": UTILISATION},
    {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 60}},
]
REBALANCING: dict[str, Any] = {
    "mode": "DryRun",
    "schedule": {"intervalSeconds": 1},
    "strategies": STRATEGIES,
    "evictor": {"nodeSelector": "takes=nothing"},
    "limits": {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"},
}


def a_pod(name: str, app: int, node: str = "") -> dict[str, Any]:
    """A pod of an application; one application in ten spreads over zones, one is anti-affine."""
    labels = {"app": f"app-{app}"}
    chosen = {"labelSelector": {"matchLabels": labels}}
    spec: dict[str, Any] = {
        "schedulerName": NAME,
        "containers": [
            {
                "name": "main",
                "image": f"registry.example/app-{app % 100}:1",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            }
        ],
    }
    if app % 10 == 1:
        zones = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [zones | chosen]
    elif app % 10 == 2:
        apart = {"topologyKey": "kubernetes.io/hostname", **chosen}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        spec["affinity"] = {"podAntiAffinity": required}
    if node:
        spec["nodeName"] = node
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{app}", "uid": f"uid-{app}"}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"metadata": metadata | {"ownerReferences": [owner | {"controller": True}]}, "spec": spec}


def furnish(api: Api, nodes: int, pods: int) -> None:
    """Definitions, a policy that places, nodes, and pods that were thrown on every second of them."""
    for file in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            api.create("customresourcedefinitions.apiextensions.k8s.io", document)
    api.create(POLICIES, {"metadata": {"name": NAME}, "spec": {"scheduling": {"schedulerName": NAME}}})
    for number in range(nodes):
        made = make_node(f"node-{number:05}", cpu="32", memory="128Gi", zone=f"zone-{'abc'[number % 3]}")
        api.create("nodes", made)
    for number in range(pods):
        app, copy = divmod(number, REPLICAS)
        node = f"node-{(app * 7 + copy // 4 * 6) % nodes:05}"
        api.create("pods", a_pod(f"pod-{number:06}", app, node))


@dataclass(slots=True)
class Usage:
    """What a process and those that it started have used (Linux)."""

    own_s: float
    others_s: float

    @classmethod
    def of(cls, pid: int) -> Usage:
        """So far."""
        own, ended = cpu_s(pid)
        living = sum(sum(cpu_s(child)) for child in children(pid))
        return cls(own, ended + living)


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    found: list[int] = []
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, each.read_text().split())
    return found


def memory_mib(pid: int) -> float:
    """Private and shared memory of a process and its children, each page counted once (Linux)."""
    total = 0
    for each in (pid, *children(pid)):
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


@dataclass(slots=True)
class Phase:
    """One stretch of time, with plans or without."""

    with_plans: bool
    seconds: float = 0.0
    waits_ms: list[float] = field(default_factory=list)
    decision_ms: float = 0.0
    request_ms: float = 0.0
    own_s: float = 0.0
    others_s: float = 0.0
    memory_mib: float = 0.0
    plans: int = 0
    lost: int = 0


class Load:
    """Creates pods, and notes when they are bound."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._created: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._number, self._expected = 0, 0
        self._all_bound = asyncio.Event()
        api.subscribe("pods", self._see)

    def _see(self, _kind: str, pod: dict[str, Any], _before: dict[str, Any] | None) -> None:
        name = pod["metadata"]["name"]
        if name in self._created and name not in self._waits and pod["spec"].get("nodeName"):
            self._waits[name] = (time.perf_counter() - self._created[name]) * 1e3
            if len(self._waits) == self._expected:
                self._all_bound.set()

    async def run(self, phase: Phase, rate: float, seconds: float) -> None:
        """One phase; its pods are deleted at the end."""
        self._created.clear()
        self._waits.clear()
        self._all_bound.clear()
        self._expected = int(rate * seconds)
        begun = time.perf_counter()
        for turn in range(self._expected):
            await asyncio.sleep(max(0.0, begun + turn / rate - time.perf_counter()))
            self._number += 1
            name = f"arrival-{self._number:06}"
            self._created[name] = time.perf_counter()
            self._api.create("pods", a_pod(name, 1_000_000 + self._number % 10 * 10))
        phase.seconds = time.perf_counter() - begun
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                await self._all_bound.wait()
        phase.waits_ms = sorted(self._waits.values())
        phase.lost = len(self._created) - len(self._waits)
        for name in self._created:
            self._api.delete("pods", "default", name)


async def until(question: Callable[[], Awaitable[bool]], patience_s: float, what: str) -> None:
    """Wait for something that is asked twice a second."""
    deadline = time.monotonic() + patience_s
    while not await question():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain until {what}")
        await asyncio.sleep(0.5)


@dataclass(slots=True)
class Watched:
    """The operator as it looks from outside."""

    pid: int
    port: int

    async def leads(self) -> bool:
        """Whether it binds pods."""
        status, text = await asyncio.to_thread(ask, self.port, "/readyz", 30.0)
        return status == 200 and "leading as" in text

    def used_s(self) -> float:
        """CPU seconds so far."""
        usage = Usage.of(self.pid)
        return usage.own_s + usage.others_s

    async def has_used(self, seconds: float) -> bool:
        """Whether it has used so many CPU seconds."""
        return self.used_s() > seconds

    async def share(self, seconds: float = 2.0) -> float:
        """CPU seconds a second, for a while."""
        before = self.used_s()
        await asyncio.sleep(seconds)
        return (self.used_s() - before) / seconds

    async def is_idle(self) -> bool:
        """Whether it has nothing to do."""
        return await self.share() < 0.1

    async def metrics(self) -> dict[str, Metric]:
        """What it has measured of itself so far, keyed by name."""
        _, text = await asyncio.to_thread(ask, self.port, "/metrics", 30.0)
        return {each.name: each for each in text_string_to_metric_families(text)}


def plans(metrics: dict[str, Metric]) -> int:
    """Runs of policies that have ended."""
    samples = metrics["plimsoll_rebalancer_run_duration_seconds"].samples
    return sum(int(each.value) for each in samples if each.name.endswith("_count"))


def slowest_ms(name: str, before: dict[str, Metric], after: dict[str, Metric], share: float = 0.99) -> float:
    """The bound of the bucket up to which that share of a histogram's observations lies; POST of requests."""
    counts: dict[float, float] = {}
    for metrics, sign in ((after, 1), (before, -1)):
        for each in metrics[name].samples:
            if "le" in each.labels and each.labels.get("method", "POST") == "POST":
                bound = float(each.labels["le"])
                counts[bound] = counts.get(bound, 0.0) + sign * each.value
    most = max(counts.values(), default=0.0)
    return min((bound for bound, count in counts.items() if count >= share * most), default=0.0) * 1e3


async def measured(api: Api, watched: Watched, chosen: argparse.Namespace) -> list[Phase]:
    """All phases, in turn."""
    await until(watched.leads, 300, "the operator leads")
    load, phases = Load(api), list[Phase]()
    await load.run(Phase(with_plans=False), chosen.rate, 5)  # what is compiled and cached at first use
    for _ in range(chosen.rounds):
        for with_plans in (False, True):
            await until(watched.is_idle, 300, "the operator is idle")
            phase = Phase(with_plans)
            if with_plans:
                api.create(POLICIES, {"metadata": {"name": "plans"}, "spec": {"rebalancing": REBALANCING}})
                busy_s = watched.used_s() + PLANNING_S
                await until(partial(watched.has_used, busy_s), 120, "a plan is made")
            before, known = Usage.of(watched.pid), await watched.metrics()
            weighing = asyncio.create_task(weigh(watched.pid, phase))
            await load.run(phase, chosen.rate, chosen.seconds)
            weighing.cancel()
            after = Usage.of(watched.pid)
            phase.own_s, phase.others_s = after.own_s - before.own_s, after.others_s - before.others_s
            metrics = await watched.metrics()
            phase.plans = plans(metrics) - plans(known)
            phase.decision_ms = slowest_ms(DECISION, known, metrics)
            phase.request_ms = slowest_ms(REQUEST, known, metrics)
            if with_plans:
                api.delete(POLICIES, None, "plans")
            phases.append(phase)
            print(row(phase), flush=True)
            waits = sorted(phase.waits_ms)
            append(
                chosen.output,
                nodes=chosen.nodes,
                pods=chosen.pods,
                plan="yes" if with_plans else "no",
                p50_ms=quantile(waits, 0.5),
                p99_ms=quantile(waits, 0.99),
                decision_ms=phase.decision_ms,
                request_ms=phase.request_ms,
                own_cores=phase.own_s / phase.seconds,
                other_cores=phase.others_s / phase.seconds,
                memory_mib=phase.memory_mib,
            )
    return phases


async def weigh(pid: int, phase: Phase) -> None:
    """Note the largest memory."""
    while True:
        phase.memory_mib = max(phase.memory_mib, await asyncio.to_thread(memory_mib, pid))
        await asyncio.sleep(2.0)


def quantile(sorted_ms: list[float], share: float) -> float:
    """The value below which that share of them is."""
    return sorted_ms[min(int(len(sorted_ms) * share), len(sorted_ms) - 1)] if sorted_ms else 0.0


def row(phase: Phase) -> str:
    """A line of the table."""
    waits = phase.waits_ms
    figures = [quantile(waits, share) for share in (0.5, 0.9, 0.99, 1.0)]
    cells = [
        "yes" if phase.with_plans else "no",
        str(len(waits)),
        *(f"{each:.1f}" for each in (*figures, phase.decision_ms, phase.request_ms)),
        f"{phase.own_s / phase.seconds:.2f}",
        f"{phase.others_s / phase.seconds:.2f}",
        f"{phase.memory_mib:.0f}",
        str(phase.plans),
        f"{os.getloadavg()[0]:.1f}",
    ]
    return f"| {' | '.join(cells)} |" + (f" {phase.lost} were not bound" if phase.lost else "")


async def run(chosen: argparse.Namespace) -> int:
    """Serve, start the operator, measure, end both."""
    ages = [timedelta(hours=1)]  # of what is created; so pods that are there from the start are not new
    api = built_in_api(lambda: datetime.now(UTC) - ages[-1])
    token = new_token()
    server = extended_server(api, token)
    furnish(api, chosen.nodes, chosen.pods)
    gc.collect()
    gc.freeze()  # else pods wait while this process, the API server, looks for garbage among all objects
    ages.append(timedelta())
    url = await server.start()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kubeconfig"
        await asyncio.to_thread(file.write_text, kubeconfig(url, token))
        command = [sys.executable, "-m", "plimsoll", "run", "--kubeconfig", str(file), "--health-port", "0"]
        command += ["--bind-address", "127.0.0.1", "--metrics-port", str(port), "--log-format", "text"]
        try:
            with process(*command, *chosen.operator, log=chosen.log) as operator:
                print("| plan | pods | p50, ms | p90 | p99 | most | p99 of decisions | of requests", end="")
                print(" | CPU of the operator | of others | memory, MiB | plans ended | load |", flush=True)
                print("| --- " + "| ---: " * 12 + "|", flush=True)
                phases = await measured(api, Watched(operator.pid, port), chosen)
        finally:
            await server.stop()
    apart, during = (
        sorted(wait for each in phases if each.with_plans is kind for wait in each.waits_ms)
        for kind in (False, True)
    )
    ratios = [
        f"p{share * 100:.0f} {quantile(during, share):.1f} instead of {quantile(apart, share):.1f} ms,"
        f" {quantile(during, share) / quantile(apart, share):.2f} times"
        for share in (0.5, 0.9, 0.99)
    ]
    print(f"\n{'; '.join(ratios)}; {os.cpu_count()} CPUs, {chosen.nodes} nodes, {chosen.pods} pods,", end=" ")
    print(f"{chosen.rate:g} pods a second, Python {platform.python_version()}")
    return 0


def main() -> int:
    """Read the command line and measure."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=30.0, help="pods that arrive in a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a phase")
    parser.add_argument("--rounds", type=int, default=2, help="phases without plans, and as many with")
    parser.add_argument("--output", type=Path, help="append each phase as a line of JSON")
    parser.add_argument("--log", type=Path, help="keep the operator's log in this file")
    parser.add_argument("operator", nargs="*", help="further flags of plimsoll run, after --")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the operator ends with this one
    return asyncio.run(run(chosen))


if __name__ == "__main__":
    sys.exit(main())
