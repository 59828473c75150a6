"""Runs two replicas under load and checks that the lease is kept, probes succeed and memory is flat.

    python benchmarks/soak.py [--minutes 30] [--nodes 500] [--load 2]

The development cluster, with controllers and kubelets, holds Deployments. Each second two of their pods are
deleted, which makes ten pod events. A policy rebalances every 30 seconds; as often another node gets a taint
that its pods do not tolerate. Other processes compute meanwhile. ``/readyz`` of both replicas is asked each
second, and late renewals are counted. The exit status is 1 when a replica ended or lost the lease, a probe
failed or took a second, or memory grew by a tenth since a third of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from child_processes import free_port, process
from startup import CRDS, ask, computing

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import MERGE_PATCH, Session, connected

NAME, APPS, REPLICAS, EVERY_S, DELETIONS, GROWTH = "soak", 50, 30, 30, 2, 0.1
PODS, DEPLOYMENTS = f"/api/v1/namespaces/{NAME}/pods", f"/apis/apps/v1/namespaces/{NAME}/deployments"
POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"
BOUND = ("plimsoll_scheduler_schedule_attempts_total{", 'result="scheduled"')
EVICTED = ("plimsoll_rebalancer_records_total{", 'phase="Evicted"')
EVENTS = ("plimsoll_watch_events_total{", 'resource="pods"')
STRATEGIES = [{"name": "RemovePodsViolatingNodeTaints"}]
REBALANCING = {"mode": "Enforce", "schedule": {"intervalSeconds": EVERY_S}, "strategies": STRATEGIES}
POLICY = {"scheduling": {"schedulerName": NAME}, "rebalancing": REBALANCING}
CONTAINER = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}


@dataclass(slots=True)
class Replica:
    """One operator process, as it looks from outside."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    waits_s: list[float] = field(default_factory=lambda: [0.0])
    failed: int = 0
    memory_mb: list[float] = field(default_factory=list)

    async def probe(self) -> None:
        """Ask whether it is ready, each second."""
        while True:
            began = time.monotonic()
            status, _ = await asyncio.to_thread(ask, self.port, "/readyz", 30.0)
            self.waits_s.append(time.monotonic() - began)
            self.failed += status != 200
            await asyncio.sleep(max(0.0, 1.0 - self.waits_s[-1]))

    def weigh(self) -> str:
        """Note the memory that it occupies (Linux); in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        self.memory_mb.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
        return f"{self.memory_mb[-1]:.0f}"

    def problems(self) -> list[str]:
        """What was wrong."""
        grown = self.memory_mb[-1] / max(1.0, self.memory_mb[len(self.memory_mb) // 3]) - 1
        slowest = max(self.waits_s)
        print(f"port {self.port}: longest probe {slowest:.2f} s, memory {grown:+.1%}")
        found = {
            "it has ended": self.process.poll() is not None,
            "it lost the lease": "leader election lost" in self.log.read_text(errors="replace"),
            f"{self.failed} probes failed": self.failed > 0,
            f"a probe took {slowest:.2f} s": slowest > 1,
            f"memory grew by {grown:.1%}": grown > GROWTH,
        }
        return [f"port {self.port}: {problem}" for problem, is_so in found.items() if is_so]


async def furnish(session: Session) -> None:
    """Create the definitions, a policy, and Deployments."""
    for file in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(await asyncio.to_thread(file.read_text, encoding="utf-8")):
            await session.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
    await session.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAME}})
    await session.request("POST", POLICIES, {"metadata": {"name": NAME}, "spec": POLICY})
    for app in (f"app-{number}" for number in range(APPS)):
        pod = {"schedulerName": NAME, "containers": [CONTAINER]}
        template = {"metadata": {"labels": {"app": app}}, "spec": pod}
        chosen = {"selector": {"matchLabels": {"app": app}}, "replicas": REPLICAS, "template": template}
        await session.request("POST", DEPLOYMENTS, {"metadata": {"name": app}, "spec": chosen})


async def churn(session: Session) -> None:
    """Delete pods each second; every half minute another node drives its pods away."""
    rng, tainted, names = random.Random(1), "node-0001", list[str]()
    for second in range(sys.maxsize):
        ends = time.monotonic() + 1.0
        if second % EVERY_S == 0:
            pods = (await session.object("GET", PODS))["items"]
            rng.shuffle(names := [each["metadata"]["name"] for each in pods])
            nodes = [each["spec"].get("nodeName", tainted) for each in pods]
            free, tainted = tainted, rng.choice(nodes or [tainted])
            for node, taints in ((free, []), (tainted, [{"key": NAME, "effect": "NoSchedule"}])):
                body = {"spec": {"taints": taints}}
                await session.request("PATCH", f"/api/v1/nodes/{node}", body, content_type=MERGE_PATCH)
        for name in [names.pop() for _ in range(min(DELETIONS, len(names)))]:
            with suppress(APIError):
                await session.request("DELETE", f"{PODS}/{name}")
        await asyncio.sleep(max(0.0, ends - time.monotonic()))


async def watch(session: Session, replicas: list[Replica], minutes: int) -> list[str]:
    """Print a row a minute; who led, in turn."""
    holders, before, asked = list[str](), [0.0] * 3, 0
    print("| minute | bound | evicted | events/s | leader changes | probe, s | failed | late | MB | load |")
    print("| ---: " * 10 + "|", flush=True)
    for minute in range(1, minutes + 1):
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            with suppress(APIError):
                holder = (await session.object("GET", LEASE))["spec"]["holderIdentity"]
                holders += [holder] * (holder not in holders[-1:])
            await asyncio.sleep(2)
        page = "".join([(await asyncio.to_thread(ask, each.port, "/metrics", 30.0))[1] for each in replicas])
        now = [total(page, *metric) for metric in (BOUND, EVICTED, EVENTS)]
        bound, evicted, events = (new - old for new, old in zip(now, before, strict=True))
        slowest = max(max(each.waits_s[asked:]) for each in replicas)
        before, asked = now, min(len(each.waits_s) for each in replicas) - 1
        said = "".join(each.log.read_text(errors="replace") for each in replicas)
        cells = [f"{minute}", f"{bound:.0f}", f"{evicted:.0f}", f"{events / 60 / len(replicas):.1f}"]
        cells += [f"{len(holders) - 1}", f"{slowest:.2f}", f"{sum(each.failed for each in replicas)}"]
        cells += [f"{said.count('lease renewed late')}", " + ".join(each.weigh() for each in replicas)]
        print("|", " | ".join(cells), f"| {os.getloadavg()[0]:.0f} |", flush=True)
    return holders


def total(metrics: str, name: str, label: str) -> float:
    """The sum of a metric's samples that bear a label."""
    lines = (line for line in metrics.splitlines() if line.startswith(name) and label in line)
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def soak(chosen: argparse.Namespace, file: Path, replicas: list[Replica]) -> list[str]:
    """Furnish the cluster, change it, and watch; what was wrong."""
    async with connected(file) as session:
        await furnish(session)
        tasks = [asyncio.create_task(each) for each in (churn(session), *(one.probe() for one in replicas))]
        wrong = [f"{holder} took over" for holder in (await watch(session, replicas, chosen.minutes))[1:]]
        wrong += [f"a task of this benchmark has ended: {each!r}" for each in tasks if each.done()]
        for task in tasks:
            task.cancel()
    return wrong + [problem for each in replicas for problem in each.problems()]


def wait_for(question: Callable[[], bool]) -> None:
    """Wait until something is so, at most five minutes."""
    ends = time.monotonic() + 300
    while not question():
        time.sleep(0.5)
        assert time.monotonic() < ends, "the cluster or a replica does not start"


def main() -> int:
    """Read the command line and soak."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--load", type=int, default=2, help="processes that compute meanwhile")
    parser.add_argument("--logs", type=Path, help="an existing folder for the logs")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        file, logs, replicas = Path(temporary) / "kubeconfig", chosen.logs or Path(temporary), list[Replica]()
        plimsoll, options = (sys.executable, "-m", "plimsoll"), ("--kubeconfig", str(file))
        stack.enter_context(
            process(sys.executable, "-m", "roadstead", *options, "--nodes", str(chosen.nodes))
        )
        wait_for(file.exists)
        for number in range(2):
            port, log = free_port(), logs / f"replica-{number}.log"
            command: tuple[str, ...] = (
                *plimsoll,
                "run",
                *options,
                "--bind-address",
                "127.0.0.1",
                "--log-format",
                "text",
            )
            command += ("--metrics-port", str(port), "--health-port", "0")
            replicas.append(Replica(stack.enter_context(process(*command, log=log)), port, log))
        wait_for(lambda: all(ask(each.port, "/readyz", 30.0)[0] == 200 for each in replicas))
        stack.enter_context(computing(chosen.load, chosen.minutes * 60 + 600))
        wrong = asyncio.run(soak(chosen, file, replicas))
    print(f"{chosen.minutes} minutes:", "; ".join(wrong) or "lease kept, probes answered, memory flat")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
