"""Plain requests to any API server that a kubeconfig names, with its credentials, and no models between."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from kubernetes_asyncio import client, config

from plimsoll.kube.session.http_client import opened_client
from plimsoll.kube.session.http_transport import tls_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from pathlib import Path

    from aiohttp import ClientResponse, ClientSession

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
#: Seconds that a request under way gets when the test is over.
GOODBYE_S = 10.0
#: The development cluster's context of its address without TLS: encrypting takes a third of a request's time.
PLAIN = "roadstead-http"
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
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _sent: set[asyncio.Task[Any]] = field(default_factory=set)

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        sends: str = "application/json",
        takes: str = "application/json",
        **query: str,
    ) -> Answer:
        """Send one request; a refusal is an answer like any other."""
        headers = {"Content-Type": sends, "Accept": takes}
        self._sent.add(exchange := asyncio.create_task(self._exchange(method, path, headers, body, query)))
        exchange.add_done_callback(self._sent.discard)
        # A test's deadline ends its wait, and not the request.
        return await asyncio.shield(exchange)

    async def _exchange(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: dict[str, Any] | None,
        query: dict[str, str],
    ) -> Answer:
        response = await self._call(method, path, headers, body, query)
        return Answer(response.status, _parsed(await response.read()))

    async def watch(self, path: str, version: str) -> AsyncIterator[dict[str, Any]]:
        """The events of a collection from a version on, until the API server ends the watch."""
        query = {"watch": "true", "resourceVersion": version}
        response = await self._call("GET", path, {"Accept": "application/json"}, None, query)
        rest = b""
        try:
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield msgspec.json.decode(line)
        finally:
            if response.connection and response.connection.transport:
                response.connection.transport.abort()  # TLS would wait for the other end to say goodbye
            response.close()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something concurrently with the test, until it ends at most; what fails then fails the test."""
        self._tasks.add(task := asyncio.create_task(work))
        task.add_done_callback(lambda done: done.cancelled() or done.exception() or self._tasks.discard(done))  # type: ignore[func-returns-value] # mypy does not see the change

    async def end(self) -> None:
        """End what was begun, and let requests that are under way be answered."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        if self._sent:
            await asyncio.wait(self._sent, timeout=GOODBYE_S)

    async def _call(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: dict[str, Any] | None,
        query: dict[str, str],
    ) -> ClientResponse:
        await self.api.update_params_for_auth(headers, [], ["BearerToken"])
        # Not by the client's own call: it looks for a proxy and a netrc in threads, before each request.
        session: ClientSession = self.api.rest_client.pool_manager
        address = f"{self.api.configuration.host}{path}"
        data = None if body is None else json.dumps(body)
        return await session.request(method, address, params=query, headers=headers, data=data)

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
    """Speak to the API server of a kubeconfig: without TLS where it has a context for that."""
    configuration = client.Configuration()
    contexts, _ = config.list_kube_config_contexts(str(kubeconfig))
    named = next((each["name"] for each in contexts if each["name"] == PLAIN), None)
    await config.load_kube_config(str(kubeconfig), context=named, client_configuration=configuration)
    async with opened_client(tls_of(configuration), has_proxies=False) as http:
        api = client.ApiClient(configuration)
        await api.rest_client.pool_manager.close()
        api.rest_client.pool_manager = http
        speaker = Speaker(api)
        try:
            yield speaker
        finally:
            await speaker.end()


def _parsed(content: bytes) -> dict[str, Any]:
    """A body; plain text, as for paths that are not served yet, counts as the message."""
    try:
        body: dict[str, Any] = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return {"message": content.decode(errors="replace")}
    return body
