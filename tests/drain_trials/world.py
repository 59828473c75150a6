"""World is what runs on the nodes that are to be emptied; Ledger counts how much of it is ready."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from e2e.gangs import GROUP_LABEL, a_group, members
from e2e.polls import eventually
from e2e.speaker import MERGE

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

#: Workloads by kind: Deployments of one replica, Deployments and StatefulSets of three with a budget.
SINGLES, SEVERAL, STATEFUL, REPLICAS = 8, 4, 2, 3

#: Members of the gang, all of which it needs.
MEMBERS = 4

#: Seconds between two looks at the pods, and between two changes of the load.
LOOK_S, LOAD_S = 0.1, 10.0


@dataclass(slots=True)
class Ledger:
    """How many ready pods each workload had and should have had.

    Attributes:
        wanted: Ready pods that each workload is to have, by label ``app``.
        short: Pod seconds below that, by workload; those that were never short are left out.
        below: Pod seconds below what the workload's budget demands; without a budget, below 1.
        uids: Of the pods of these workloads that were seen.
        broken: Moments at which the gang had fewer members than it needs.
    """

    wanted: dict[str, int]
    short: dict[str, float] = field(default_factory=dict)
    below: dict[str, float] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)
    broken: int = 0

    def see(self, pods: list[Obj], elapsed_s: float) -> None:
        """Count the pods as they have been for so long."""
        ready = Counter(each["metadata"]["labels"].get("app", "") for each in pods if is_ready(each))
        self.uids |= {each["metadata"]["uid"] for each in pods if _app(each) in self.wanted}
        for app, wanted in self.wanted.items():
            if ready[app] < wanted:
                self.short[app] = self.short.get(app, 0.0) + elapsed_s * (wanted - ready[app])
            if ready[app] < (least := max(1, wanted - 1)):
                self.below[app] = self.below.get(app, 0.0) + elapsed_s * (least - ready[app])
        gang = [each for each in pods if GROUP_LABEL in each["metadata"]["labels"]]
        self.broken += bool(gang) and sum(map(is_ready, gang)) < MEMBERS

    @property
    def restarted(self) -> int:
        """Pods that came beyond those that were there at first."""
        return len(self.uids) - sum(self.wanted.values())


def is_ready(pod: Obj) -> bool:
    """Whether a service would send it requests."""
    conditions = pod["status"].get("conditions") or ()
    is_good = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_good and "deletionTimestamp" not in pod["metadata"]


def _app(pod: Obj) -> str:
    return str(pod["metadata"]["labels"].get("app", ""))


@dataclass(slots=True)
class World:
    """The workloads of one trial, on a scene's nodes."""

    scene: Scene
    old: list[str] = field(default_factory=list)  #: the nodes to empty, in order
    ledger: Ledger = field(default_factory=lambda: Ledger({}))

    async def make(self, nodes: int) -> None:
        """Make the old nodes, all workloads on them, and then as many new nodes.

        The gang and the pod without an owner are alone on the last two old nodes.
        """
        scene = self.scene
        own = {"dedicated": "true"}
        self.old = [await scene.node(f"old-{number:02}") for number in range(nodes - 2)]
        await scene.scheduling()
        gang, bare = [await scene.node(f"old-{name}", labels={"holds": name}) for name in ("gang", "bare")]
        self.old += [gang, bare]
        await a_group(scene, "ranks", MEMBERS)
        await members(scene, "ranks", MEMBERS, nodeSelector={"holds": "gang"})
        await scene.pod("solo", labels=own, nodeSelector={"holds": "bare"})
        await scene.until_bound("solo")
        await eventually(lambda: scene.running(**{GROUP_LABEL: "ranks"}), lambda found: len(found) == MEMBERS)
        for name in (gang, bare):
            await scene.change_node(name, {"spec": {"unschedulable": True}})
        wanted: dict[str, int] = {}
        for number in range(SINGLES):
            wanted[f"single-{number}"] = 1
            await scene.deployment(f"single-{number}", 1, cpu="500m")
        for number in range(SEVERAL):
            wanted[f"several-{number}"] = REPLICAS
            await scene.deployment(f"several-{number}", REPLICAS, cpu="500m")
            await scene.budget(f"several-{number}", f"several-{number}", minAvailable=REPLICAS - 1)
        for number in range(STATEFUL):
            wanted[f"stateful-{number}"] = REPLICAS
            await self._stateful_set(f"stateful-{number}")
            await scene.budget(f"stateful-{number}", f"stateful-{number}", maxUnavailable=1)
        await scene.deployment("load", 2)
        for name in (gang, bare):
            await scene.change_node(name, {"spec": {"unschedulable": None}})
        for number in range(nodes):
            await scene.node(f"new-{number:02}")
        self.ledger = Ledger(wanted)

    async def _stateful_set(self, name: str) -> None:
        scene, labels = self.scene, {"app": name}
        document: Obj = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": REPLICAS,
                "serviceName": name,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": scene.pod_spec(cpu="500m")},
            },
        }
        await scene.make(scene.path("statefulsets", "/apis/apps/v1"), document)
        await scene.until_running(REPLICAS, **labels)

    async def end_what_stays(self) -> None:
        """The gang's work ends, and the owner of the pod without a controller deletes it."""
        names = [f"ranks-{number}" for number in range(MEMBERS)]
        for name in ("solo", *names):
            (await self.scene.speaker.request("DELETE", self.scene.path(f"pods/{name}"))).accepted()

    async def on_old_nodes(self, *, with_staying: bool) -> list[str]:
        """Pods that are on nodes that are to be emptied."""
        found = await self.scene.pods()
        staying = {"solo", *(f"ranks-{number}" for number in range(MEMBERS))}
        return [
            each["metadata"]["name"]
            for each in found
            if each["spec"].get("nodeName") in self.old
            and (with_staying or each["metadata"]["name"] not in staying)
        ]

    async def watch(self) -> None:
        """Keep the ledger until cancelled."""
        before = time.monotonic()
        while True:
            pods = await self.scene.pods()
            now = time.monotonic()
            self.ledger.see(pods, now - before)
            before = now
            await asyncio.sleep(LOOK_S)

    async def load(self) -> None:
        """Scale a Deployment up and down until cancelled."""
        path, number = self.scene.path("deployments/load", "/apis/apps/v1"), 0
        while True:
            number += 1
            change = {"spec": {"replicas": 2 + number % 3 * 2}}
            await self.scene.speaker.request("PATCH", path, change, sends=MERGE)
            await asyncio.sleep(LOAD_S)
