"""OpenB with its GPUs as devices: jobs that wait for several GPUs of one node, with and without moves.

    python benchmarks/openb_devices.py --trace FOLDER [--seeds 3] [--count 8]
    python benchmarks/openb_devices.py --trace FOLDER --ways defragment plain

Every GPU of a node is a device, and a pod with GPUs has a claim of its own; one that asks for a part of a GPU
gets a whole one. The pods of the list are placed in order, then some end at random, as jobs do: free GPUs are
scattered. Jobs come that need ``--count`` GPUs of one node each. Each way starts from the same cluster: the
scheduler alone, MakeRoomForPending when the jobs are there, and DefragmentResource before they come. Each
move is planned with a proof, and made only if the target still gives its devices; no device is given twice.
The way ``plain`` is DefragmentResource with the GPUs as a plain extended resource, to compare its CPU time.
"""

import argparse
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from openb import NOW, SCHEDULER, Shape, Trace, drawn_trace, read_trace
from rich.console import Console
from rich.table import Table

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.fork_devices import MOST_STEPS, TIMEOUT_S
from plimsoll.devices.pod_devices import held_for
from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod, PodInfo, Registry, Snapshot
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.columns import validate

DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"


@dataclass(slots=True)
class Experiment:
    """The cluster, its pending pods and its scheduler; GPUs are devices, or a plain extended resource."""

    trace: Trace
    seed: int
    has_devices: bool = True
    moves: int = 0
    cluster: Cluster = field(default_factory=Cluster)
    pending: dict[str, PodInfo] = field(default_factory=dict)
    scheduler: ProfileScheduler = field(init=False)

    def __post_init__(self) -> None:
        book = self.book
        book.is_served = True
        book.set_class(convert(DeviceClass, {"metadata": {"name": "gpu"}}))
        for number, node in enumerate(self.trace.nodes):
            name = f"node-{number:04}"
            plain = {} if self.has_devices or not node.gpu else {RESOURCE: node.gpu // 1000}
            self.cluster.set_node(
                a_node(name, cpu=f"{node.cpu}m", memory=f"{node.memory}Mi", allocatable=plain)
            )
            if not self.has_devices:
                continue
            devices = [{"name": f"gpu-{at}"} for at in range(node.gpu // 1000)]
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
            if devices:
                book.set_slice(convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec}))
        enabled = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        profile = build_profile(ProfileConfig(SCHEDULER), Registry(PLUGINS), enabled)
        self.scheduler = ProfileScheduler(profile, self.cluster, choose=random.Random(self.seed).randrange)

    @property
    def book(self) -> DeviceBook:
        """The devices."""
        return self.cluster.objects.ledger(DeviceBook)

    def submit(self, name: str, shape: Shape, gpus: int, priority: int = 0) -> None:
        """A pod comes, with a claim if it asks for GPUs."""
        more: dict[str, Any] = {}
        if gpus and not self.has_devices:
            more["requests"] = {RESOURCE: gpus}
        elif gpus:
            more["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{gpus}"}]
            made = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
            more["status"] = {"phase": "Pending", "resourceClaimStatuses": made}
        pod = a_pod(
            name,
            owner=f"ReplicaSet/{name}",
            cpu=f"{shape.cpu}m",
            memory=f"{shape.memory}Mi",
            priority=priority,
            **more,
        )
        self._claim(pod, gpus)
        self.pending[pod.uid] = self.cluster.templates.info(pod)

    def _claim(self, pod: Pod, gpus: int) -> None:
        if not gpus or not self.has_devices:
            return
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        name = f"{pod.name}-gpu"
        asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": gpus}
        document = {
            "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}},
        }
        self.book.set_claim(convert(ResourceClaim, document))

    def place_pending(self) -> None:
        """Try every pending pod; one that is like another that fits nowhere is not tried."""
        hopeless = set()
        for uid, pod in list(self.pending.items()):
            kind = (pod.requests["cpu"], pod.requests["memory"], self._gpus(pod))
            if kind in hopeless:
                continue
            decision = schedule(self.scheduler, pod)
            if decision.node:
                self.place(self.pending.pop(uid), decision.node)
            else:
                hopeless.add(kind)

    def _gpus(self, pod: PodInfo) -> int:
        if not self.has_devices:
            return pod.requests.get(RESOURCE, 0)
        claim = self.book.claims.get(f"{pod.key}-gpu")
        requests = () if claim is None else claim.spec.devices.requests
        return sum(0 if each.exactly is None else each.exactly.count for each in requests)

    def place(self, pod: PodInfo, node: str) -> None:
        """Bind a pod, with the devices that it gets there."""
        claim = self.book.claims.get(f"{pod.key}-gpu")
        if claim is not None:
            row = self.cluster.rows[node]
            hold = held_for(pod, Snapshot(self.cluster), row, MOST_STEPS, TIMEOUT_S)
            if hold is None:
                raise RuntimeError(f"{node} has no devices for {pod.key}")
            user = Consumer(resource="pods", name=pod.name, uid=pod.uid)
            self.book.set_claim(claim.allocated(hold.given[claim.key], (user,)))
        spec = msgspec.structs.replace(pod.pod.spec, node_name=node)
        status = msgspec.structs.replace(pod.pod.status, phase="Running")
        running = msgspec.structs.replace(pod.pod, spec=spec, status=status)
        self.cluster.place(self.cluster.templates.info(running), node)

    def end(self, share: float) -> None:
        """Pods end, drawn at random, and those that wait are forgotten."""
        rng = random.Random(self.seed)
        for uid in sorted(self.cluster.pods):
            if rng.random() < share:
                pod = self.cluster.displace(uid)
                if pod is not None:
                    self.book.remove_claim(f"{pod.key}-gpu")
        for pod in self.pending.values():
            self.book.remove_claim(f"{pod.key}-gpu")
        self.pending.clear()

    def rebalance(self, name: str, args: dict[str, Any]) -> None:
        """Run one strategy until it has nothing to propose."""
        strategy = StrategyRegistry(IN_TREE).build(name, args, name)
        protections = {"extraEnabled": ["PodsWithPVC"]}
        evictor = EvictorRegistry(EVICTORS).build(
            "DefaultEvictor", {"minReplicas": 0, "podProtections": protections}, "evictor"
        )
        rebalancing = RebalancingConfig(
            strategies=[strategy],
            evictors=(evictor,),
            profiles={SCHEDULER: self.scheduler.profile},
            limits=Limits(per_workload=NO_CEILING),
            planner=Planner.PROVEN,
        )
        while True:
            around = PlanningContext(NOW, unplaced=self.pending.values())
            made = make_plan(rebalancing, self.cluster, around)
            if made.failures:
                raise RuntimeError(str(made.failures[0]))
            if not made.moves:
                return
            ends = {move.bundle: position for position, move in enumerate(made.moves)}
            for position, move in enumerate(made.moves):
                self._move(move.pod, move.target)
                if move.beneficiary is not None and ends[move.bundle] == position:
                    self.place(self.pending.pop(move.beneficiary.pod.uid), move.beneficiary.node)
            self.moves += len(made.moves)
            validate(self.cluster)
            if max(self.book.taken.whole.values(), default=0) > 1:
                raise RuntimeError("a device was given twice")

    def _move(self, pod: PodInfo, target: str) -> None:
        gpus = self._gpus(pod)
        self.cluster.displace(pod.uid)
        self.book.remove_claim(f"{pod.key}-gpu")
        shape = Shape(pod.requests["cpu"], pod.requests["memory"] >> 20, 0)
        self.submit(f"{pod.name}x", shape, gpus, pod.priority)
        uid, fresh = next(reversed(self.pending.items()))
        del self.pending[uid]
        self.place(fresh, target)


WAYS = {
    "alone": "the scheduler alone",
    "room": "MakeRoomForPending",
    "defragment": "DefragmentResource before",
    "plain": "DefragmentResource before, of a plain resource",
}


def carried_out(
    trace: Trace, seed: int, way: str, count: int, jobs: int, ended: float
) -> tuple[int, int, float]:
    """How many jobs start, with how many moves, in how many CPU seconds of plans."""
    found = Experiment(trace, seed, has_devices=way != "plain")
    for number, shape in enumerate(trace.pods):
        found.submit(f"p{number}", shape, -(-shape.gpu // 1000))
    found.place_pending()
    found.end(ended)
    began = time.process_time()
    if way == "defragment":
        devices = {"deviceClassName": "gpu", "count": count}
        found.rebalance("DefragmentResource", {"devices": devices, "maxMovesPerBlock": count})
    if way == "plain":
        found.rebalance("DefragmentResource", {"block": {RESOURCE: count}, "maxMovesPerBlock": count})
    for number in range(jobs):
        found.submit(f"job{number}", Shape(8_000, 32_768, 0), count, priority=1)
    if way == "room":
        found.place_pending()
        found.rebalance("MakeRoomForPending", {"maxMovesPerPod": count})
    found.place_pending()
    return jobs - len(found.pending), found.moves, time.process_time() - began


def main() -> None:
    """Print a line a way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, help="The folder of the OpenB lists; a drawn cluster without.")
    parser.add_argument("--pod-list", default="gpuspec33")
    parser.add_argument("--nodes", type=int, default=60, help="Of the drawn cluster.")
    parser.add_argument("--pods", type=int, default=330, help="Of the drawn cluster.")
    parser.add_argument("--count", type=int, default=8, help="GPUs of a job.")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--ended", type=float, default=0.4, help="Share of the pods that end.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[way for way in WAYS if way != "plain"])
    given = parser.parse_args()

    table = Table(title=f"{given.jobs} jobs of {given.count} GPUs each")
    for column in ("seed", "", "jobs that start", "moves", "CPU s"):
        table.add_column(column, justify="left" if not column else "right")
    for seed in range(1, given.seeds + 1):
        trace = (
            drawn_trace(given.nodes, given.pods, seed)
            if given.trace is None
            else read_trace(given.trace, given.pod_list)
        )
        for way in given.ways:
            started, moves, seconds = carried_out(trace, seed, way, given.count, given.jobs, given.ended)
            table.add_row(str(seed), WAYS[way], str(started), str(moves), f"{seconds:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
