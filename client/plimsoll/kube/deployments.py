"""Reads Deployments, and writes the mark that starts a rollout of their pod template."""

from collections.abc import Sequence
from typing import Any

import msgspec
from kubernetes_asyncio import client

from plimsoll.kube.session.errors import APIError, answer_of, answered
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.typed_client import TypedClient, content_of
from plimsoll.model.decoding import DecodeError, decode
from plimsoll.model.kinds.deployment import SURGED, Deployment
from plimsoll.ports.writes import WriteOutcome, WriteResult

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
        self._apps = client.AppsV1Api(TypedClient(session))

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """All Deployments, page by page; templates are kept only for those with one replica."""
        found: list[Deployment] = []
        options: dict[str, Any] = {"limit": PAGE, "_request_timeout": TIMEOUT_S, "_preload_content": False}
        while True:
            try:
                page = decode(
                    _Page, await content_of(self._apps.list_deployment_for_all_namespaces(**options))
                )
                found += [_slim(decode(Deployment, item)) for item in page.items]
            except APIError as exc:
                return answer_of(exc), ()
            except DecodeError as exc:
                return WriteResult(WriteOutcome.UNKNOWN, str(exc)), ()
            if not page.metadata.token:
                return WriteResult(WriteOutcome.DONE), found
            options["_continue"] = page.metadata.token

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """One Deployment; None with GONE when it does not exist."""
        call = self._apps.read_namespaced_deployment(name, namespace, _preload_content=False)
        try:
            return WriteResult(WriteOutcome.DONE), decode(Deployment, await content_of(call))
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
        return await answered(
            self._apps.patch_namespaced_deployment(
                metadata.name, metadata.namespace, body, _preload_content=False
            )
        )


def _slim(deployment: Deployment) -> Deployment:
    if deployment.spec.replicas == 1:
        return deployment
    spec = msgspec.structs.replace(deployment.spec, template={})
    return msgspec.structs.replace(deployment, spec=spec)
