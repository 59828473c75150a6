"""The world of a race: nodes with GPUs, partitions and shared devices; pods of two schedulers for them.

Where the cluster simulates nodes, these have GPUs already; elsewhere nodes, their kubelets and the slices of
their GPUs are made here, and taken away at the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from e2e.scene import LABEL, Scene
from e2e.speaker import Answer, Speaker
from promises.commits import Obj
from promises.pods import is_leaving, is_over, node_of
from roadstead.kubelets.devices import Devices

NAMESPACE = "plimsoll-race"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GROUP = "/apis/resource.k8s.io/v1"
SPACE = f"{GROUP}/namespaces/{NAMESPACE}"
POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

GPU, PARTS, SHARED = "gpu.example.com", "parts.example.com", "shared.example.com"

#: Claims that pods of both schedulers name.
NAMED = ("common-1", "common-2")

#: Nodes, with GPUs each, that are made where the cluster simulates none, and their number with other devices.
NODES, GPUS, NODES_WITH_OTHERS = 5, 4, 3

#: Seconds until a kind must be served.
SERVED_S = 60.0


def _request(device_class: str, count: int = 1, **more: Any) -> Obj:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **more}
    return {"name": "r", "exactly": exactly}


#: Templates of claims, keyed by name.
TEMPLATES: dict[str, Obj] = {
    "one": {"requests": [_request("race-gpu")]},
    "two": {"requests": [_request("race-gpu", 2)], "constraints": [{"matchAttribute": f"{GPU}/numa"}]},
    "either": {
        "requests": [
            {
                "name": "r",
                "firstAvailable": [
                    {
                        "name": "many",
                        "deviceClassName": "race-gpu",
                        "count": 4,
                        "allocationMode": "ExactCount",
                    },
                    {
                        "name": "one",
                        "deviceClassName": "race-gpu",
                        "count": 1,
                        "allocationMode": "ExactCount",
                    },
                ],
            }
        ]
    },
    "part": {"requests": [_request("race-parts")]},
    "share": {"requests": [_request("race-shared", capacity={"requests": {"memory": "10Gi"}})]},
}


class World:
    """What a race has made in a cluster, and changes.

    Args:
        speaker: To the API server.
        random: What is made, and what leaves.
        wanted: Pods that are there at a time.
        schedulers: Their schedulers.
    """

    def __init__(self, speaker: Speaker, random: Random, wanted: int, schedulers: Sequence[str]) -> None:
        self._speaker = speaker
        self._random = random
        self._wanted = wanted
        self._schedulers = schedulers
        self._scene = Scene(speaker, NAMESPACE)
        self._selector: dict[str, str] = {}
        self.created = self.deleted = 0

    async def _ask(self, method: str, path: str, body: Obj | None = None) -> Answer:
        return await self._speaker.request(method, path, body)

    async def make(self, ours: Sequence[str], *, simulates_nodes: bool) -> None:
        """Definitions, policies, classes, templates, slices, and nodes where the cluster has none of ours.

        Args:
            ours: The schedulers that get a policy.
            simulates_nodes: Whether the cluster has nodes with GPUs and kubelets.
        """
        folder = Path(__file__).parents[2] / "crds"
        for path in sorted(folder.glob("*.yaml")):
            definition = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
            await self._speaker.install(DEFINITIONS, definition)
        deadline = time.monotonic() + SERVED_S
        while (await self._ask("GET", POLICIES)).status != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{POLICIES} is not served")
            await asyncio.sleep(0.2)
        await self._scene.begin()
        for name in ours:
            policy = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy"}
            spec: Obj = {"scheduling": {"schedulerName": name}}
            await self._scene.make(POLICIES, {**policy, "metadata": {"name": name}, "spec": spec})
        for name, driver in (("race-gpu", GPU), ("race-parts", PARTS), ("race-shared", SHARED)):
            selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
            await self._make("DeviceClass", f"{GROUP}/deviceclasses", name, {"selectors": selectors})
        for name, devices in TEMPLATES.items():
            spec = {"spec": {"devices": devices}}
            await self._make("ResourceClaimTemplate", f"{SPACE}/resourceclaimtemplates", name, spec)
        nodes = await self._simulated() if simulates_nodes else await self._played()
        for node in nodes[:NODES_WITH_OTHERS]:
            for name, spec in _slices(node):
                await self._make("ResourceSlice", f"{GROUP}/resourceslices", name, spec)

    async def _simulated(self) -> list[str]:
        nodes = (await self._ask("GET", "/api/v1/nodes")).accepted()["items"]
        return [each["metadata"]["name"] for each in nodes]

    async def _played(self) -> list[str]:
        self._selector = {LABEL: NAMESPACE}
        nodes = [await self._scene.node(f"n{number}", cpu="64") for number in range(NODES)]
        for node in nodes:
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": GPU, "nodeName": node, "pool": pool, "devices": Devices(GPUS).listed(node)}
            await self._make("ResourceSlice", f"{GROUP}/resourceslices", f"{node}-gpus", spec)
        return nodes

    async def clear(self) -> None:
        """Take away what was made; the definitions stay."""
        await self._scene.end()

    async def _make(self, kind: str, path: str, name: str, spec: Obj) -> None:
        metadata = {"name": name}
        document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
        await self._scene.make(path, document)

    async def churn(self) -> None:
        """Pods arrive and leave, until cancelled."""
        while True:
            pods = (await self._ask("GET", PODS)).body.get("items") or []
            there = [each for each in pods if not is_leaving(each) and not is_over(each)]
            for _ in range(min(4, max(0, self._wanted - len(there)))):
                await self._add()
            leaving = [each for each in there if self._random.random() < (0.08 if node_of(each) else 0.01)]
            for each in leaving:
                self.deleted += 1
                await self._ask("DELETE", f"{PODS}/{each['metadata']['name']}", {"gracePeriodSeconds": 0})
            await self._renew_named()
            await asyncio.sleep(self._random.uniform(0.05, 0.3))

    async def _renew_named(self) -> None:
        """Claims with a name of their own are made again after somebody has deleted them."""
        for name in NAMED:
            if self._random.random() < 0.02:
                await self._ask("DELETE", f"{SPACE}/resourceclaims/{name}")
            spec = {"devices": TEMPLATES["one"]}
            document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
            await self._ask(
                "POST", f"{SPACE}/resourceclaims", {**document, "metadata": {"name": name}, "spec": spec}
            )

    async def _add(self) -> None:
        self.created += 1
        name = f"pod-{self.created}"
        claims: list[Obj] = []
        for place in range(self._random.choice((1, 1, 1, 2))):
            template = self._random.choice(("one", "one", "two", "either", "part", "share"))
            claims.append({"name": f"c{place}", "resourceClaimTemplateName": template})
        if self._random.random() < 0.15:
            claims = [{"name": "c", "resourceClaimName": self._random.choice(NAMED)}]
        container = {
            "name": "main",
            "image": "registry.example/train:1",
            "resources": {"requests": {"cpu": "50m"}, "claims": [{"name": each["name"]} for each in claims]},
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "schedulerName": self._random.choice(self._schedulers),
                "nodeSelector": self._selector,
                "containers": [container],
                "resourceClaims": claims,
                "terminationGracePeriodSeconds": self._random.choice((0, 1)),
            },
        }
        (await self._ask("POST", PODS, pod)).accepted()


def _slices(node: str) -> list[tuple[str, Obj]]:
    """Two GPUs in parts that share counters, and one device that several claims may use."""
    pool = {"name": f"{node}-parts", "generation": 1, "resourceSliceCount": 2}
    base = {"driver": PARTS, "nodeName": node, "pool": pool}
    counters = [{"name": f"gpu-{number}", "counters": {"memory": {"value": "40Gi"}}} for number in range(2)]
    devices = [
        {
            "name": f"gpu-{number}-{size}-{part}",
            "consumesCounters": [
                {"counterSet": f"gpu-{number}", "counters": {"memory": {"value": f"{size}Gi"}}}
            ],
        }
        for number in range(2)
        for size in (40, 20, 10)
        for part in range(40 // size)
    ]
    shared = {
        "driver": SHARED,
        "nodeName": node,
        "pool": {"name": f"{node}-shared", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {"name": "net", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
        ],
    }
    return [
        (f"{node}-counters", {**base, "sharedCounters": counters}),
        (f"{node}-parts", {**base, "devices": devices}),
        (f"{node}-shared", shared),
    ]
