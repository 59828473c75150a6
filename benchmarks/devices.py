"""Pods with resource claims per second of the engine alone: no API server, one process, one core.

Every node has eight GPUs, by default 5,000 nodes; the pods of a shape have claims of one template, each pod
its own claim, as in production. A pod costs what it costs a scheduler that has the decoded objects: the claim
enters the book of devices, PreEnqueue, compiling the pod's template, deciding, Reserve, placing the pod, and
the written claim that the watch brings::

    python benchmarks/devices.py --nodes 500,5000 --shapes one,group

The first pod of a shape searches every node and is shown by itself. ``--per-node`` and ``--used`` make the
cases of scheduler_perf: ten devices a node, some of them taken before.
"""

import gc
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from output import append
from rich.console import Console
from rich.table import Table

from engine import in_child, scheduler
from plimsoll.commands.parameters import Option, command_of
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.bookings import Booking, DevicesPort
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Node, Pod, PodInfo, Snapshot, Status
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaim, ResourceClaimStatus
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice

DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"
MODEL = f'device.attributes["{DRIVER}"].model == "a100"'
QUARTER = f'device.attributes["{DRIVER}"].profile == "quarter"'


@dataclass(frozen=True, slots=True)
class Shape:
    """What the pods of a measurement ask for.

    Attributes:
        requests: Of the claim; without any the pod requests an extended resource.
        constraints: Of the claim.
        is_partitioned: Whether the GPUs of the nodes are cut into halves and quarters that share counters.
        is_full: Whether the oldest pod leaves for each new one.
        devices: That a pod takes.
    """

    requests: Sequence[dict[str, Any]] = ()
    constraints: Sequence[dict[str, Any]] = ()
    is_partitioned: bool = False
    is_full: bool = False
    devices: float = 1


def _request(count: int = 1, expression: str = MODEL, **more: Any) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}}]
    return {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": selectors,
    } | more


SHAPES = {
    "one": Shape([{"name": "r", "exactly": _request()}]),
    "eight": Shape([{"name": "r", "exactly": _request(8)}], devices=8),
    "group": Shape(
        [{"name": "r", "exactly": _request(4)}], [{"matchAttribute": f"{DRIVER}/numa"}], devices=4
    ),
    "first-available": Shape(
        [
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "new", **_request(2, MODEL.replace("a100", "h200"))},
                    {"name": "old", **_request()},
                ],
            }
        ]
    ),
    "partitions": Shape([{"name": "r", "exactly": _request(1, QUARTER)}], is_partitioned=True, devices=0.25),
    "extended": Shape(),
    "churn": Shape([{"name": "r", "exactly": _request()}], is_full=True),
}


class MemoryBinder:
    """Books allocations in the book of devices; what it writes is confirmed immediately."""

    def __init__(self, book: DeviceBook) -> None:
        self._book = book
        self._shares = 0
        self.booked: Sequence[Booking] = ()

    def share_id(self) -> str:
        """A new name."""
        self._shares += 1
        return f"share-{self._shares}"

    def assume(self, bookings: Sequence[Booking]) -> str:
        """The next decision sees the devices as taken."""
        self.booked = bookings
        for each in bookings:
            if each.allocation is not None:
                self._book.allocate(each.claim, each.allocation)
        return ""

    def forget(self, pod: PodInfo, bookings: Sequence[Booking]) -> None:
        """Nothing is taken back here."""
        raise NotImplementedError

    async def bind(self, pod: PodInfo, node: str, bookings: Sequence[Booking], timeout_s: float) -> Status:
        """Nothing is bound here."""
        raise NotImplementedError

    def confirm(self, pod: PodInfo) -> list[ResourceClaim]:
        """The claims as the watch brings them after they were written, in the book."""
        written = []
        consumer = Consumer(resource="pods", name=pod.pod.name, uid=pod.uid)
        for each in self.booked:
            status = ResourceClaimStatus(allocation=each.allocation, reserved_for=(consumer,))
            claim = ResourceClaim(metadata=each.claim.metadata, spec=each.claim.spec, status=status)
            self._book.set_claim(claim)
            self._book.release(claim)
            written.append(claim)
        return written


def nodes_of(count: int) -> Iterator[Node]:
    """Nodes with room for everything but devices."""
    for number in range(count):
        yield convert(
            Node,
            {
                "metadata": {
                    "name": f"node-{number}",
                    "labels": {"kubernetes.io/hostname": f"node-{number}"},
                },
                "status": {
                    "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )


def slices_of(node: str, gpus: int, *, is_partitioned: bool) -> Iterator[ResourceSlice]:
    """The slices of a node."""
    attributes: list[dict[str, Any]] = [
        {
            "model": {"string": "a100"},
            "index": {"int": number},
            "numa": {"int": number * 2 // gpus},
            "uuid": {"string": f"{node}-{number}"},
            "version": {"version": "1.2.3"},
        }
        for number in range(gpus)
    ]
    if not is_partitioned:
        devices = [
            {"name": f"gpu-{number}", "attributes": each, "capacity": {"memory": {"value": "80Gi"}}}
            for number, each in enumerate(attributes)
        ]
        yield _slice(node, "gpus", 1, devices=devices)
        return
    counters = [
        {"name": f"gpu-{number}", "counters": {"memory": {"value": "80Gi"}}} for number in range(gpus)
    ]
    yield _slice(node, "counters", 2, sharedCounters=counters)
    parts = (("whole", 1, 80), ("half", 2, 40), ("quarter", 4, 20))
    yield _slice(
        node,
        "gpus",
        2,
        devices=[
            {
                "name": f"gpu-{number}-{profile}-{part}",
                "attributes": {**each, "profile": {"string": profile}},
                "capacity": {"memory": {"value": f"{memory}Gi"}},
                "consumesCounters": [
                    {"counterSet": f"gpu-{number}", "counters": {"memory": {"value": f"{memory}Gi"}}}
                ],
            }
            for number, each in enumerate(attributes)
            for profile, pieces, memory in parts
            for part in range(pieces)
        ],
    )


def _slice(node: str, name: str, count: int, **spec: Any) -> ResourceSlice:
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    return convert(
        ResourceSlice,
        {
            "metadata": {"name": f"{node}-{name}"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **spec},
        },
    )


def pods_of(shape: Shape, prefix: str) -> Iterator[tuple[Pod, ResourceClaim | None]]:
    """Pods without end, each with its claim as the claim controller makes it."""
    number = 0
    while True:
        name, number = f"{prefix}-{number}", number + 1
        amounts: dict[str, object] = {"cpu": "100m", "memory": "500Mi"}
        if not shape.requests:
            amounts[RESOURCE] = "1"
        spec: dict[str, Any] = {"containers": [{"name": "pause", "resources": {"requests": amounts}}]}
        document: dict[str, Any] = {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": spec,
        }
        if not shape.requests:
            yield convert(Pod, document), None
            continue
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        document["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
        yield (
            convert(Pod, document),
            convert(
                ResourceClaim,
                {
                    "metadata": {
                        "name": name,
                        "namespace": "default",
                        "uid": f"claim-{name}",
                        "ownerReferences": [owner],
                    },
                    "spec": {
                        "devices": {"requests": list(shape.requests), "constraints": list(shape.constraints)}
                    },
                },
            ),
        )


class Scene:
    """A cluster whose nodes have devices, with its engine.

    Args:
        shape: What the pods ask for.
        nodes: How many.
        per_node: Devices of a node.
    """

    def __init__(self, shape: Shape, nodes: int, per_node: int) -> None:
        self.cluster = Cluster()
        self.book = self.cluster.objects.ledger(DeviceBook)
        self.book.is_served = True
        for node in nodes_of(nodes):
            self.cluster.set_node(node)
            for each in slices_of(node.name, per_node, is_partitioned=shape.is_partitioned):
                self.book.set_slice(each)
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        spec = {"selectors": [selector], "extendedResourceName": RESOURCE}
        self.book.set_class(convert(DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec}))
        self.engine: ProfileScheduler = scheduler(self.cluster)
        self._binder = MemoryBinder(self.book)
        self._gates = [each for each in self.engine.profile.pre_enqueue if each.name == "DynamicResources"]
        self.placed: list[tuple[PodInfo, list[ResourceClaim]]] = []

    def place(self, pod: Pod, claim: ResourceClaim | None) -> str:
        """One pod from the appearance of its claim to the written allocation; its outcome."""
        if claim is not None:
            self.book.set_claim(claim)
        info = self.cluster.templates.info(pod)
        snapshot = Snapshot(self.cluster)
        for gate in self._gates:
            gate.pre_enqueue_on(info, snapshot)  # type: ignore[attr-defined]  # of those that look at the cluster
        decision = schedule(self.engine, info)
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            return str(decision.outcome)
        assert decision.state is not None
        state = decision.state.clone()
        state.write(DevicesPort(Snapshot(self.cluster), self._binder))
        for plugin in self.engine.profile.reserve:
            plugin.reserve(state, info, decision.node)
        self.cluster.place(info, decision.node)
        self.placed.append((info, self._binder.confirm(info)))
        return str(decision.outcome)

    def leave(self, number: int) -> None:
        """One pod leaves with its claims."""
        info, claims = self.placed[number]
        self.cluster.displace(info.uid)
        for claim in claims:
            self.book.remove_claim(claim.key)


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement.

    Attributes:
        attempts: Scheduling attempts that were timed.
        cpu_us: CPU time an attempt, microseconds.
        first_ms: CPU time of the first pod of the shape, milliseconds.
        slowest_us: The 99th percentile of an attempt by the clock, microseconds.
        peak_mib: Peak resident memory of the whole process, MiB.
        outcomes: How many were scheduled, and how many not.
    """

    attempts: int
    cpu_us: float
    first_ms: float
    slowest_us: float
    peak_mib: float
    outcomes: dict[str, int]


def measure(name: str, nodes: int, per_node: int, used: float, most: int) -> Cell:
    """Run one cell in this process."""
    shape = SHAPES[name]
    scene = Scene(shape, nodes, per_node)
    room = int(nodes * per_node / shape.devices)
    arriving = pods_of(shape, "pod")
    gc.collect()
    gc.freeze()
    began = time.process_time()
    scene.place(*next(arriving))
    first = time.process_time() - began
    before = int(room * (0.5 if shape.is_full else used))
    for pair in islice(arriving, max(0, min(before, room - most) - 1)):
        scene.place(*pair)
    pods = list(islice(arriving, min(most, room - len(scene.placed))))
    gc.collect()
    gc.freeze()
    outcomes: dict[str, int] = {}
    durations: list[float] = []
    cpu = time.process_time()
    for number, pair in enumerate(pods):
        begun = time.process_time()
        outcome = scene.place(*pair)
        if shape.is_full:
            scene.leave(number)
        durations.append(time.process_time() - begun)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    cpu = time.process_time() - cpu
    return Cell(
        attempts=len(pods),
        cpu_us=cpu / len(pods) * 1e6,
        first_ms=first * 1e3,
        slowest_us=statistics.quantiles(durations, n=100)[-1] * 1e6,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        outcomes=outcomes,
    )


def main(
    nodes: Annotated[str, Option(help="Numbers of nodes, separated by commas.")] = "500,5000",
    shapes: Annotated[str, Option(help="Shapes, separated by commas.")] = ",".join(SHAPES),
    per_node: Annotated[int, Option(help="Devices of a node.")] = 8,
    used: Annotated[float, Option(help="Share of the devices that is taken before.")] = 0.0,
    most: Annotated[int, Option(help="Attempts a cell at most.")] = 2000,
    output: Annotated[Path | None, Option(help="Append each cell as a line of JSON.")] = None,
) -> None:
    """Print a table."""
    table = Table(title=f"Pods with claims, {per_node} devices a node, all default plugins, one core")
    for heading in (
        "nodes",
        "shape",
        "attempts",
        "pods/s of CPU",
        "CPU µs/pod",
        "first, ms",
        "p99 µs",
        "MiB",
        "",
    ):
        table.add_column(heading, justify="left" if heading in ("shape", "") else "right")
    for size in (int(number) for number in nodes.split(",")):
        for name in shapes.split(","):
            cell = in_child(measure, name, size, per_node, used, most)
            append(
                output,
                nodes=size,
                devices=size * per_node,
                shape=name,
                attempts=cell.attempts,
                pods_per_cpu_s=1e6 / cell.cpu_us,
                cpu_us=cell.cpu_us,
                first_ms=cell.first_ms,
                p99_us=cell.slowest_us,
                peak_mib=cell.peak_mib,
            )
            table.add_row(
                f"{size:,}",
                name,
                str(cell.attempts),
                f"{1e6 / cell.cpu_us:,.0f}",
                f"{cell.cpu_us:,.0f}",
                f"{cell.first_ms:,.0f}",
                f"{cell.slowest_us:,.0f}",
                f"{cell.peak_mib:,.0f}",
                ", ".join(f"{count} {outcome}" for outcome, count in sorted(cell.outcomes.items())),
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    command_of(main)()
