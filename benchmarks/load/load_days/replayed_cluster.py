"""ReplayedCluster plays a world on the development cluster: an operator places and moves its pods, none here.

Workloads are ReplicaSets. Each minute every pod says by an annotation what it uses then, and the cluster's
metrics API answers with that. Which pod of a workload is which tenant of the world is this module's choice:
the one that has none takes the first that waits. A pod that vanishes before its workload ends was evicted.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from load_days.measures import Tally
from load_days.world import Tenant, World
from roadstead.clients import RunningCluster
from roadstead.served_resources import JsonObject

#: A pod uses what this annotation says.
USAGE = "roadstead.test/usage"

SCHEDULER, NAMESPACE = "load", "default"

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
MERGE = {"Content-Type": "application/merge-patch+json"}

#: Seconds between two looks at the pods, and until all first pods have nodes.
LOOK_S, PLACED_S = 2.0, 120.0


class Unplaced(World):
    """A world that places nothing: its pods wait until they are said to have a node."""

    def _attempt(self, tenant: Tenant) -> None:
        """An operator does."""


@dataclass(slots=True)
class ReplayedCluster:
    """One day on one cluster.

    Args:
        cluster: Has as many nodes as the world.
        minute_s: Seconds that a minute of the day takes.
    """

    cluster: RunningCluster
    world: Unplaced
    tally: Tally
    minute_s: float = 60.0
    _tenants: dict[str, str] = field(default_factory=dict, init=False)  #: uids in the world, keyed by pod
    _workloads: set[str] = field(default_factory=set, init=False)
    _numbers: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        names = sorted(each["metadata"]["name"] for each in self.cluster.list("nodes"))
        self._numbers = dict(zip(names, self.world.names, strict=True))

    def begin(self) -> None:
        """Start the first workloads, and wait until they have their nodes.

        Raises:
            TimeoutError: Some have none in time.
        """
        self._start_and_end()
        deadline = time.monotonic() + PLACED_S
        while self.world.waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.world.waiting)} of the first pods have no node")
            self._look()
        self.world.placements.clear()

    def go_on(self) -> None:
        """Until the day is over."""
        scenario, next_at = self.world.scenario, time.monotonic()
        for _ in range(int(scenario.seconds / scenario.grain_s)):
            next_at += self.minute_s * scenario.grain_s / 60
            while time.monotonic() < next_at:
                self._look()
            self.world.advance()
            self._start_and_end()
            self._use()
            for placement in self.world.placements:
                self.tally.placed(placement)
            self.world.placements.clear()
            self.tally.step()

    def _look(self) -> None:
        """See which pods went, came and found nodes."""
        time.sleep(min(LOOK_S, self.minute_s / 4))
        world, came = self.world, list[JsonObject]()
        found = {
            each["metadata"]["name"]: each
            for each in self.cluster.request("GET", PODS)["items"]
            if "deletionTimestamp" not in each["metadata"]
        }
        for name, uid in list(self._tenants.items()):
            if name in found:
                continue
            del self._tenants[name]
            if uid in world.tenants:
                self.tally.moved(world.tenants[uid])
                world.evict(uid)
        free = {uid: each for uid, each in world.waiting.items() if uid not in self._tenants.values()}
        for name, pod in found.items():
            owner = pod["metadata"]["labels"]["app"]
            if name not in self._tenants:
                uid = next((uid for uid, each in free.items() if each.owner == owner), "")
                if not uid:
                    continue  # its workload has ended
                del free[uid]
                self._tenants[name] = uid
                came.append(pod)
            waits, node = world.waiting.get(self._tenants[name]), pod["spec"].get("nodeName")
            if waits is not None and node:
                world.settle(waits, self._numbers[node])
        for pod in came:
            self._tell(pod["metadata"]["name"])

    def _start_and_end(self) -> None:
        """Create the workloads that have begun, the largest first, and delete those that have ended."""
        there = dict[str, list[Tenant]]()
        for tenant in self.world.tenants.values():
            there.setdefault(tenant.owner, []).append(tenant)
        for owner in sorted(there.keys() - self._workloads, key=lambda each: -there[each][0].shape.cpu):
            self._workloads.add(owner)
            self.cluster.request("POST", REPLICA_SETS, self._replica_set(owner, there[owner]))
        for owner in self._workloads - there.keys():
            self._workloads.remove(owner)
            self.cluster.request("DELETE", f"{REPLICA_SETS}/{owner}")

    def _replica_set(self, owner: str, tenants: list[Tenant]) -> JsonObject:
        shape = tenants[0].shape
        requests = {"cpu": f"{shape.cpu}m", "memory": str(shape.memory)}
        metadata = {"labels": {"app": owner}, "annotations": {USAGE: self._usage(tenants[0])}}
        container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": owner},
            "spec": {
                "replicas": len(tenants),
                "selector": {"matchLabels": {"app": owner}},
                "template": {
                    "metadata": metadata,
                    "spec": {"schedulerName": SCHEDULER, "containers": [container]},
                },
            },
        }

    def _use(self) -> None:
        """All pods say what they use now."""
        for name, uid in self._tenants.items():
            if uid in self.world.tenants:
                self._tell(name)

    def _tell(self, name: str) -> None:
        usage = self._usage(self.world.tenants[self._tenants[name]])
        change = {"metadata": {"annotations": {USAGE: usage}}}
        self.cluster.request("PATCH", f"{PODS}/{name}", change, headers=MERGE)

    def _usage(self, tenant: Tenant) -> str:
        slots, demand = np.array([tenant.slot]), self.world.demand
        cpu, memory = demand.cpu(self.world.now, slots)[0], demand.memory(self.world.now, slots)[0]
        return f"cpu={round(float(cpu))}m,memory={round(float(memory))}"
