"""Measures the API server's speed over HTTP, with its client on the same machine.

    python devcluster/benchmarks/exchanges.py [--pods 5000] [--listed 20000] [--watchers 5] [--connections 16]

Prints a line for each measure, medians over ``--repeats``: the rate, and the processor time that the server
needs for one (its inverse is the rate that it would reach with a processor of its own). The server is a
process of its own; the client is this one (aiohttp, keep-alive connections). A pod is what a scheduler
benchmark creates: two containers with requests, labels, a toleration, a spread constraint.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import yaml

JSON = dict[str, Any]


def a_pod(name: str) -> JSON:
    """A pod of a usual size."""
    labels = {"app": "web", "app.kubernetes.io/part-of": "shop"}
    resources = {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "schedulerName": "another",
            "containers": [
                {"name": "main", "image": "registry.example/app:1", "resources": resources},
                {"name": "side", "image": "registry.example/side:1", "resources": resources},
            ],
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ],
        },
    }


@contextlib.asynccontextmanager
async def started_server() -> AsyncIterator[tuple[str, str, int]]:
    """A server of its own process; gives its plain URL, its token and its process id."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kubeconfig"
        command = (sys.executable, "-m", "roadstead", "--server-only", "--kubeconfig", str(file))
        process = await asyncio.create_subprocess_exec(*command)
        try:
            for _ in range(600):
                if process.returncode is not None:
                    raise RuntimeError("the server did not start")
                if file.exists() and file.stat().st_size:
                    break
                await asyncio.sleep(0.05)
            config = yaml.safe_load(file.read_text())
            urls = [one["cluster"]["server"] for one in config["clusters"]]
            url = next((one for one in urls if one.startswith("http:")), urls[0])
            yield url, config["users"][0]["user"]["token"], process.pid
        finally:
            process.terminate()
            await process.wait()


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Measured(NamedTuple):
    """What one measure gave."""

    rate: float
    server_us: float


class Client:
    """Sends requests over a number of connections."""

    def __init__(self, url: str, token: str, pid: int, connections: int) -> None:
        self.connections = connections
        self._pid = pid
        headers = {"Authorization": f"Bearer {token}"}
        connector = aiohttp.TCPConnector(limit=0)
        self.session = aiohttp.ClientSession(url, headers=headers, connector=connector)

    async def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> bytes:
        """One request; gives the body of the answer."""
        content = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": kind}
        async with self.session.request(method, path, data=content, headers=headers) as response:
            answer = await response.read()
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")
            return answer

    async def rate(self, count: int, act: Callable[[int], Awaitable[Any]]) -> Measured:
        """Acts a second, over all connections."""
        turns = iter(range(count))

        async def work() -> None:
            for turn in turns:
                await act(turn)

        used, start = processor_seconds(self._pid), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(self.connections)))
        taken = time.perf_counter() - start
        return Measured(count / taken, (processor_seconds(self._pid) - used) / count * 1e6)


PODS = "/api/v1/namespaces/default/pods"


async def measure(client: Client, pods: int, watchers: int) -> dict[str, Measured]:
    """All rates, on fresh pods that are deleted at the end."""
    label = {"metadata": {"labels": {"touched": "yes"}}}
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"status": {"conditions": [waiting]}}
    merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
    acts: dict[str, Callable[[int], Awaitable[Any]]] = {
        "creates": lambda turn: client.send("POST", PODS, a_pod(f"p{turn}")),
        "gets": lambda turn: client.send("GET", f"{PODS}/p{turn}"),
        "merge patches": lambda turn: client.send("PATCH", f"{PODS}/p{turn}", label, merge),
        "status patches (strategic)": lambda turn: client.send(
            "PATCH", f"{PODS}/p{turn}/status", status, strategic
        ),
        "bindings": lambda turn: _bind(client, turn),
        "deletions": lambda turn: client.send("DELETE", f"{PODS}/p{turn}?gracePeriodSeconds=0"),
    }
    rates = {name: await client.rate(pods, act) for name, act in acts.items()}
    rates[f"creates, {watchers} watchers"], rates["watch events"] = await _fan_out(client, pods, watchers)
    await client.rate(pods, lambda turn: client.send("DELETE", f"{PODS}/w{turn}"))
    return rates


async def _bind(client: Client, turn: int) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": f"n{turn % 100}"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"p{turn}"}, "target": target}
    await client.send("POST", f"{PODS}/p{turn}/binding", body)


async def _fan_out(client: Client, pods: int, watchers: int) -> tuple[Measured, Measured]:
    """Creates a second while others watch, and events a second that all of them were sent."""
    version = orjson.loads(await client.send("GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
    ready = asyncio.Semaphore(0)

    async def watch() -> None:
        seen = 0
        timeout = aiohttp.ClientTimeout(total=None)
        path = f"{PODS}?watch=true&resourceVersion={version}"
        async with client.session.get(path, timeout=timeout) as response:
            ready.release()
            async for chunk in response.content.iter_any():
                seen += chunk.count(b"\n")
                if seen >= pods:
                    return

    watching = [asyncio.ensure_future(watch()) for _ in range(watchers)]
    for _ in watching:
        await ready.acquire()
    start = time.perf_counter()
    rate = await client.rate(pods, lambda turn: client.send("POST", PODS, a_pod(f"w{turn}")))
    await asyncio.gather(*watching)
    return rate, Measured(pods * watchers / (time.perf_counter() - start), rate.server_us / watchers)


async def measure_lists(client: Client, pods: int) -> dict[str, float]:
    """Seconds to list many pods: whole, by node, by label, in pages."""
    await client.rate(pods, lambda turn: client.send("POST", PODS, a_pod(f"l{turn}")))
    queries = {
        "all": "",
        "unbound": "?fieldSelector=spec.nodeName%3D",
        "of one node": "?fieldSelector=spec.nodeName%3Dn1",
        "by label, none": "?labelSelector=no%3Done",
        "a page of 500": "?limit=500",
    }
    seconds = {}
    for name, query in queries.items():
        start = time.perf_counter()
        size = len(await client.send("GET", PODS + query))
        seconds[f"list {pods} pods, {name} ({size / 1e6:.1f} MB)"] = time.perf_counter() - start
    return seconds


async def run(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    async with started_server() as (url, token, pid):
        client = Client(url, token, pid, arguments.connections)
        async with client.session:
            runs = [
                await measure(client, arguments.pods, arguments.watchers) for _ in range(arguments.repeats)
            ]
            print(f"{'':<30} {'a second':>12} {'server us each':>16}")
            for name in runs[0]:
                rate = statistics.median(one[name].rate for one in runs)
                server_us = statistics.median(one[name].server_us for one in runs)
                print(f"{name:<30} {rate:>12,.0f} {server_us:>16,.0f}")
            for name, seconds in (await measure_lists(client, arguments.listed)).items():
                print(f"{name:<60} {seconds:>8.3f} s")
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Read the command line and measure."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--listed", type=int, default=20_000)
    parser.add_argument("--watchers", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=1)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
