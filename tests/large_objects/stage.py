"""A scheduler without connections: documents of watches go in, bindings and conditions come out.

A document goes the way that it goes in the operator: it is decoded, shares equal parts with others, is
applied to the mirrored cluster and queues a pod; the loop takes the pod, decides, and binds it or explains
why not.
"""

import json
import time
from typing import Any

from plimsoll.app.scheduling_wing import GangParts
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.listed_objects import ObjectReader, event_of
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watched_resources import DEVICES, WATCHED
from plimsoll.framework.descheduling.pod_indexes import OwnerCounts, PodsByOwner, PodsByTemplate, ReadyCounts
from plimsoll.model.columns.pods_by_importance import PodsByImportance
from plimsoll.model.heavy_memory import apart
from plimsoll.model.heavy_objects import HEAVY_BYTES, is_heavy
from plimsoll.ports.observer import Observer
from plimsoll.testing.fakes import (
    FakeClock,
    settled,
)
from plimsoll.timing.timer import Timer
from plimsoll.watches.known_objects import KnownObjects
from scheduling.gangs.gang_scene import FakeGroupStatuses
from scheduling.wing_scene import WingScene

SCHEDULER = "s"


class Problems(Observer):
    """Collects what went wrong."""

    def __init__(self) -> None:
        self.skipped: list[str] = []
        self.failures: list[str] = []

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        self.skipped.append(problem)

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        self.failures.append(f"{plugin} {point}: {problem}")

    def failed(self, where: str, problem: str) -> None:
        self.failures.append(f"{where}: {problem}")


class Stage(WingScene):
    """The scheduler's parts, and what their fakes received.

    Args:
        nodes: Number of nodes, each with 8 CPUs.
        pods: Number of pods that are on them already.
    """

    def __init__(self, nodes: int, pods: int) -> None:
        clock, self.problems = FakeClock(), Problems()
        self.timer = Timer(clock, self.problems)
        super().__init__(
            clock=clock,
            observer=self.problems,
            book=ReservationBook(Cache(), self.timer),
            gangs=GangParts(Groups(), FakeGroupStatuses(), self.timer),
        )
        self.place()
        self.wing.serve_devices(is_served=True)
        watched = {each.name: each.kind for each in (*WATCHED, *DEVICES)}
        self._names = 0
        self.in_use = 0  #: memory after the latest object
        self.readers = {name: ObjectReader(kind) for name, kind in watched.items()}
        self.known = {name: KnownObjects() for name in watched}
        for number in range(nodes):
            self.show("nodes", encoded(a_node(number)))
        for number in range(pods):
            self.show("pods", encoded(a_pod(f"p{number}", "others", node=f"node-{number % nodes}")))
        for kind in (PodsByImportance, OwnerCounts, ReadyCounts, PodsByOwner, PodsByTemplate):
            self.cache.cluster.index(kind)  # as after a preemption and a plan

    def show(self, resource: str, document: bytes) -> Any:
        """Apply a document of a watch; returns the object."""
        with apart(len(document) > HEAVY_BYTES):
            return self._shown(resource, document)

    def _shown(self, resource: str, document: bytes) -> Any:
        reader, known = self.readers[resource], self.known[resource]
        reader.let_go()
        new, name, problems = reader.document(document)
        for problem in problems:
            self.problems.object_skipped(resource, name, problem)
        if new is None:
            return None
        meta = new.metadata
        old = known.find(meta.namespace, meta.name)
        new = reader.sharing(new, old)
        known.put(new)
        self.ingestion.apply([event_of(old, new)])
        return new

    def delete(self, resource: str, shown: Any) -> None:
        """Apply the deletion of an object."""
        meta = shown.metadata
        with apart(is_heavy(shown)):
            old = self.known[resource].pop(meta.namespace, meta.name)
            if old is not None:
                self.readers[resource].gone(old)
                self.ingestion.apply([event_of(old, None)])

    def bookmark(self) -> None:
        """What each watch sends once a minute."""
        for each in self.readers.values():
            each.let_go()

    async def schedule(self, document: bytes) -> tuple[Any, float]:
        """Show a waiting pod and let the loop try it; returns the pod and the CPU seconds of both."""
        began = time.process_time()
        shown = self.show("pods", document)
        await settled()
        return shown, time.process_time() - began

    def new_name(self) -> str:
        """A name that no other object of this stage has."""
        self._names += 1
        return f"t{self._names}"

    async def rest(self) -> None:
        """Let every task run until it waits."""
        await settled()

    def is_bound(self, pod: Any) -> bool:
        """Whether the loop has sent the pod's binding."""
        return pod.key in self.binder.bound

    def forget_messages(self) -> None:
        """Empty the fakes: an API server would have the messages now."""
        for each in (self.binder.bound, self.statuses.conditions):
            each.clear()
        for fake in (self.recorder, self.statuses):
            for held in vars(fake).values():
                if isinstance(held, (list, dict)):
                    held.clear()


def encoded(document: dict[str, Any]) -> bytes:
    """A document as a server sends it."""
    return json.dumps(document, separators=(",", ":")).encode()


def a_node(number: int) -> dict[str, Any]:
    """A node as a cloud makes it."""
    name = f"node-{number}"
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": f"zone-{number % 3}",
                "disk": "ssd",
            },
        },
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "example.com/gpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": ["app:1"], "sizeBytes": 10**7}],
        },
    }


def a_pod(name: str, namespace: str, node: str = "", **spec: Any) -> dict[str, Any]:
    """A pod of scheduler ``s``; on a node, it runs there."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}",
            "labels": {"app": namespace},
            "resourceVersion": "1",
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "nodeName": node,
            "containers": [
                {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}}}
            ],
            **spec,
        },
        "status": {"phase": "Running"} if node else {},
    }
