"""Reads Deployments, and writes the mark that starts a rollout of their pod template."""

from collections.abc import Sequence

import msgspec

from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.deployment import SURGED, Deployment
from plimsoll.ports.writes import WriteOutcome, WriteResult

PATH = "/apis/apps/v1/deployments"

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
        found: list[Deployment] = []
        params = {"limit": str(PAGE)}
        while True:
            try:
                content = await self._session.request("GET", PATH, params=params, timeout_s=TIMEOUT_S)
                page = decode(_Page, content)
                found += [_slim(decode(Deployment, item)) for item in page.items]
            except APIError as exc:
                return answer_of(exc), ()
            except DecodeError as exc:
                return WriteResult(WriteOutcome.UNKNOWN, str(exc)), ()
            if not page.metadata.token:
                return WriteResult(WriteOutcome.DONE), found
            params["continue"] = page.metadata.token

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """One Deployment; None with GONE when it does not exist."""
        try:
            content = await self._session.request("GET", _path(namespace, name))
            return WriteResult(WriteOutcome.DONE), decode(Deployment, content)
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


def _path(namespace: str, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def _slim(deployment: Deployment) -> Deployment:
    if deployment.spec.replicas == 1:
        return deployment
    spec = msgspec.structs.replace(deployment.spec, template={})
    return msgspec.structs.replace(deployment, spec=spec)
