"""Reads Deployments, and writes what surges need: a mark, a number of replicas, a pod's cost of deletion."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from plimsoll.kube.adoption import APPLY_PATCH
from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.model.autoscalers.horizontal_pod_autoscaler import HorizontalPodAutoscaler
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.deployment import DELETION_COST, SURGED, Deployment
from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.ports.writes import WriteOutcome, WriteResult

PATH = "/apis/apps/v1/deployments"

AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"

#: The field manager of costs of deletion, and the least cost.
CHOOSER, LEAST = "plimsoll-surge", str(-(2**31) + 1)

ObjectT = TypeVar("ObjectT", bound=ApiObject)

DONE = WriteResult(WriteOutcome.DONE)

#: Deployments per page of a list: a few megabytes.
PAGE = 500

#: Timeout of a page in seconds.
TIMEOUT_S = 30.0


class _ListMeta(msgspec.Struct, rename={"token": "continue"}):
    token: str = ""


class _Page(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] = []


class DeploymentRollouts:
    """Reads Deployments on demand, caches none, and starts their rollouts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """All Deployments, page by page; templates are kept only for those with one replica."""
        try:
            return DONE, [_slim(each) async for each in self._all(PATH, Deployment)]
        except APIError as exc:
            return answer_of(exc), ()
        except DecodeError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, str(exc)), ()

    async def autoscaled(self, namespace: str = "") -> tuple[WriteResult, Mapping[str, str]]:
        """The name of the HorizontalPodAutoscaler of each Deployment that has one, by namespace/name."""
        path = AUTOSCALERS if not namespace else AUTOSCALERS.replace("/v2/", f"/v2/namespaces/{namespace}/")
        found = {}
        try:
            async for each in self._all(path, HorizontalPodAutoscaler):
                found[each.deployment] = each.name
        except APIError as exc:
            return answer_of(exc), {}
        except DecodeError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, str(exc)), {}
        return DONE, found

    async def _all(self, path: str, kind: type[ObjectT]) -> AsyncIterator[ObjectT]:
        params = {"limit": str(PAGE)}
        while True:
            page = decode(_Page, await self._session.request("GET", path, params=params, timeout_s=TIMEOUT_S))
            for item in page.items:
                yield decode(kind, item)
            if not page.metadata.token:
                return
            params["continue"] = page.metadata.token

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """One Deployment; None with GONE when it does not exist."""
        try:
            content = await self._session.request("GET", _path(namespace, name))
            return DONE, decode(Deployment, content)
        except APIError as exc:
            return answer_of(exc), None
        except DecodeError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, str(exc)), None

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write the mark into the pod template, if the Deployment still has this version."""
        metadata = deployment.metadata
        body = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "spec": {"template": {"metadata": {"annotations": {SURGED: mark}}}},
        }
        return await self._session.merge(_path(metadata.namespace, metadata.name), body)

    async def scale(self, deployment: Deployment, replicas: int, manager: str) -> WriteResult:
        """Write the number of replicas through the subresource, if the Deployment still has this version."""
        metadata = deployment.metadata
        body = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "spec": {"replicas": replicas},
        }
        path = f"{_path(metadata.namespace, metadata.name)}/scale"
        return await self._session.merge(path, body, params={"fieldManager": manager})

    async def prefer(self, namespace: str, name: str, uid: str, *, leaves: bool) -> WriteResult:
        """Apply the least cost of deletion to this very pod, or no longer: others' costs are a conflict.

        Annotations may be written with a pod's status, for which there is a right already.
        Source: kube-apiserver v1.36, ``pkg/registry/core/pod/strategy.go`` (``podStatusStrategy``).
        """
        metadata: dict[str, object] = {"name": name, "namespace": namespace, "uid": uid}
        if leaves:
            metadata["annotations"] = {DELETION_COST: LEAST}
        return await self._session.write(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
            content_type=APPLY_PATCH,
            params={"fieldManager": CHOOSER},
        )


def _path(namespace: str, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def _slim(deployment: Deployment) -> Deployment:
    """Without what is only read of a Deployment of one replica, and without managers of other fields."""
    managers = tuple(each for each in deployment.metadata.managed_fields if each.writes_replicas)
    metadata = msgspec.structs.replace(deployment.metadata, managed_fields=managers)
    if deployment.spec.replicas == 1:
        return msgspec.structs.replace(deployment, metadata=metadata)
    spec = msgspec.structs.replace(deployment.spec, template={})
    return msgspec.structs.replace(deployment, metadata=metadata, spec=spec)
