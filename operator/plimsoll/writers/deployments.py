"""Reads Deployments, and writes what surges need: a mark, a number of replicas, a pod's cost of deletion.

Rollouts and CloneSets are read as Deployments where the API server has them.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from plimsoll.kube.adoption import APPLY_PATCH
from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.model.autoscalers.horizontal_pod_autoscaler import HorizontalPodAutoscaler
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.deployment import DELETION_COST, LEAST_COST, SURGED, WANTED_GONE, Deployment
from plimsoll.model.kinds.scaled_workloads import SCALED
from plimsoll.ports.writes import WriteOutcome, WriteResult

AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"

#: The field managers of costs of deletion: in surges, and of pods that a plan wants gone.
CHOOSER, WISHER = "plimsoll-surge", "plimsoll-wanted-gone"

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
            return DONE, [_slim(each) async for each in self._all_of("Deployment")]
        except APIError as exc:
            return answer_of(exc), ()
        except DecodeError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, str(exc)), ()

    async def autoscaled(self, namespace: str = "") -> tuple[WriteResult, Mapping[str, str]]:
        """The name of the HorizontalPodAutoscaler of each that has one, by ``Kind namespace/name``."""
        path = AUTOSCALERS if not namespace else AUTOSCALERS.replace("/v2/", f"/v2/namespaces/{namespace}/")
        found = {}
        try:
            async for item in self._all(path):
                each = decode(HorizontalPodAutoscaler, item)
                found[each.scaled] = each.name
        except APIError as exc:
            return answer_of(exc), {}
        except DecodeError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, str(exc)), {}
        return DONE, found

    async def others(self) -> tuple[Sequence[Deployment], Mapping[str, str]]:
        """Rollouts and CloneSets, and by kind why they could not be read; none where they are not served."""
        found: list[Deployment] = []
        unread = {}
        for kind in SCALED.keys() - {"Deployment"}:
            try:
                found += [_slim(each) async for each in self._all_of(kind)]
            except (APIError, DecodeError) as exc:
                is_served = not isinstance(exc, APIError) or answer_of(exc).verdict is not WriteOutcome.GONE
                unread[kind] = (
                    f"the {kind}s could not be read: {exc}" if is_served else f"no {kind}s are served"
                )
        return found, unread

    async def _all_of(self, kind: str) -> AsyncIterator[Deployment]:
        async for item in self._all(SCALED[kind].path()):
            yield SCALED[kind].read(item)

    async def _all(self, path: str) -> AsyncIterator[msgspec.Raw]:
        params = {"limit": str(PAGE)}
        while True:
            page = decode(_Page, await self._session.request("GET", path, params=params, timeout_s=TIMEOUT_S))
            for item in page.items:
                yield item
            if not page.metadata.token:
                return
            params["continue"] = page.metadata.token

    async def read(
        self, namespace: str, name: str, kind: str = "Deployment"
    ) -> tuple[WriteResult, Deployment | None]:
        """One object of this kind; None with GONE when it does not exist."""
        try:
            content = await self._session.request("GET", SCALED[kind].path(namespace, name))
            return DONE, SCALED[kind].read(content)
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
        path = SCALED[deployment.kind].path(metadata.namespace, metadata.name)
        return await self._session.merge(path, body)

    async def scale(self, deployment: Deployment, replicas: int, manager: str) -> WriteResult:
        """Write the number of replicas through the subresource, if the Deployment still has this version."""
        metadata = deployment.metadata
        body = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "spec": {"replicas": replicas},
        }
        path = f"{SCALED[deployment.kind].path(metadata.namespace, metadata.name)}/scale"
        return await self._session.merge(path, body, params={"fieldManager": manager})

    async def prefer(self, namespace: str, name: str, uid: str, *, leaves: bool) -> WriteResult:
        """Apply the least cost of deletion to this very pod, or no longer: others' costs are a conflict."""
        annotations = {DELETION_COST: LEAST_COST} if leaves else {}
        return await _annotate(self._session, (namespace, name, uid), annotations, CHOOSER)


class PodCosts:
    """Writes costs of deletion that policies ask for, as a field manager of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def want_gone(self, namespace: str, name: str, uid: str, policy: str) -> WriteResult:
        """Apply the least cost and the mark of that policy to this very pod; "" takes both away."""
        annotations = {DELETION_COST: LEAST_COST, WANTED_GONE: policy} if policy else {}
        return await _annotate(self._session, (namespace, name, uid), annotations, WISHER)


async def _annotate(
    session: Session, pod: tuple[str, str, str], annotations: Mapping[str, str], manager: str
) -> WriteResult:
    """Have these annotations of a pod (namespace, name, uid) and no others as this manager, without force.

    Annotations may be written with a pod's status, for which there is a right already.
    Source: kube-apiserver v1.36, ``pkg/registry/core/pod/strategy.go`` (``podStatusStrategy``).
    """
    namespace, name, uid = pod
    metadata: dict[str, object] = {"name": name, "namespace": namespace, "uid": uid}
    if annotations:
        metadata["annotations"] = annotations
    return await session.write(
        "PATCH",
        f"/api/v1/namespaces/{namespace}/pods/{name}/status",
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
        content_type=APPLY_PATCH,
        params={"fieldManager": manager},
    )


def _slim(deployment: Deployment) -> Deployment:
    """Without what is only read of a Deployment of one replica, and without managers of other fields."""
    managers = tuple(each for each in deployment.metadata.managed_fields if each.writes_replicas)
    metadata = msgspec.structs.replace(deployment.metadata, managed_fields=managers)
    if deployment.spec.replicas == 1:
        return msgspec.structs.replace(deployment, metadata=metadata)
    spec = msgspec.structs.replace(deployment.spec, template={})
    return msgspec.structs.replace(deployment, metadata=metadata, spec=spec)
