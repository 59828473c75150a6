"""Compares two replicas that share the work with one: pods bound, CPU seconds of each, overfull nodes.

    make bench-replicas [ARGS="--nodes 500 --pods 6000 --pairs 3"]

An API server (the development cluster's, in a process of its own, over TLS) holds nodes and two policies. For
each row operators are started and, when every role is held, stopped with SIGSTOP while pods of both scheduler
names are created in equal numbers; then they go on. Measured are

* pods/s: from the first binding that a watch shows to the last; server and replicas share these cores;
* CPU s: of each operator's process, from SIGCONT until it is idle, so events and watches are part of it;
* pods per CPU s of the busiest process: the limit where each process has a core and the API server others.

*Tight* are rows in which there is room for exactly the pods, three of four of one scheduler name, and
kubelets that refuse what does not fit. Counted are nodes with more than they take, pods that kubelets
refused, pods left without a node, and pods that the other replica was asked to bind.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import yaml
from contestants import Contestant, Running
from output import append
from sightings import watching

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import connected
from plimsoll.ports.pods import BINDING_REQUESTED

if TYPE_CHECKING:
    from plimsoll.kube.session.session import Session

CRDS = Path(__file__).parents[1] / "crds"
NAMES = ("a", "b")
NAMESPACE = "replicas"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

#: Pods that a node takes in tight rows.
ROOM = 10

#: Seconds that anything takes at most, and of idleness after which CPU is read.
PATIENCE_S, REST_S = 150.0, 1.5

#: No lease expires while processes are stopped.
TERMS = ("--leader-elect-lease-duration", "300s", "--leader-elect-renew-deadline", "250s")


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; times in seconds."""

    kind: str
    replicas: int
    pods: int
    unbound: int
    bound_per_s: float
    cpu_s: tuple[float, ...]
    server_cpu_s: float
    overfull: int
    refused: int
    asked: int

    @property
    def per_busiest(self) -> float:
        """Pods per CPU second of the busiest process."""
        return (self.pods - self.unbound) / max(self.cpu_s)

    def text(self) -> str:
        """A line of the table."""
        cpu = " + ".join(f"{each:.2f}" for each in self.cpu_s)
        return (
            f"| {self.kind} | {self.replicas} | {self.pods} | {self.bound_per_s:.0f} | {cpu}"
            f" | {self.per_busiest:.0f} | {self.server_cpu_s:.1f} | {self.unbound}"
            f" | {self.overfull} | {self.refused} | {self.asked} | {os.getloadavg()[0]:.1f} |"
        )


def command(kubeconfig: Path, *, shares: bool) -> Contestant:
    """An operator."""
    words: tuple[str, ...] = (
        sys.executable,
        "-m",
        "plimsoll",
        "run",
        "--kubeconfig",
        str(kubeconfig),
        *TERMS,
    )
    words += ("--metrics-port", "0", "--health-port", "0", "--bind-address", "127.0.0.1")
    return Contestant("plimsoll", "", (*words, "--share-work", "true" if shares else "false"))


async def until(condition: Any, patience_s: float = PATIENCE_S) -> None:
    """Wait until an asynchronous condition holds.

    Raises:
        RuntimeError: It does not in time.
    """
    deadline = time.monotonic() + patience_s
    while not await condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{condition.__name__} did not come true in {patience_s:.0f} s")
        await asyncio.sleep(0.2)


async def prepare(session: Session) -> None:
    """Definitions, a namespace and two policies."""

    async def is_served() -> bool:
        try:
            await session.request("GET", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies")
        except APIError:
            return False
        return True

    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for file in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            await session.request("POST", definitions, document)
    await until(is_served)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await session.request("POST", "/api/v1/namespaces", space)
    for name in NAMES:
        policy = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": name},
            "spec": {"scheduling": {"schedulerName": name}},
        }
        await session.request("POST", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies", policy)


async def create(session: Session, counts: dict[str, int]) -> None:
    """Pods of each scheduler name, alternating, fifty at a time."""
    order = sorted(
        ((number / count, name, number) for name, count in counts.items() for number in range(count))
    )

    async def one(name: str, number: int) -> None:
        resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", "namespace": NAMESPACE, "labels": {"app": name}},
            "spec": {"schedulerName": name, "containers": [container]},
        }
        await session.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", body)

    for first in range(0, len(order), 50):
        await asyncio.gather(*(one(name, number) for _, name, number in order[first : first + 50]))


async def roles_are_held(session: Session, replicas: int) -> bool:
    """Whether every role is held, and evenly by two replicas; with one, whether it leads."""
    found = orjson.loads(await session.request("GET", LEASES))["items"]
    held = {each["metadata"]["name"]: each["spec"].get("holderIdentity") for each in found}
    if replicas == 1:
        return bool(held.get("plimsoll"))
    placing = {held.get(f"plimsoll-scheduler-{name}") for name in NAMES}
    nodes = Counter(who for name, who in held.items() if name.startswith("plimsoll-nodes-"))
    return len(placing - {None, ""}) == len(NAMES) and sorted(nodes.values()) == [3, 3]


def server_of(kubeconfig: Path, nodes: int, *, tight: bool) -> Contestant:
    """The development cluster."""
    words: tuple[str, ...] = (
        sys.executable,
        "-m",
        "roadstead",
        "--kubeconfig",
        str(kubeconfig),
        "--nodes",
        str(nodes),
    )
    if tight:
        words += ("--node-pods", str(ROOM), "--no-controllers", "--no-heartbeats")
    else:
        words += ("--server-only", "--node-cpu", "64", "--node-memory", "256Gi")
    return Contestant("roadstead", "", words)


async def measured(replicas: int, nodes: int, counts: dict[str, int], *, tight: bool, folder: Path) -> Row:
    """One row."""
    kubeconfig = folder / "kubeconfig"
    with ExitStack() as running:
        server = Running(server_of(kubeconfig, nodes, tight=tight), folder / "server.log")
        running.callback(server.stop)

        async def is_up() -> bool:
            return kubeconfig.exists()

        await until(is_up)
        async with AsyncExitStack() as connections:
            session = await connections.enter_async_context(connected(kubeconfig))
            await prepare(session)
            chosen = command(kubeconfig, shares=replicas > 1)
            operators = [Running(chosen, folder / f"operator-{number}.log") for number in range(replicas)]
            for each in operators:
                running.callback(each.stop)

            async def is_even() -> bool:
                return await roles_are_held(session, replicas)

            await until(is_even)
            await asyncio.sleep(3)  # the policies' status is written, and the last role begun
            for each in operators:
                each.signal(signal.SIGSTOP)
            total = sum(counts.values())
            try:
                await create(session, counts)
                seen = await connections.enter_async_context(watching(session, NAMESPACE))
                before, server_before = [each.cpu_s() for each in operators], server.cpu_s()
            finally:
                for each in operators:
                    each.signal(signal.SIGCONT)
            await seen.until(lambda: len(seen.bound) >= total, PATIENCE_S)
            cpu = [await rest(each) - at for each, at in zip(operators, before, strict=True)]
            moments = sorted(seen.bound.values())
            listed = orjson.loads(await session.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods"))
            if any(not each.is_alive() for each in operators):
                raise RuntimeError("an operator has ended: " + "\n".join(each.said() for each in operators))
            return Row(
                kind="tight" if tight else "room",
                replicas=replicas,
                pods=total,
                unbound=total - len(moments),
                bound_per_s=(len(moments) - 1) / (moments[-1] - moments[0]),
                cpu_s=tuple(round(each, 2) for each in cpu),
                server_cpu_s=server.cpu_s() - server_before,
                **counted(listed["items"], tight=tight),
            )


def counted(pods: list[dict[str, Any]], *, tight: bool) -> dict[str, int]:
    """What must not be, and how many pods were bound by the other replica."""
    load = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
    conditions = [pod["status"].get("conditions") or () for pod in pods]
    return {
        "overfull": sum(count > ROOM for count in load.values()) if tight else 0,
        "refused": sum(pod["status"].get("phase") == "Failed" for pod in pods),
        "asked": sum(any(each["type"] == BINDING_REQUESTED for each in some) for some in conditions),
    }


async def rest(running: Running) -> float:
    """The CPU seconds of a process once it is idle."""
    before = running.cpu_s()
    for _ in range(40):
        await asyncio.sleep(REST_S)
        now = running.cpu_s()
        if now - before < 0.05 * REST_S:
            return now
        before = now
    return before


HEADER = """\
| Cluster | Replicas | Pods | pods/s | CPU s of each | pods per CPU s of the busiest \
| CPU s of the server | Unbound | Overfull nodes | Refused | Asked | Load |
| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


async def main(arguments: argparse.Namespace) -> int:
    """Print the table; 1 when something was over-committed or left."""
    print(f"nodes: {arguments.nodes}, cores: {os.cpu_count()}\n\n{HEADER}")
    half = arguments.pods // 2
    rows: list[Row] = []
    plan = [(replicas, False) for _ in range(arguments.pairs) for replicas in (1, 2)]
    plan += [(replicas, True) for _ in range(arguments.tight) for replicas in (1, 2)]
    for replicas, tight in plan:
        nodes = arguments.tight_nodes if tight else arguments.nodes
        room = nodes * ROOM
        counts = {"a": room * 3 // 4, "b": room - room * 3 // 4} if tight else {"a": half, "b": half}
        with tempfile.TemporaryDirectory() as folder:
            row = await measured(replicas, nodes, counts, tight=tight, folder=Path(folder))
        rows.append(row)
        print(row.text(), flush=True)
    room_rows = [each for each in rows if each.kind == "room"]
    of = {count: sorted(each.per_busiest for each in room_rows if each.replicas == count) for count in (1, 2)}
    if of[1] and of[2]:
        ratio = of[2][len(of[2]) // 2] / of[1][len(of[1]) // 2]
        print(f"\nTwo replicas bind {ratio:.2f} times the pods of one per CPU second of the busiest process.")
    for row in rows:
        append(
            arguments.output,
            benchmark="replicas",
            cluster=row.kind,
            replicas=row.replicas,
            pods=row.pods,
            bound_per_s=round(row.bound_per_s, 1),
            per_busiest=round(row.per_busiest, 1),
            cpu_s=" + ".join(map(str, row.cpu_s)),
            overfull=row.overfull,
            refused=row.refused,
            asked=row.asked,
        )
    return int(any(each.overfull or each.refused or each.unbound for each in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=6000)
    parser.add_argument("--pairs", type=int, default=3, help="Rows with one replica, and with two.")
    parser.add_argument("--tight", type=int, default=1, help="The same in a cluster that is full then.")
    parser.add_argument("--tight-nodes", type=int, default=100)
    parser.add_argument("--output", type=Path, help="Append the results here, a line of JSON each.")
    sys.exit(asyncio.run(main(parser.parse_args())))
