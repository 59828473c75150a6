"""The family *devices*: nodes with GPUs, and pods that each have a claim on one, made from a template."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session

#: GPUs of a node.
GPUS = 8
DRIVER = "benchmark.plimsoll.dev"
GROUP = "/apis/resource.k8s.io/v1"
SLICES, CLASSES = f"{GROUP}/resourceslices", f"{GROUP}/deviceclasses"
#: Seconds until the claim controller has done its part.
PATIENCE_S = 300.0

#: A pod of the family; the template has the name of the benchmark.
POD: dict[str, Any] = {"perNode": GPUS, "claims": ["gpu"]}


class DeviceLoad:
    """What the family needs besides pods.

    Args:
        name: Of the namespace, the class and the template, and the prefix of nodes.
    """

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self._space = f"{GROUP}/namespaces/{name}"
        self._published: set[str] = set()

    async def begin(self) -> None:
        """Create the class and the template, unless they are there."""
        selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        exactly = {"deviceClassName": self._name, "allocationMode": "ExactCount", "count": 1}
        template = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
        await self._make(CLASSES, "DeviceClass", self._name, {"selectors": selectors})
        kind = "ResourceClaimTemplate"
        await self._make(f"{self._space}/resourceclaimtemplates", kind, self._name, template)

    async def publish(self, node: str) -> None:
        """Give a node its slice, unless it has one."""
        if node in self._published:
            return
        self._published.add(node)
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [
            {"name": f"gpu-{number}", "attributes": {"index": {"int": number}}} for number in range(GPUS)
        ]
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        await self._make(SLICES, "ResourceSlice", node, spec)

    async def _make(self, path: str, kind: str, name: str, spec: dict[str, Any]) -> None:
        document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        with suppress(APIError):  # there from an earlier family
            await self._session.request("POST", path, {**document, "spec": spec})

    async def until_claimed(self) -> None:
        """Wait until every pod's status names its claim."""
        await self._until(
            f"/api/v1/namespaces/{self._name}/pods",
            lambda pods: all((pod.get("status") or {}).get("resourceClaimStatuses") for pod in pods),
        )

    async def empty(self) -> None:
        """Delete the claims of pods that are gone, and wait until the controller has let go of them."""
        if not self._published:
            return
        path = f"{self._space}/resourceclaims"
        await self._session.request("DELETE", path, timeout_s=60)
        await self._until(path, lambda claims: not claims)

    async def clean(self) -> None:
        """Delete the slices and the class; the template goes with its namespace."""
        if not self._published:
            return
        selector = {"fieldSelector": f"spec.driver={DRIVER}"}
        for path, params in ((SLICES, selector), (f"{CLASSES}/{self._name}", None)):
            with suppress(APIError):
                await self._session.request("DELETE", path, params=params, timeout_s=60)
        self._published.clear()

    async def _until(self, path: str, done: Callable[[list[Any]], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done(orjson.loads(await self._session.request("GET", path))["items"]):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the claim controller does not keep up: {path}")
            await asyncio.sleep(1.0)
