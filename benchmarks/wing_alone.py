"""Measures reflectors, columns, queue, engine and binding pipeline in one process, without a server.

    python benchmarks/wing_alone.py --size 50000x0+50000 --plain
    python benchmarks/wing_alone.py --size 130000x130000+130000 --plain
    python benchmarks/wing_alone.py --size 50000x1000000+2000

A size is nodes x placed pods + waiting pods. The objects are those of ``synthetic_cluster.py``: JSON of
8.4 kB a pod, a tenth of the placed pods of DaemonSets where there are more pods than nodes. A transport in
this process makes them and takes the bindings, and the watch shows these; what that takes is measured and
left out. So sockets and TLS are not in the figures, nor what observes moves, rights and devices.

With ``--churn`` all pods are replaced, so many of them at a time, and each time a line says what memory the
process has: a pod is deleted, and another of its owner begins on its node.

Printed are CPU seconds and resident memory when nodes, pods and ReplicaSets are listed; CPU ms a bound pod,
from the queue to the event that confirms it; CPU µs a pod event (a status that changes), and the share of a
core at 2,000 a second. With ``--plain`` the waiting pods have neither affinities nor spread constraints, but
the built-in soft spreading of pods with a ReplicaSet; with ``--bare`` there are no ReplicaSets, and no such
spreading.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from kubernetes_asyncio import client
from output import append
from pod_documents import MOMENT, SCHEDULER, PodTemplates, namespace_of, owner_of, pod_document
from prometheus_client import CollectorRegistry
from synthetic_cluster import PODS_PER_OWNER, a_node

from plimsoll.app.machine.clock import SeededRandomness, SystemClock
from plimsoll.app.process import THRESHOLDS
from plimsoll.app.scheduling_wing import PodPorts, SchedulingWing, WingParts
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.kube.resource_claims import ResourceClaims
from plimsoll.kube.session.credentials import Credentials, Loaded
from plimsoll.kube.session.session import Session
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.telemetry.scheduling import MetricsObserver
from plimsoll.timing.timer import Timer
from plimsoll.watches.reflector import COMPLETE, Reflector
from plimsoll.writers.events import EventPoster
from plimsoll.writers.pods import PodBinder, PodPreemptor, PodStatusPatcher
from plimsoll.writers.volumes import VolumePatcher

#: Lines that the transport hands over together, about a megabyte.
TOGETHER = 128
#: Nodes that differ in their images and zone.
KINDS_OF_NODES = 1_500
LISTED = ("nodes", "pods", "replicasets")
CREATED = b'{"kind":"Status","apiVersion":"v1","status":"Success","code":201}'


class Documents:
    """The objects, each made when it is read.

    Attributes:
        made_s: CPU seconds that making them has taken.
    """

    def __init__(self, nodes: int, placed: int, waiting: int, *, plain: bool) -> None:
        self.names = [f"node-{number:06}" for number in range(nodes)]
        self._rows = {name: row for row, name in enumerate(self.names)}
        self.placed, self.waiting = placed, waiting
        self._daemons = placed // 10 if placed > nodes else 0
        self._step = 6 if plain else 1  # the applications 6n + 1 have neither affinities nor constraints
        self._templates = PodTemplates(self.names)
        self._version, self._of_template, self._latest = placed + 1, 0, placed + waiting
        self._replaced: dict[int, int] = {}  #: the number of the pod in a place that had another one

    def listed(self, resource: str) -> Iterator[bytes]:
        """The lines of a streamed list."""
        if resource == "nodes":
            made: dict[int, list[bytes]] = {}
            for number, name in enumerate(self.names):
                if (kind := number % KINDS_OF_NODES) not in made:
                    made[kind] = node_document(number).split(b"@name@")
                yield line("ADDED", name.encode().join(made[kind]))
        elif resource == "replicasets":
            last = max(self.app_of_waiting(number) for number in range(50)) if self.waiting else 0
            for app in range(1, max(self.placed // PODS_PER_OWNER, last) + 1):
                yield line("ADDED", replica_set(app))
        else:
            for number in range(self.placed):
                yield line("ADDED", self.pod(number, *self._place(number), number + 1))
            for number in range(self.placed, self.placed + self.waiting):
                yield line("ADDED", self.pod(number, self.app_of_waiting(number), -1, number + 1))
        bookmark = {"metadata": {"resourceVersion": str(self._version), "annotations": {COMPLETE: "true"}}}
        yield line("BOOKMARK", orjson.dumps(bookmark))

    def _place(self, number: int) -> tuple[int, int]:
        """Application and row of a placed pod; siblings follow one another, as a server lists them."""
        if number < self._daemons:
            return -(1 + number // len(self.names)), number % len(self.names)
        return 1 + number // PODS_PER_OWNER, number * 7919 % len(self.names)

    def app_of_waiting(self, number: int) -> int:
        """The application of a waiting pod: fifty in turn."""
        return 1 + (1 + number % 50) * self._step

    def pod(self, number: int, app: int, row: int, version: int, restarts: int = 0) -> bytes:
        """One pod. Of templates few are kept: they are read one after the other."""
        if abs(app) != self._of_template and row >= 0 and version <= self.placed:
            self._of_template = abs(app)
            self._templates = PodTemplates(self.names)
        return self._templates.document(number, app, row, version, restarts)

    def bound(self, path: str, binding: bytes) -> bytes:
        """The line by which a watch shows a binding."""
        name = path.split("/")[-2]
        number = int(name.rpartition("-")[2], 16)
        row = self._rows[orjson.loads(binding)["target"]["name"]]
        return line("MODIFIED", self.pod(number, self.app_of_waiting(number), row, self._next()))

    def changed(self, number: int) -> bytes:
        """The line of a placed pod whose status has changed."""
        return line("MODIFIED", self.pod(number, *self._place(number), self._next(), 1))

    def replaced(self, place: int) -> bytes:
        """The lines of a placed pod that is deleted, and of its successor."""
        app, row = self._place(place)
        if abs(app) != self._of_template:
            self._of_template, self._templates = abs(app), PodTemplates(self.names)
        old = self.pod(self._replaced.get(place, place), app, row, self._next(), -1)
        self._latest += 1
        self._replaced[place] = self._latest
        return line("DELETED", old) + line("ADDED", self.pod(self._latest, app, row, self._next()))

    def _next(self) -> int:
        self._version = max(self._version, self.placed + self.waiting) + 1
        return self._version


def line(kind: str, document: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"' + kind.encode() + b'","object":' + document + b"}\n"


def node_document(number: int) -> bytes:
    """A node with the place of its name; few differ in more, and making one takes ten times as long."""
    node = {"apiVersion": "v1", "kind": "Node", **a_node(number, "@name@")}
    node["metadata"] |= {"uid": "uid-@name@", "creationTimestamp": MOMENT, "resourceVersion": "1"}
    return orjson.dumps(node)


def replica_set(app: int) -> bytes:
    """The owner of an application's pods."""
    _, name, uid = owner_of(app)
    template = orjson.loads(pod_document(app, daemon=False, placed=False).replace(b"@restarts@", b"0"))
    labels = template["metadata"]["labels"]
    metadata = {"name": name, "namespace": namespace_of(app), "uid": uid, "resourceVersion": "1"}
    spec = {
        "replicas": PODS_PER_OWNER,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
    }
    return orjson.dumps({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})


class InProcess:
    """A transport (``plimsoll.kube.session.transport.Transport``) that is the server as well.

    Attributes:
        own_s: CPU seconds that it has taken itself.
        bound: Bindings that it has taken.
    """

    pipelines = True

    def __init__(self, documents: Documents) -> None:
        self.address = "http://in.process"
        self.configuration = client.Configuration(host=self.address)
        self.own_s, self.bound = 0.0, 0
        self._documents = documents
        self._shown: asyncio.Queue[bytes] = asyncio.Queue()

    async def exchange(
        self, method: str, path: str, content: bytes | None, *_: Any, **__: Any
    ) -> tuple[int, bytes]:
        """Bind, or take anything else as written."""
        if method == "POST" and path.endswith("/binding") and content is not None:
            self._bind(((path, content),))
        return 201, CREATED

    async def exchanges(
        self,
        method: str,  # noqa: ARG002 - as any transport is called
        writes: Sequence[tuple[str, bytes]],
        headers: Mapping[str, str],  # noqa: ARG002 - likewise
        **_: Any,
    ) -> list[tuple[int, bytes]]:
        """Take bindings."""
        self._bind(writes)
        return [(201, CREATED)] * len(writes)

    def _bind(self, writes: Sequence[tuple[str, bytes]]) -> None:
        began = time.process_time()
        self._shown.put_nowait(b"".join([self._documents.bound(*each) for each in writes]))
        self.bound += len(writes)
        self.own_s += time.process_time() - began

    def change(self, numbers: Sequence[int]) -> None:
        """Show placed pods with another status."""
        self._show(self._documents.changed, numbers)

    def replace(self, places: Sequence[int]) -> None:
        """Show the end of placed pods, and their successors."""
        self._show(self._documents.replaced, places)

    def _show(self, make: Callable[[int], bytes], numbers: Sequence[int]) -> None:
        began = time.process_time()
        self._shown.put_nowait(b"".join(map(make, numbers)))
        self.own_s += time.process_time() - began

    async def until_shown(self) -> None:
        """Until the watch has handed over everything, and it was applied."""
        await self._shown.join()

    @asynccontextmanager
    async def watch(self, path: str, *_: Any) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """A streamed list, and for pods what follows."""
        yield 200, self._lines(path.rpartition("/")[2])

    async def _lines(self, resource: str) -> AsyncIterator[bytes]:
        listed, is_over = self._documents.listed(resource), False
        while not is_over:
            began, some = time.process_time(), list[bytes]()
            while len(some) < TOGETHER and not is_over:
                each = next(listed, None)
                is_over = each is None
                some += [] if each is None else [each]
            content = b"".join(some)
            self.own_s += time.process_time() - began
            if content:
                yield content
        while resource == "pods":
            yield await self._shown.get()
            self._shown.task_done()  # the reader asks for more
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is open."""


def mib() -> float:
    """Resident memory."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(each.split()[1]) / 1024 for each in lines if each.startswith("VmRSS"))


def a_wing(session: Session, clock: SystemClock) -> tuple[SchedulingWing, EventPoster, Any]:
    """A scheduling wing with the writers of the operator, that serves the pods."""
    observer = MetricsObserver(CollectorRegistry())
    randomness, cache = SeededRandomness(7), Cache()
    book = ReservationBook(cache, Timer(clock, observer))
    recorder = EventPoster(session, clock, "benchmark", observer)
    ports = PodPorts(
        binder=PodBinder(session),
        volumes=VolumePatcher(session),
        preemptor=PodPreemptor(session, clock),
        statuses=PodStatusPatcher(session, clock),
        recorder=recorder,
        claims=ResourceClaims(session),
    )
    wing = SchedulingWing(book, ports, clock, randomness, observer, WingParts())
    defaults = [Enabled(*each) for each in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig(SCHEDULER), Registry(IN_TREE), defaults)
    wing.serve(
        {
            SCHEDULER: ProfileScheduler(
                profile, cache.cluster, choose=randomness.below, nominator=book.nominator
            )
        }
    )
    return wing, recorder, observer


class Meter:
    """CPU seconds of this process without those of the transport."""

    def __init__(self, server: InProcess) -> None:
        self._server = server
        self._at = self._now()

    def _now(self) -> float:
        return time.process_time() - self._server.own_s

    def since_lap(self) -> float:
        """Those since the last lap."""
        return self._now() - self._at

    def lap(self) -> float:
        """The same, and a new lap begins."""
        seconds = self.since_lap()
        self._at = self._now()
        return seconds


async def listed(reflectors: Sequence[Reflector]) -> list[asyncio.Task[None]]:
    """Mirror everything, as the operator does: without garbage collection until all is there."""
    gc.disable()
    tasks = [asyncio.create_task(each.run()) for each in reflectors]
    for each in reflectors:
        await each.until_listed(0.0)
    gc.freeze()
    gc.enable()
    return tasks


async def all_bound(
    waiting: int, cache: Cache, server: InProcess, meter: Meter, chosen: argparse.Namespace
) -> None:
    """Until all waiting pods are bound and seen bound, with a line now and then."""
    began, told = time.monotonic(), 0
    while server.bound < waiting or cache.assumed:
        await asyncio.sleep(0.05)
        if server.bound - told >= chosen.tell:
            told = server.bound
            print(f"  {told:,} bound after {meter.since_lap():.1f} CPU s, {mib():.0f} MiB", flush=True)
        if time.monotonic() - began > chosen.patience:
            return


async def churn(server: InProcess, placed: int, some: int) -> None:
    """Replace all placed pods twice, so many at a time, and collect garbage as the operator does."""
    trim = ctypes.CDLL(None).malloc_trim
    for turn in range(2):
        for first in range(0, placed, some):
            for each in range(first, min(first + some, placed), 100):
                server.replace(range(each, min(each + 100, placed)))
                await server.until_shown()
            gc.collect()
            trim(0)
            print(
                f"  {turn * placed + min(first + some, placed):,} pods replaced: {mib():.0f} MiB", flush=True
            )


async def measure(chosen: argparse.Namespace, nodes: int, placed: int, waiting: int) -> dict[str, float]:
    """One size."""
    server, clock = (
        InProcess(Documents(nodes, placed, waiting, plain=chosen.plain or chosen.bare)),
        SystemClock(),
    )
    loaded = Loaded(server.configuration)

    async def load() -> Loaded:
        return loaded

    session = Session(server, Credentials(loaded, load))
    wing, recorder, observer = a_wing(session, clock)
    apply, cache = wing.ingestion((), observer).apply, wing.mirror.cache
    shared: dict[str, Any] = {"clock": clock, "randomness": SeededRandomness(1), "observer": observer}
    watched = [each for each in WATCHED if each.name in LISTED[: 2 if chosen.bare else 3]]
    found, meter = {"before_mib": mib()}, Meter(server)
    tasks = await listed([Reflector(session, each, apply, streaming=True, **shared) for each in watched])
    found |= {"start_cpu_s": meter.lap(), "listed_mib": mib()}
    start = f"{found['start_cpu_s']:.1f} CPU s, {found['listed_mib']:.0f} MiB"
    print(f"{nodes:,} nodes, {placed:,} pods: {start}", flush=True)
    wing.take_over()
    tasks += [asyncio.create_task(wing.run()), asyncio.create_task(recorder.run())]
    await all_bound(waiting, cache, server, meter, chosen)
    found |= {"bound": server.bound, "bind_cpu_s": meter.lap(), "bound_mib": mib()}
    if server.bound:
        each_ms = found["bind_cpu_s"] / server.bound * 1e3
        print(
            f"{server.bound:,} of {waiting:,} bound: {found['bind_cpu_s']:.1f} CPU s, {each_ms:.3f} ms a pod",
            end="",
        )
        print(f", {1e3 / each_ms:,.0f} a CPU second, {found['bound_mib']:.0f} MiB", flush=True)
    if placed:
        for first in range(0, chosen.events, 100):
            server.change([each * 104_729 % placed for each in range(first, first + 100)])
            await server.until_shown()
        found["event_us"] = meter.lap() / chosen.events * 1e6
        print(f"{found['event_us']:.0f} µs an event: {found['event_us'] * 2e-3:.2f} cores at 2,000 a second")
    if chosen.churn:
        await churn(server, placed, chosen.churn)
    found["end_mib"] = mib()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(f"{found['end_mib']:.0f} MiB at the end, load {os.getloadavg()[0]:.0f}", flush=True)
    return found


def main() -> None:
    """Read the command line and measure."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--size", default="5000x100000+2000", help="nodes x placed pods + waiting pods")
    parser.add_argument(
        "--plain", action="store_true", help="waiting pods without affinities and constraints"
    )
    parser.add_argument("--bare", action="store_true", help="the same, and no default spreading")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--churn", type=int, default=0, help="replace all placed pods, so many at a time")
    parser.add_argument("--tell", type=int, default=10_000, help="bindings after which a line is printed")
    parser.add_argument("--patience", type=float, default=900.0, help="seconds for the bindings, at most")
    parser.add_argument("--output", type=Path, help="append the result as a line of JSON")
    chosen = parser.parse_args()
    gc.set_threshold(*THRESHOLDS)
    sizes, _, waiting = chosen.size.partition("+")
    nodes, placed = map(int, sizes.split("x"))
    found = asyncio.run(measure(chosen, nodes, placed, int(waiting or 0)))
    append(chosen.output, nodes=nodes, pods=placed, waiting=int(waiting or 0), **found)


if __name__ == "__main__":
    main()
