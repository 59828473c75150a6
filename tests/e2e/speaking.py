"""Plain requests to any API server that a kubeconfig names, with its credentials, and no models between."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubernetes_asyncio import client, config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        """The sentence of a refusal."""
        return str(self.body.get("message", ""))

    def accepted(self) -> dict[str, Any]:
        """The body of an answer that must not be a refusal."""
        assert self.status < 300, self.body
        return self.body


@dataclass(frozen=True, slots=True)
class Speaker:
    """Somebody who speaks to an API server."""

    api: client.ApiClient

    async def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        sends: str = "application/json",
        takes: str = "application/json",
        **query: str,
    ) -> Answer:
        """Send one request; a refusal is an answer like any other."""
        response = await self.api.call_api(
            path,
            method,
            query_params=list(query.items()),
            header_params={"Content-Type": sends, "Accept": takes},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
        )
        return Answer(response.status, json.loads(await response.read()))

    async def install(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Create an object of a collection, or bring the spec of the one that is there up to date."""
        created = await self.request("POST", path, obj, fieldManager="plimsoll-tests")
        if created.status != 409:
            return created.accepted()
        change = {"spec": obj["spec"]}
        name = obj["metadata"]["name"]
        return (await self.request("PATCH", f"{path}/{name}", change, sends=MERGE)).accepted()


@asynccontextmanager
async def speaking(kubeconfig: Path) -> AsyncIterator[Speaker]:
    """Speak to the API server of a kubeconfig."""
    configuration = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    async with client.ApiClient(configuration) as api:
        yield Speaker(api)
