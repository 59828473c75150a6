"""A small API client for the demo: JSON in, JSON out, over the connection of a kubeconfig."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import aiohttp
import orjson

Obj = dict[str, Any]

#: Concurrent writes: enough to keep a server busy, few enough to be polite.
CONCURRENCY = 32

#: The path of each kind that the demo uses; ``{ns}`` is replaced by the namespace.
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{ns}/pods",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Job": "/apis/batch/v1/namespaces/{ns}/jobs",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates",
    "Deployment": "/apis/apps/v1/namespaces/{ns}/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "SchedulingPolicy": "/apis/plimsoll.dev/v1alpha1/schedulingpolicies",
    "Eviction": "/apis/plimsoll.dev/v1alpha1/namespaces/{ns}/evictions",
}


class RequestError(Exception):
    """The API server refused.

    Attributes:
        status: HTTP status.
        message: Its sentence.
    """

    def __init__(self, what: str, status: int, message: str) -> None:
        super().__init__(what, status, message)
        self.what = what
        self.status = status
        self.message = message

    def __str__(self) -> str:
        """What was asked, and why not."""
        return f"{self.what}: {self.status} {self.message}"


class Client:
    """Talks to one API server.

    Args:
        session: An aiohttp session that carries address and credentials.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(
        self, method: str, path: str, body: Obj | None = None, content_type: str = "application/json"
    ) -> Obj:
        """One exchange.

        Raises:
            RequestError: The server answered with a failure.
        """
        async with self._session.request(
            method,
            path,
            data=None if body is None else orjson.dumps(body),
            headers={"Content-Type": content_type},
        ) as response:
            answer: Obj = orjson.loads(await response.read())
            if response.status >= 400:
                raise RequestError(f"{method} {path}", response.status, answer.get("message", ""))
            return answer

    async def create(self, manifest: Obj) -> Obj:
        """Create an object, its status too where the manifest has one."""
        path = path_of(manifest["kind"], manifest["metadata"].get("namespace", ""))
        return await self.request("POST", path, manifest)

    async def create_all(self, manifests: Iterable[Obj]) -> None:
        """Create many concurrently."""
        gate = asyncio.Semaphore(CONCURRENCY)

        async def one(manifest: Obj) -> None:
            async with gate:
                await self.create(manifest)

        await asyncio.gather(*(one(manifest) for manifest in manifests))

    async def list(self, kind: str, namespace: str = "", fields: str = "") -> Sequence[Obj]:
        """All objects of a kind, or those that a field selector names."""
        path = path_of(kind, namespace) + (f"?fieldSelector={fields}" if fields else "")
        items: Sequence[Obj] = (await self.request("GET", path)).get("items", [])
        return items

    async def patch(self, kind: str, name: str, body: Obj, namespace: str = "") -> Obj:
        """Merge-patch one object."""
        path = f"{path_of(kind, namespace)}/{name}"
        return await self.request("PATCH", path, body, "application/merge-patch+json")

    async def evict(self, pod: Obj) -> bool:
        """Ask for a pod's eviction; False when a budget refuses it for now."""
        meta = pod["metadata"]
        path = f"{path_of('Pod', meta['namespace'])}/{meta['name']}/eviction"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        }
        try:
            await self.request("POST", path, body)
        except RequestError as exc:
            if exc.status == 429:
                return False
            if exc.status != 404:
                raise
        return True

    async def watch(self, kind: str, namespace: str = "") -> AsyncIterator[Obj]:
        """Every state of every object of a kind, the present one first, until cancelled."""
        path = path_of(kind, namespace)
        listed = await self.request("GET", path)
        for item in listed.get("items", []):
            yield item
        version = listed["metadata"]["resourceVersion"]
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(
            path, params={"watch": "true", "resourceVersion": version}, timeout=timeout
        ) as response:
            async for line in response.content:
                event = orjson.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]


def path_of(kind: str, namespace: str = "") -> str:
    """The collection of a kind; without a namespace that of all namespaces."""
    path = PATHS[kind]
    return path.replace("{ns}", namespace) if namespace else path.replace("/namespaces/{ns}", "")
