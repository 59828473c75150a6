"""Ends the leading operator again and again, and measures how long until the next pod is bound.

    python benchmarks/fail_over.py [--sizes 200x4000] [--kills 50] [--ways killed,terminated]
        [--lease 15,10,2]

Two ``plimsoll run`` share a cluster of the given nodes and pods (``synthetic_cluster.py``, over TLS in a
process of its own); both have read it, and one leads. At a random moment between two renewals the leader is
ended, by SIGKILL (*killed*) or by SIGTERM (*terminated*, as by a rollout), and when it is gone, a pod is
created. Measured from the signal: until the lease has another holder, and until that pod has a node. Then the
ended replica is started again. ``--lease`` has the seconds of lease duration, renew deadline and retry
period. All processes end with this one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path

import msgspec
from child_processes import free_port, process
from output import append
from pod_documents import SCHEDULER
from sightings import Sightings, watching
from startup import ask

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session, connected

SERVER = Path(__file__).with_name("synthetic_cluster.py")
NAMESPACE = "fail-over"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"
#: How a leader is ended.
WAYS = {"killed": signal.SIGKILL, "terminated": signal.SIGTERM}
#: The options of the election, in the order of ``--lease``.
TERMS = ("lease-duration", "renew-deadline", "retry-period")
#: Seconds between two looks at the lease, and at readiness.
LOOK_S, READY_LOOK_S = 0.02, 0.2
#: Seconds in which the API server must say who has the lease.
ANSWER_S = 5.0
HEAD = (
    "| Nodes | Pods | Leader is | Lease, s | Times | To the lease, s: median | largest"
    " | To the next binding, s: least | median | 90 % | largest | Ended by themselves | load |"
)


class _Lease(msgspec.Struct):
    class Spec(msgspec.Struct):
        holderIdentity: str | None = None  # noqa: N815 - the API's spelling

    spec: Spec


class Replica:
    """One of the two, through all its lives.

    Attributes:
        lost: How often it ended by itself, as a leader does whose renewal comes too late.
    """

    def __init__(self, kubeconfig: Path, lease: list[str], log: Path, stack: ExitStack) -> None:
        self.port = free_port()
        command = ("-m", "plimsoll", "run", "--kubeconfig", str(kubeconfig), "--bind-address", "127.0.0.1")
        ports = ("--metrics-port", str(self.port), "--health-port", "0", "--log-format", "text")
        elected = [
            word
            for name, value in zip(TERMS, lease, strict=True)
            for word in (f"--leader-elect-{name}", value)
        ]
        self._command = (sys.executable, *command, *ports, *elected)
        self._log, self._stack = log, stack
        self.lost = 0
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Begin the next life."""
        self.process = self._stack.enter_context(process(*self._command, log=self._log))
        return self.process

    def again(self) -> None:
        """Begin the next life of one that has ended by itself."""
        self.lost += 1
        self.start()

    async def until_ready(self, patience_s: float) -> bool:
        """Wait until it is ready; whether it leads. One that has ended by itself is started again.

        Raises:
            RuntimeError: It was not ready in time.
        """
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                self.again()
            status, text = await asyncio.to_thread(ask, self.port, "/readyz", 10.0)
            if status == 200:
                return "leading as" in text
            await asyncio.sleep(READY_LOOK_S)
        raise RuntimeError(f"a replica is not ready:\n{self._log.read_text()[-2000:]}")


async def holder(session: Session) -> str:
    """Who has the lease; "" while it is free."""
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await session.request("GET", LEASE)
    except (APIError, TimeoutError):
        return ""
    return msgspec.json.decode(answer, type=_Lease).spec.holderIdentity or ""


async def another_holder(session: Session, former: str) -> float:
    """The moment when somebody else has the lease."""
    while await holder(session) in ("", former):  # noqa: ASYNC110 - the API server's doing
        await asyncio.sleep(LOOK_S)
    return time.perf_counter()


async def fail_over(
    both: list[Replica], session: Session, seen: Sightings, name: str, way: str, chosen: argparse.Namespace
) -> tuple[float, float]:
    """End the leader once: seconds until the lease has another holder, and until a new pod has a node."""
    leads = [await each.until_ready(chosen.patience) for each in both]
    while sum(leads) != 1:
        await asyncio.sleep(READY_LOOK_S)
        leads = [await each.until_ready(chosen.patience) for each in both]
    leader, former = both[leads.index(True)], ""
    while not former:
        former = await holder(session)
    await asyncio.sleep(random.uniform(1.0, 1.0 + float(chosen.lease.split(",")[2])))
    began = time.perf_counter()
    leader.process.send_signal(WAYS[way])
    taken = asyncio.create_task(another_holder(session, former))
    pod = {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": SCHEDULER,
            "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "10m"}}}],
        },
    }
    while leader.process.poll() is None:  # noqa: ASYNC110 - what it binds to its end is no fail-over
        await asyncio.sleep(LOOK_S)
    await session.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
    patience = time.monotonic() + chosen.patience
    while not await seen.until(partial(seen.bound.__contains__, name), 1.0):
        if time.monotonic() > patience:
            raise RuntimeError(f"pod {name} was not bound in {chosen.patience:.0f} s")
        for each in both:
            if each is not leader and each.process.poll() is not None:
                each.again()
    leader.start()
    return await taken - began, seen.bound[name] - began


async def measure(nodes: int, pods: int, way: str, chosen: argparse.Namespace, folder: Path) -> None:
    """One row: so many fail-overs in one cluster."""
    file = folder / f"{nodes}.kubeconfig"
    file.unlink(missing_ok=True)
    size = ("--nodes", str(nodes), "--pods", str(pods), "--waiting", "0")
    with ExitStack() as stack:
        server = stack.enter_context(
            process(sys.executable, str(SERVER), str(file), *size, log=folder / "server.log")
        )
        while not file.exists():
            if server.poll() is not None:
                raise RuntimeError((folder / "server.log").read_text()[-2000:])
            await asyncio.sleep(READY_LOOK_S)
        async with AsyncExitStack() as connections:
            session = await connections.enter_async_context(connected(file))
            await session.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            seen = await connections.enter_async_context(watching(session, NAMESPACE))
            lease = [f"{each}s" for each in chosen.lease.split(",")]
            both = [Replica(file, lease, folder / f"replica-{each}.log", stack) for each in "ab"]
            found = []
            for number in range(chosen.kills):
                took = await fail_over(both, session, seen, f"{way}-{number}", way, chosen)
                found.append(took)
                print(f"  {number + 1}: lease {took[0]:.2f} s, binding {took[1]:.2f} s", file=sys.stderr)
    lost = sum(each.lost for each in both)
    leases, bindings = sorted(each[0] for each in found), sorted(each[1] for each in found)
    ninth = bindings[min(len(bindings) - 1, len(bindings) * 9 // 10)]
    print(
        f"| {nodes:,} | {pods:,} | {way} | {chosen.lease.replace(',', ' / ')} | {len(found)}"
        f" | {statistics.median(leases):.1f} | {leases[-1]:.1f} | {bindings[0]:.1f}"
        f" | {statistics.median(bindings):.1f} | {ninth:.1f} | {bindings[-1]:.1f} | {lost}"
        f" | {os.getloadavg()[0]:.0f} |",
        flush=True,
    )
    append(
        chosen.output,
        nodes=nodes,
        pods=pods,
        way=way,
        lease=chosen.lease.replace(",", " / "),
        times=len(found),
        lease_p50_s=statistics.median(leases),
        lease_most_s=leases[-1],
        least_s=bindings[0],
        p50_s=statistics.median(bindings),
        p90_s=ninth,
        most_s=bindings[-1],
        lost=lost,
    )


async def main() -> None:
    """Read the command line and measure size by size, way by way."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sizes", default="200x4000", help="nodes x pods, comma-separated")
    parser.add_argument("--kills", type=int, default=50, help="fail-overs of each row")
    parser.add_argument("--ways", default="killed,terminated", help="how leaders are ended: %(default)s")
    parser.add_argument("--lease", default="15,10,2", help="seconds: lease duration, renew deadline, retry")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds for each step, at most")
    parser.add_argument("--logs", type=Path, help="keep the logs in this folder")
    parser.add_argument("--output", type=Path, help="append each row as a line of JSON")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    print(HEAD)
    print("| ---: | ---: | --- | --- |" + " ---: |" * 9, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for size in chosen.sizes.split(","):
            nodes, _, pods = size.partition("x")
            for way in chosen.ways.split(","):
                await measure(int(nodes), int(pods), way, chosen, folder)
    print(f"\n{os.cpu_count()} CPUs, Python {platform.python_version()}")


if __name__ == "__main__":
    asyncio.run(main())
