"""Pods bound per second and the operator's own CPU seconds, end to end, against any API server.

    python benchmarks/end_to_end.py --nodes 1000 --pods 5000                       # development cluster
    python benchmarks/end_to_end.py --nodes 1000 --pods 5000 --kubeconfig FILE     # yours

Creates N nodes (tainted for nobody else, without kubelets) and P pods in a namespace of their own, starts
``plimsoll run`` beside them, and takes everything away again. The pods are there before the policy that
serves them, so the figure is the operator's and not that of whoever creates pods:

* bound/s: P over the time from the policy's creation until no pod is without a node, as the API tells;
* CPU s per 1,000 pods: ``process_cpu_seconds_total`` of the operator, over creation and binding together
  (creation costs the operator watch events, too), and over binding alone.

Events and further watch events are part of it: the clock stops for pods/s, the CPU is read once the
operator has come to rest.
"""

import argparse
import asyncio
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from plimsoll.adapters.errors import APIError, NotFound
from plimsoll.adapters.session import Session, connected

NAME = "plimsoll-benchmark"
CONCURRENCY = 32
PATIENCE_S = 600.0
RESOURCES = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"}
CRDS = Path(__file__).resolve().parent.parent / "crds"
REST_S = 1.0
TRIES = 10


def a_node(number: int) -> dict[str, Any]:
    """A node that nobody but this benchmark's pods may use."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"{NAME}-{number:05}",
            "labels": {
                "benchmark": NAME,
                "kubernetes.io/hostname": f"{NAME}-{number:05}",
                "topology.kubernetes.io/zone": f"zone-{number % 3}",
            },
        },
        "spec": {"taints": [{"key": NAME, "effect": "NoSchedule"}]},
        "status": {
            "allocatable": RESOURCES,
            "capacity": RESOURCES,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Benchmark", "message": "pretended"}
            ],
        },
    }


def a_pod(number: int) -> dict[str, Any]:
    """A small pod of one of ten workloads."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:06}",
            "namespace": NAME,
            "labels": {"app": f"app-{number % 10}"},
        },
        "spec": {
            "schedulerName": NAME,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
                }
            ],
        },
    }


POLICY = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": NAME},
    "spec": {"scheduling": {"schedulerName": NAME}},
}


async def all_of(make: Callable[[int], Awaitable[object]], numbers: Iterable[int]) -> None:
    """Carry out many requests, some at once."""
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            await make(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(work())


async def create_node(session: Session, number: int) -> None:
    """Create a node; a real API server takes its status separately."""
    node = a_node(number)
    with suppress(APIError):  # left over from a run that was interrupted
        await session.request("POST", "/api/v1/nodes", node)
    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
    await session.request(
        "PATCH", path, {"status": node["status"]}, content_type="application/strategic-merge-patch+json"
    )


async def create_pod(session: Session, number: int) -> None:
    """Create a pod; a new namespace takes a moment until its service account is there."""
    for left in reversed(range(TRIES)):
        try:
            await session.request("POST", f"/api/v1/namespaces/{NAME}/pods", a_pod(number))
        except APIError:
            if not left:
                raise
            await asyncio.sleep(0.5)
        else:
            return


async def install(session: Session) -> None:
    """Install our definitions and the namespace, unless they are there."""
    import yaml  # noqa: PLC0415 - only here

    for file in sorted(CRDS.glob("*.yaml")):
        with suppress(APIError):
            definition = yaml.safe_load(file.read_text())
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            await session.request("POST", path, definition)
    with suppress(APIError):
        await session.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAME}})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            await session.request("GET", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies")
        except NotFound:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)
        else:
            return


async def clean(session: Session, nodes: int) -> None:
    """Take everything away, and wait until the namespace is gone: a control plane needs a moment."""
    for path in (
        f"/apis/plimsoll.dev/v1alpha1/schedulingpolicies/{NAME}",
        f"/api/v1/namespaces/{NAME}/pods?gracePeriodSeconds=0",
        f"/api/v1/namespaces/{NAME}",
    ):
        with suppress(APIError):
            await session.request("DELETE", path, timeout_s=300)

    async def drop(number: int) -> None:
        with suppress(APIError):
            await session.request("DELETE", f"/api/v1/nodes/{NAME}-{number:05}")

    await all_of(drop, range(nodes))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            await session.request("GET", f"/api/v1/namespaces/{NAME}")
        except NotFound:
            return
        await asyncio.sleep(0.2)
    raise RuntimeError(f"the namespace {NAME} does not go")


class OperatorProcess:
    """``plimsoll run`` in a process of its own, and its metrics."""

    def __init__(self, kubeconfig: Path, log: Path, *, profile: Path | None) -> None:
        arguments = ["run", "--kubeconfig", str(kubeconfig), "--metrics-port", "0", "--health-port", "0"]
        arguments += ["--bind-address", "127.0.0.1"]
        runner = ["-m", "cProfile", "-o", str(profile)] if profile else []
        self._log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, *runner, "-m", "plimsoll", *arguments], stdout=sink, stderr=sink
            )
        self._port = 0

    async def ready(self) -> None:
        """Wait until its caches are filled."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(rb'"?port"?\W+(\d+)', self._log.read_bytes())
            if found:
                self._port = int(found[1])
                async with aiohttp.ClientSession() as http, http.get(self._url("readyz")) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"the operator is not ready: {self._log.read_text()[-2000:]}")

    async def metric(self, name: str) -> float:
        """A metric without labels."""
        async with aiohttp.ClientSession() as http, http.get(self._url("metrics")) as answer:
            text = await answer.text()
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        assert found is not None, f"the operator has no metric {name}"
        return float(found[1])

    def _url(self, page: str) -> str:
        return f"http://127.0.0.1:{self._port}/{page}"

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


async def unbound(session: Session) -> bool:
    """Whether some pod has no node."""
    path = f"/api/v1/namespaces/{NAME}/pods"
    page = await session.request("GET", path, params={"fieldSelector": "spec.nodeName=", "limit": "1"})
    return bool(orjson.loads(page)["items"])


async def at_rest(operator: OperatorProcess) -> float:
    """The operator's CPU seconds, once it has come to rest."""
    before = await operator.metric("process_cpu_seconds_total")
    while True:
        await asyncio.sleep(REST_S)
        now = await operator.metric("process_cpu_seconds_total")
        if now - before < 0.05 * REST_S:
            return now
        before = now


async def measure(kubeconfig: Path, nodes: int, pods: int, folder: Path, profile: Path | None) -> None:
    """One run."""
    async with connected(kubeconfig) as session:
        await install(session)
        await clean(session, 0)
        await install(session)
        await all_of(lambda number: create_node(session, number), range(nodes))
        operator = OperatorProcess(kubeconfig, folder / "operator.log", profile=profile)
        try:
            await operator.ready()
            idle = await at_rest(operator)
            began = time.perf_counter()
            await all_of(lambda number: create_pod(session, number), range(pods))
            created_s = time.perf_counter() - began
            created = await at_rest(operator)
            began = time.perf_counter()
            await session.request("POST", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies", POLICY)
            while await unbound(session):
                if time.perf_counter() - began > PATIENCE_S:
                    raise RuntimeError(f"pods are left: {(folder / 'operator.log').read_text()[-2000:]}")
                await asyncio.sleep(0.1)
            bound_s = time.perf_counter() - began
            done = await at_rest(operator)
            memory = await operator.metric("process_resident_memory_bytes")
        finally:
            operator.stop()
            await clean(session, nodes)
    thousands = pods / 1000
    print(f"{platform.machine()}, Python {platform.python_version()}; {nodes} nodes, {pods} pods")
    print(f"created                     {pods / created_s:8.0f} pods/s")
    print(f"bound                       {pods / bound_s:8.0f} pods/s ({bound_s:.2f} s)")
    print(f"operator CPU, binding       {(done - created) / thousands:8.3f} s per 1,000 pods")
    print(f"operator CPU, all           {(done - idle) / thousands:8.3f} s per 1,000 pods")
    print(f"operator memory             {memory / 2**20:8.0f} MiB")


@asynccontextmanager
async def a_cluster(given: Path | None, folder: Path) -> AsyncIterator[Path]:
    """The cluster that was named, or a development cluster without nodes and controllers of its own."""
    if given is not None:
        yield given
        return
    path = folder / "kubeconfig"
    with (folder / "cluster.log").open("wb") as sink:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own command, and nothing else runs yet
            [sys.executable, "-m", "plimsoll", "devcluster", "--kubeconfig", str(path)],
            stdout=sink,
            stderr=sink,
        )
    try:
        while not path.exists():
            if process.poll() is not None:
                raise RuntimeError(f"no development cluster: {(folder / 'cluster.log').read_text()}")
            await asyncio.sleep(0.1)
        yield path
    finally:
        process.terminate()
        process.wait()


async def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--kubeconfig", type=Path, help="left out: a development cluster is started")
    parser.add_argument("--profile", type=Path, help="write the operator's cProfile here (slows it down)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with a_cluster(chosen.kubeconfig, Path(folder)) as kubeconfig:
            await measure(kubeconfig, chosen.nodes, chosen.pods, Path(folder), chosen.profile)


if __name__ == "__main__":
    asyncio.run(main())
