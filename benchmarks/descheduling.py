"""Measures a rebalancing cycle of whole processes, ours and descheduler's, on one API server.

    make bench-descheduling ARGS="--programs FOLDER --nodes 1000 --pods 20000"

FOLDER has kube-apiserver, descheduler, and etcd unless that is on the PATH. Nodes and pods are those of
benchmarks/looking_ahead.py: unevenly spread, a tenth of the applications each with a spread constraint, an
anti-affinity, a node selector; six strategies, at most ten moves a cycle. Ours runs in mode DryRun;
descheduler evicts its ten, for its own dry run copies the whole cluster first. One process runs at a time.
Each is started and left alone until its first cycle is over and it is idle; what the following cycles need is
the CPU time between two moments of idleness, divided by the number of cycles in between.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from contestants import Contestant, Running, ours
from control_plane import control_plane, program
from looking_ahead import node_documents, pod_documents
from output import append

from load import CRDS, all_of
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session, connected
from rebalancing import STRATEGIES

#: Seconds between two looks at a process, and of rest after which it counts as idle.
LOOK_S, IDLE_S = 0.5, 3.0
#: CPU seconds in IDLE_S below which a process is idle: watches and leases go on.
RESTING_CPU_S = 0.15
#: At most so many moves a cycle.
MOVES = 10
#: Strategies that descheduler calls at its extension point "balance"; the others are called at "deschedule".
BALANCE = ("RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint", "LowNodeUtilization")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process needed.

    Attributes:
        start_cpu_s: CPU seconds until it was idle after its first cycle.
        cycle_cpu_s: CPU seconds a cycle afterwards.
        cycles: Cycles that were counted for it.
        peak_mib: Peak resident memory, MiB.
    """

    start_cpu_s: float
    cycle_cpu_s: float
    cycles: int
    peak_mib: float


def policy(interval_s: int) -> dict[str, Any]:
    """Ours: six strategies on a schedule, nothing is evicted."""
    strategies = [{"name": name, "args": args} for name, args in STRATEGIES]
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "benchmark"},
        "spec": {
            "scheduling": {"schedulerName": "plimsoll"},
            "rebalancing": {
                "mode": "DryRun",
                "schedule": {"intervalSeconds": interval_s},
                "limits": {"total": MOVES},
                "strategies": strategies,
            },
        },
    }


def descheduler_policy(node_fit: bool) -> dict[str, Any]:
    """The same strategies in descheduler's words."""
    names = [name for name, _ in STRATEGIES]
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "maxNoOfPodsToEvictTotal": MOVES,
        "profiles": [
            {
                "name": "benchmark",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {"nodeFit": node_fit}},
                    *({"name": name, "args": args} for name, args in STRATEGIES),
                ],
                "plugins": {
                    "balance": {"enabled": [name for name in names if name in BALANCE]},
                    "deschedule": {"enabled": [name for name in names if name not in BALANCE]},
                },
            }
        ],
    }


async def fill(session: Session, nodes: int, pods: int, seed: int) -> None:
    """Create the namespaces, nodes and pods; a pod is on its node from the beginning."""

    async def create(path: str, document: Mapping[str, Any]) -> None:
        await session.request("POST", path, document)

    for number in range(50):
        await create("/api/v1/namespaces", {"metadata": {"name": f"ns{number}"}})
    those = list(node_documents(nodes))
    await all_of(lambda number: create("/api/v1/nodes", those[number]), range(nodes))
    waiting = list(pod_documents(nodes, pods, seed))

    async def place(number: int) -> None:
        pod = waiting[number]
        await create(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

    await all_of(place, range(pods))


async def install(session: Session, interval_s: int) -> None:
    """Our definitions, and the policy as soon as the server serves it."""
    for file in sorted(CRDS.glob("*.yaml")):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await session.request("POST", path, yaml.safe_load(file.read_text(encoding="utf-8")))
    for left in reversed(range(60)):
        try:
            await session.request(
                "POST", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies", policy(interval_s)
            )
        except APIError:
            if not left:
                raise
            await asyncio.sleep(0.5)
        else:
            return


def measured(contestant: Contestant, log: Path, interval_s: int, cycles: int, patience_s: float) -> Cost:
    """Start a process, wait for its first cycle, weigh those that follow, end it.

    Raises:
        RuntimeError: If it ends by itself, or is not idle in time.
    """
    running = Running(contestant, log)
    try:
        start = idle_cpu_s(running, patience_s)
        began = time.monotonic()
        while time.monotonic() < began + cycles * interval_s:
            time.sleep(LOOK_S)
        end = idle_cpu_s(running, patience_s)
        counted = round((time.monotonic() - began) / interval_s)
        return Cost(start, (end - start) / counted, counted, running.peak_mib())
    finally:
        running.stop()


def idle_cpu_s(running: Running, patience_s: float) -> float:
    """CPU seconds once the process has needed almost none for a while.

    Raises:
        RuntimeError: If it ends by itself, or is not idle in time.
    """
    looks = [running.cpu_s()]
    deadline = time.monotonic() + patience_s
    while running.is_alive() and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        looks.append(running.cpu_s())
        before = looks[-int(IDLE_S / LOOK_S) :][0]
        if looks[-1] > 1 and len(looks) > IDLE_S / LOOK_S and looks[-1] - before < RESTING_CPU_S:
            return looks[-1]
    raise RuntimeError(f"{running.contestant.label} is not idle: {running.said()}")


async def main() -> None:
    """Read the command line, fill a cluster, weigh both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=Path, required=True, help="of kube-apiserver and descheduler")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=int, default=30, help="seconds from cycle to cycle")
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--patience", type=float, default=300.0, help="seconds until a process is idle")
    parser.add_argument("--node-fit", action="store_true", help="of descheduler; ours always proves")
    parser.add_argument("--output", type=Path, help="append each result as a line of JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with control_plane(given.programs, folder) as kubeconfig:
            async with connected(kubeconfig) as session:
                await fill(session, given.nodes, given.pods, given.seed)
                await install(session, given.interval)
            theirs = folder / "descheduler.yaml"
            theirs.write_text(yaml.safe_dump(descheduler_policy(given.node_fit)), encoding="utf-8")
            descheduler = (
                program(given.programs, "descheduler"),
                f"--kubeconfig={kubeconfig}",
                f"--policy-config-file={theirs}",
                f"--descheduling-interval={given.interval}s",
                "--secure-port=0",
            )
            for contestant in (
                ours(kubeconfig, "plimsoll"),
                Contestant("descheduler", "", descheduler),
            ):
                log = folder / f"{contestant.label}.log"
                cost = await asyncio.to_thread(
                    measured, contestant, log, given.interval, given.cycles, given.patience
                )
                fits = ", nodeFit" if given.node_fit and contestant.label != "plimsoll" else ""
                label = contestant.label + fits
                print(
                    f"{label:24} {cost.start_cpu_s:7.2f} s CPU to the end of the first cycle, "
                    f"{cost.cycle_cpu_s:7.2f} a cycle ({cost.cycles}), {cost.peak_mib:6.0f} MiB",
                    flush=True,
                )
                append(
                    given.output,
                    nodes=given.nodes,
                    pods=given.pods,
                    process=label,
                    start_cpu_s=cost.start_cpu_s,
                    cycle_cpu_s=cost.cycle_cpu_s,
                    peak_mib=cost.peak_mib,
                )


if __name__ == "__main__":
    asyncio.run(main())
