"""GET and PATCH deployments: the mark that starts a rollout of a pod template, and nothing else of it."""

from collections.abc import Sequence

import msgspec

from plimsoll.kube.session.errors import APIError, answer_of, answered
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.deployment import SURGED, Deployment
from plimsoll.ports.writes import WriteOutcome, WriteResult

PATH = "/apis/apps/v1"

#: Deployments in a page of a list: a few megabytes.
PAGE = 500

#: Seconds for a page to be answered.
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
        """All of them, page by page; a template is kept where one pod is wanted."""
        found: list[Deployment] = []
        token = ""
        while True:
            params = {"limit": str(PAGE)} | ({"continue": token} if token else {})
            try:
                body = await self._session.request(
                    "GET", f"{PATH}/deployments", params=params, timeout_s=TIMEOUT_S
                )
                page = decode(_Page, body)
                found += [_slim(decode(Deployment, item)) for item in page.items]
            except APIError as exc:
                return answer_of(exc), ()
            except DecodeError as exc:
                return WriteResult(WriteOutcome.UNKNOWN, str(exc)), ()
            token = page.metadata.token
            if not token:
                return WriteResult(WriteOutcome.DONE), found

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """One of them."""
        try:
            body = await self._session.request("GET", f"{PATH}/namespaces/{namespace}/deployments/{name}")
            return WriteResult(WriteOutcome.DONE), decode(Deployment, body)
        except APIError as exc:
            return answer_of(exc), None
        except DecodeError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, str(exc)), None

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write the mark into the template of this very version."""
        metadata = deployment.metadata
        body = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "spec": {"template": {"metadata": {"annotations": {SURGED: mark}}}},
        }
        path = f"{PATH}/namespaces/{metadata.namespace}/deployments/{metadata.name}"
        return await answered(self._session.request("PATCH", path, body, content_type=MERGE_PATCH))


def _slim(deployment: Deployment) -> Deployment:
    if deployment.spec.replicas == 1:
        return deployment
    spec = msgspec.structs.replace(deployment.spec, template={})
    return msgspec.structs.replace(deployment, spec=spec)
