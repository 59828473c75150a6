"""The load: nodes without kubelets, the families' pods, and a trivial binder for those that are there before.

Families are those of ``../workloads.yaml`` (kube-scheduler's scheduler_perf), with numbers that one machine
can create and delete in a minute.
"""

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import yaml
from device_load import POD, DeviceLoad

from plimsoll.kube.session.errors import APIError, NotFound
from plimsoll.kube.session.session import Session

NAME = "plimsoll-benchmark"
CONCURRENCY = 32
BINDINGS = 100  # simultaneously, as many as our scheduler has in flight
PATIENCE_S = 600.0
TRIES = 10
RESOURCES = {"cpu": "4", "memory": "32Gi", "pods": "110"}
HERE = Path(__file__).resolve().parent
WORKLOADS: Mapping[str, Any] = yaml.safe_load((HERE.parent / "workloads.yaml").read_text())
CRDS = HERE.parent.parent / "crds"

#: Pods that nothing has room for, before and during the measurement, and seconds between two more of them.
UNSCHEDULABLE, CHURN_S = 200, 0.2
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


@dataclass(frozen=True, slots=True)
class Family:
    """What is measured.

    Attributes:
        name: Of ``workloads.yaml``.
        initial: Patterns of pods that are on nodes before.
        measured: The pattern of the pods that are measured.
        most: How many pods of it the nodes can take, by node.
        churns: Whether pods that fit nowhere come and go meanwhile.
        has_claims: Whether its pods have resource claims, and the nodes devices.
    """

    name: str
    initial: tuple[Mapping[str, Any], ...]
    measured: Mapping[str, Any]
    most: float = 10.0
    churns: bool = False
    has_claims: bool = False


def family(name: str) -> Family:
    """A family by its name."""
    if name == "devices":
        return Family(name, (), POD, most=POD["perNode"], has_claims=True)
    found = copy.deepcopy(WORKLOADS[name])
    if found.get("zones") == 1:  # all families share the nodes, which have three zones in one region
        found = orjson.loads(orjson.dumps(found).replace(ZONE.encode(), REGION.encode()))
    initial, measured = found["initial"], found["measured"]
    if name == "preemption":  # one pod fills a node, as four do there: a quarter of the pods to make
        initial = [{"perNode": 1, "requests": {"cpu": "3600m", "memory": 500 * 2**20}}]
    if name == "unschedulable":
        return Family(name, tuple(initial), WORKLOADS["basic"]["measured"], churns=True)
    return Family(name, tuple(initial), measured, most=measured["perNode"])


def a_node(number: int) -> dict[str, Any]:
    """A node that only this benchmark's pods may use."""
    name = f"{NAME}-{number:05}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "benchmark": NAME,
                "kubernetes.io/hostname": name,
                ZONE: f"zone{number % 3 + 1}",
                REGION: "region",
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


def a_pod(name: str, pattern: Mapping[str, Any], scheduler: str, variety: int) -> dict[str, Any]:
    """A pod of a pattern, of one of ten workloads."""
    spec = {key: value for key, value in pattern.get("spec", {}).items() if key != "priority"}
    if "priority" in pattern.get("spec", {}):
        spec["priorityClassName"] = NAME
    requests = pattern.get("requests", {"cpu": "100m", "memory": 500 * 2**20})
    resources: dict[str, Any] = {"requests": {key: str(value) for key, value in requests.items()}}
    if claims := pattern.get("claims"):
        spec["resourceClaims"] = [{"name": each, "resourceClaimTemplateName": NAME} for each in claims]
        resources["claims"] = [{"name": each} for each in claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAME,
            "labels": {"app": f"app-{variety}", **pattern.get("labels", {})},
        },
        "spec": {
            **spec,
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": resources,
                }
            ],
        },
    }


async def all_of(
    make: Callable[[int], Awaitable[object]], numbers: Iterable[int], concurrency: int = CONCURRENCY
) -> None:
    """Carry out many requests, some of them simultaneously."""
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            await make(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())


class Load:
    """What the benchmark puts into a cluster and takes out of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.devices = DeviceLoad(session, NAME)

    async def install(self) -> None:
        """Install our definitions, the namespace and the priority class, unless they are there."""
        for file in sorted(CRDS.glob("*.yaml")):
            with suppress(APIError):
                definition = yaml.safe_load(file.read_text())
                path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
                await self.session.request("POST", path, definition)
        priority = {"metadata": {"name": NAME}, "value": 10, "preemptionPolicy": "PreemptLowerPriority"}
        with suppress(APIError):
            await self.session.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
        with suppress(APIError):
            await self.session.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAME}})
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                await self.session.request("GET", "/apis/plimsoll.dev/v1alpha1/schedulingpolicies")
            except APIError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)
            else:
                return

    async def nodes(self, numbers: Iterable[int]) -> None:
        """Create nodes."""

        async def create(number: int) -> None:
            with suppress(APIError):  # left over from a run that was interrupted
                await self.session.request("POST", "/api/v1/nodes", a_node(number))

        await all_of(create, numbers)

    async def with_devices(self, nodes: int) -> None:
        """Give the nodes devices, and what pods need to claim them."""
        await self.devices.begin()
        await all_of(lambda number: self.devices.publish(f"{NAME}-{number:05}"), range(nodes))

    async def pod(self, pod: Mapping[str, Any]) -> None:
        """Create a pod; a new namespace takes a moment until its service account is there."""
        for left in reversed(range(TRIES)):
            try:
                await self.session.request("POST", f"/api/v1/namespaces/{NAME}/pods", pod)
            except APIError:
                if not left:
                    raise
                await asyncio.sleep(0.5)
            else:
                return

    async def pods(self, prefix: str, pattern: Mapping[str, Any], scheduler: str, count: int) -> None:
        """Create pods of a pattern."""
        await all_of(
            lambda number: self.pod(a_pod(f"{prefix}-{number:06}", pattern, scheduler, number % 10)),
            range(count),
        )

    async def bind(self, prefix: str, count: int, nodes: int) -> float:
        """Bind pods in turn to nodes, with an event each as every scheduler writes; pods a second.

        Nothing is decided and nothing is watched: no scheduler that talks to this API server is faster.
        """

        async def bind(number: int) -> None:
            name, node = f"{prefix}-{number:06}", f"{NAME}-{number % nodes:05}"
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self.session.request("POST", f"/api/v1/namespaces/{NAME}/pods/{name}/binding", body)
            event = {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"{name}.{time.time_ns():x}", "namespace": NAME},
                "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "reportingController": NAME,
                "reportingInstance": NAME,
                "action": "Binding",
                "reason": "Scheduled",
                "regarding": {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": NAME},
                "note": f"Successfully assigned {NAME}/{name} to {node}",
                "type": "Normal",
            }
            await self.session.request("POST", f"/apis/events.k8s.io/v1/namespaces/{NAME}/events", event)

        began = time.perf_counter()
        await all_of(bind, range(count), BINDINGS)
        return count / (time.perf_counter() - began)

    async def churn(self, scheduler: str) -> None:
        """Until cancelled: one more pod that fits nowhere, and one less."""
        pattern = WORKLOADS["unschedulable"]["measured"]
        path = f"/api/v1/namespaces/{NAME}/pods"
        number = 0
        while True:
            await self.pod(a_pod(f"churn-{number:06}", pattern, scheduler, number % 10))
            if number >= 5:
                with suppress(APIError):
                    await self.session.request("DELETE", f"{path}/churn-{number - 5:06}")
            number += 1
            await asyncio.sleep(CHURN_S)

    async def events(self) -> int:
        """How many events there are."""
        path = f"/apis/events.k8s.io/v1/namespaces/{NAME}/events"
        params, found = {"limit": "5000"}, 0
        while True:
            page = orjson.loads(await self.session.request("GET", path, params=params))
            found += len(page["items"])
            params["continue"] = page["metadata"].get("continue", "")
            if not params["continue"]:
                return found

    async def empty(self) -> None:
        """Delete all pods and wait until they are gone; a busy API server may have to be asked again."""
        path = f"/api/v1/namespaces/{NAME}/pods"
        events = f"/apis/events.k8s.io/v1/namespaces/{NAME}/events"
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(APIError):
                await self.session.request("DELETE", path, params={"gracePeriodSeconds": "0"}, timeout_s=60)
                await self.session.request("DELETE", events, timeout_s=60)
            with suppress(APIError):
                page = await self.session.request("GET", path, params={"limit": "1"})
                if not orjson.loads(page)["items"]:
                    await self.devices.empty()
                    return
            await asyncio.sleep(0.2)
        raise RuntimeError(f"the pods of {NAME} do not go")

    async def clean(self, nodes: int) -> None:
        """Take everything away, and wait until the namespace is gone: a control plane needs a moment."""
        await self.empty()
        await self.devices.clean()
        for path in (
            f"/apis/plimsoll.dev/v1alpha1/schedulingpolicies/{NAME}",
            f"/apis/scheduling.k8s.io/v1/priorityclasses/{NAME}",
            f"/api/v1/namespaces/{NAME}",
        ):
            with suppress(APIError):
                await self.session.request("DELETE", path)

        async def drop(number: int) -> None:
            with suppress(APIError):
                await self.session.request("DELETE", f"/api/v1/nodes/{NAME}-{number:05}")

        await all_of(drop, range(nodes))
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                await self.session.request("GET", f"/api/v1/namespaces/{NAME}")
            except NotFound:
                return
            await asyncio.sleep(0.2)
        raise RuntimeError(f"the namespace {NAME} does not go")
