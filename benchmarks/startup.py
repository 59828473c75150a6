"""Starts the operator repeatedly in a large cluster under CPU load.

    python benchmarks/startup.py [--nodes 5000] [--pods 100000] [--starts 10] [--load 4] [--hold 30]

An API server (the development cluster's, in a process of its own) holds nodes and pods; one pod in a
hundred waits for a node. For each start ``plimsoll run`` begins, must be ready and lead, binds, is held for
a while, and is ended. Meanwhile ``/readyz`` is asked twice a second. A start succeeds when the process leads,
keeps the lease, and ends with 0 on SIGTERM. Each row: seconds until it was ready and until it led,
its CPU seconds until then, the longest wait for a probe's answer, the largest lag of both loops (upper bound
of the histogram's bucket), renewals that came late, pods bound. The exit status is 1 when a start failed. All
processes end with this one, and each start after ``--patience`` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from child_processes import cpu_s, free_port, process

from roadstead.assembly import built_in_api, extended_server
from roadstead.cluster import kubeconfig, new_token
from roadstead.kubelets.nodes import make_node

CRDS = Path(__file__).parents[1] / "crds"
NAME = "startup"
PROBE_S = 0.5


def a_pod(number: int, nodes: int) -> dict[str, Any]:
    """A pod of a usual size; each hundredth waits."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    app = f"app-{number % 500}"
    spec: dict[str, Any] = {
        "schedulerName": NAME,
        "containers": [{"name": "main", "image": f"registry.example/{app}:1", "resources": resources}],
        "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ],
    }
    if number % 100:
        spec["nodeName"] = f"node-{number % nodes:05}"
    metadata = {"name": f"pod-{number:06}", "namespace": "default", "labels": {"app": app, "tier": "web"}}
    return {"metadata": metadata, "spec": spec}


async def serve(path: Path, nodes: int, pods: int) -> None:
    """An API server with so much in it, until SIGTERM."""
    api = built_in_api()
    token = new_token()
    server = extended_server(api, token)
    for file in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            api.create("customresourcedefinitions.apiextensions.k8s.io", document)
    policy = {"metadata": {"name": NAME}, "spec": {"scheduling": {"schedulerName": NAME}}}
    api.create("schedulingpolicies.plimsoll.dev", policy)
    for number in range(nodes):
        api.create(
            "nodes",
            make_node(f"node-{number:05}", cpu="32", memory="128Gi", zone=f"zone-{'abc'[number % 3]}"),
        )
    for number in range(pods):
        api.create("pods", a_pod(number, nodes))
    url = await server.start()
    await asyncio.to_thread(path.write_text, kubeconfig(url, token))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await server.stop()


@dataclass(slots=True)
class Start:
    """What became of one start."""

    ready_s: float = 0.0
    leads_s: float = 0.0
    probe_s: float = 0.0
    main_lag_s: float = 0.0
    election_lag_s: float = 0.0
    late: int = 0
    cpu_s: float = 0.0
    bound: int = 0
    status: int | None = None
    problem: str = ""

    def row(self, number: int) -> str:
        """A line of the table."""
        return (
            f"| {number} | {self.ready_s:.1f} | {self.leads_s:.1f} | {self.cpu_s:.1f} | {self.probe_s:.2f}"
            f" | {self.main_lag_s:g} | {self.election_lag_s:g} | {self.late} | {self.bound}"
            f" | {os.getloadavg()[0]:.0f} | {self.problem or 'ok'} |"
        )


def ask(port: int, path: str, patience_s: float) -> tuple[int, str]:
    """Status and body, 0 where no process listens yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=patience_s) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()
    except (OSError, TimeoutError):
        return 0, ""


def measured(kubeconfig_file: Path, log: Path, patience_s: float, hold_s: float) -> Start:
    """Start once, hold, end."""
    port = free_port()
    command: tuple[str, ...] = (sys.executable, "-m", "plimsoll", "run", "--kubeconfig", str(kubeconfig_file))
    command += ("--bind-address", "127.0.0.1", "--metrics-port", str(port), "--health-port", "0")
    found, began = Start(), time.monotonic()
    listens = False
    with process(*command, "--log-format", "text", log=log) as operator:
        until = began + patience_s
        while time.monotonic() < until and operator.poll() is None:
            asked = time.monotonic()
            status, text = ask(port, "/readyz", 30.0)
            if not found.leads_s:
                found.cpu_s = cpu_s(operator.pid)[0]
            listens = listens or status > 0
            if listens:
                found.probe_s = max(found.probe_s, time.monotonic() - asked)
            now = time.monotonic() - began
            if status == 200 and not found.ready_s:
                found.ready_s = now
            if "leading as" in text and not found.leads_s:
                found.leads_s = now
                until = time.monotonic() + hold_s
            time.sleep(PROBE_S)
        _, metrics = ask(port, "/metrics", 30.0)
        found.main_lag_s, found.election_lag_s = worst_lag(metrics, "main"), worst_lag(metrics, "election")
        found.bound = bound(metrics)
        if operator.poll() is None:
            operator.terminate()
            try:
                operator.wait(60)
            except subprocess.TimeoutExpired:
                found.problem = "did not end"
        found.status = operator.poll()
    said = log.read_text(errors="replace")
    found.late = said.count("lease renewed late")
    if "leader election lost" in said:
        found.problem = "leader election lost"
    elif not found.leads_s:
        found.problem = "never led"
    elif found.status != 0 and not found.problem:
        found.problem = f"ended with {found.status}"
    return found


def worst_lag(metrics: str, loop: str) -> float:
    """The upper bound of the highest bucket that has samples."""
    before, worst = 0.0, 0.0
    for line in metrics.splitlines():
        if line.startswith("plimsoll_event_loop_lag_seconds_bucket") and f'loop="{loop}"' in line:
            value = float(line.rpartition(" ")[2])
            if value > before:
                worst, before = float(line.partition('le="')[2].partition('"')[0]), value
    return worst


def bound(metrics: str) -> int:
    """Pods that were bound."""
    for line in metrics.splitlines():
        if line.startswith("plimsoll_scheduler_schedule_attempts_total") and 'result="scheduled"' in line:
            return int(float(line.rpartition(" ")[2]))
    return 0


@contextmanager
def cluster(chosen: argparse.Namespace, folder: Path) -> Iterator[Path]:
    """The kubeconfig of a large cluster: the one that was named, or a new one."""
    if chosen.kubeconfig:
        yield chosen.kubeconfig
        return
    file, log = folder / "kubeconfig", folder / "server.log"
    size = ("--nodes", str(chosen.nodes), "--pods", str(chosen.pods))
    file.unlink(missing_ok=True)
    with process(sys.executable, __file__, "--serve", str(file), *size, log=log) as server:
        while not file.exists() or not file.stat().st_size:
            if server.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.5)
        yield file


@contextmanager
def computing(count: int, most_s: float) -> Iterator[None]:
    """Processes that compute, for a limited time whatever becomes of this one."""
    busy = f"import time\nend = time.monotonic() + {most_s}\nwhile time.monotonic() < end: pass"
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(process(sys.executable, "-c", busy))
        yield


def main() -> int:
    """Read the command line and start, again and again."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--load", type=int, default=4, help="processes that compute meanwhile")
    parser.add_argument("--hold", type=float, default=30.0, help="seconds that each leads")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds until each leads, at most")
    parser.add_argument("--logs", type=Path, help="keep the operators' logs in this folder")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster that has all that; none is started then")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve(chosen.serve, chosen.nodes, chosen.pods))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    starts: list[Start] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        most_s = chosen.starts * (chosen.patience + chosen.hold + 90)
        with cluster(chosen, folder) as file, computing(chosen.load, most_s):
            print(
                "| start | ready, s | leads, s | CPU until then, s | longest probe, s | lag main, s"
                " | lag election, s | late renewals | attempts that bound | load | outcome |"
            )
            print("| ---: " * 10 + "| --- |", flush=True)
            for number in range(1, chosen.starts + 1):
                one = measured(file, folder / f"start-{number}.log", chosen.patience, chosen.hold)
                starts.append(one)
                print(one.row(number), flush=True)
    good = sum(not each.problem for each in starts)
    print(f"\n{good} of {len(starts)} starts succeeded; load {chosen.load}, {os.cpu_count()} CPUs,", end=" ")
    print(f"{chosen.nodes} nodes, {chosen.pods} pods, Python {platform.python_version()}")
    return 0 if good == len(starts) else 1


if __name__ == "__main__":
    sys.exit(main())
