"""One connection to one API server: address, TLS and credentials by kubernetes-asyncio, bytes by us.

The generated client reads kubeconfigs and tokens. Its typed APIs send their requests through this session
(:mod:`plimsoll.kube.session.typed_client`); hot paths do without its models, which take 0.27 ms a pod
(docs/adr/0001).
"""

import copy
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self
from urllib.request import getproxies_environment

import aiohttp
import orjson
from aiohttp.abc import AbstractStreamWriter
from kubernetes_asyncio import client

import plimsoll
from plimsoll.kube.session.answer_bodies import lines, parsed
from plimsoll.kube.session.api_client import opened_client
from plimsoll.kube.session.connections import Wire
from plimsoll.kube.session.credentials import Credentials, loader
from plimsoll.kube.session.errors import (
    APIError,
    Fenced,
    Unauthorized,
    Unavailable,
    answer_of,
    error_of,
)
from plimsoll.kube.session.write_gate import Gate, WriteFence, no_gate
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

#: Seconds for an ordinary request to be answered; watches have a limit of their own.
REQUEST_TIMEOUT_S = 30.0

#: The User-Agent header, for the server's audit log.
AGENT = f"plimsoll/{plimsoll.__version__}"

#: Concurrent connections for reading, and as many for writing.
CONNECTIONS = 100

#: Bytes of a watch that wait to be read before the server is held back.
READ_BUFFER_BYTES = 2**21

#: No connection, or no answer in time.
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


#: Why a request is not sent, "" when it may be (:func:`plimsoll.kube.access_reviews.permissions`).
Permissions = Callable[[str, str], str]


class _Body(aiohttp.BytesPayload):
    """A body that passes a gate: without its body a request is incomplete."""

    def __init__(self, content: bytes, gate: Callable[[], None]) -> None:
        super().__init__(content, content_type=JSON)
        self._gate = gate

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._gate()
        await super().write_with_length(writer, content_length)


class Session:
    """Sends requests; raises :mod:`plimsoll.kube.session.errors`.

    Args:
        own_client: Whether writes go over connections of ours (docs/adr/0016), which cost less; else through
            aiohttp, as reads do.
    """

    def __init__(
        self, api_client: client.ApiClient, credentials: Credentials, *, own_client: bool = True
    ) -> None:
        self.credentials = credentials
        self._fence: WriteFence | None = None
        self._observer: Observer | None = None
        self._permissions: Permissions | None = None
        self.configuration = api_client.configuration  #: also for clients with their own connections (kopf)
        # The client's own session looks for proxies and .netrc in two threads a request; where the
        # environment names no proxy that is half of what a request costs. Its TLS is kept.
        pooled: aiohttp.ClientSession = api_client.rest_client.pool_manager
        self._http = aiohttp.ClientSession(
            connector=pooled.connector,
            connector_owner=False,
            read_bufsize=READ_BUFFER_BYTES,
            trust_env=bool(getproxies_environment()),
        )
        self._server_hostname: str | None = api_client.rest_client.server_hostname
        self._proxy: str | None = api_client.rest_client.proxy
        self.address: str = str(self.configuration.host).rstrip("/")
        tls = getattr(pooled.connector, "_ssl", None)
        self._wire: Wire | None = None
        direct = own_client and not self._proxy and not getproxies_environment()
        if direct and isinstance(tls, ssl.SSLContext):
            self._wire = Wire(self.address, tls, self._server_hostname, CONNECTIONS, AGENT)

    def fenced(self, fence: WriteFence) -> Self:
        """The same connection, whose writes pass a fence."""
        behind = copy.copy(self)
        behind._fence = fence  # noqa: SLF001 - our own
        return behind

    def observed(self, observer: Observer) -> Self:
        """The same connection; its exchanges are reported to the observer."""
        observed = copy.copy(self)
        observed._observer = observer  # noqa: SLF001 - our own
        return observed

    def permitted(self, permissions: Permissions) -> Self:
        """The same connection, which does not send what is known to be refused."""
        careful = copy.copy(self)
        careful._permissions = permissions  # noqa: SLF001 - our own
        return careful

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> bytes:
        """One exchange; the body of a successful answer.

        Raises:
            APIError: The server refused, or did not answer in time, or the fence is closed.
        """
        denial = "" if self._permissions is None else self._permissions(method, path)
        if denial:
            raise Unauthorized(f"{method} {path}", 403, "Forbidden", denial)
        fence, content = self._fence, None if body is None else orjson.dumps(body)
        if fence is None or method == "GET":
            return await self._exchange(
                method, path, content, content_type, params=params, timeout_s=timeout_s
            )
        left_s = fence.seconds_left()
        stopped = Fenced(f"{method} {path}", message="not sent: this process does not lead")
        if left_s <= 0:
            raise stopped
        gate = Gate(fence)
        answered = False
        fence.begin()
        try:
            answer = await self._exchange(
                method,
                path,
                content,
                content_type,
                params=params,
                timeout_s=min(timeout_s, left_s),
                gate=gate,
            )
            answered = True
        except APIError as exc:
            if gate.was_closed:
                answered = True
                raise stopped from exc
            answered = exc.status > 0
            raise
        finally:
            fence.end(answered=answered)
        return answer

    async def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        content_type: str,
        *,
        params: Mapping[str, str] | None,
        timeout_s: float,
        gate: Callable[[], None] = no_gate,
    ) -> bytes:
        """Send one request and read its answer; once more where credentials were refused that are old."""
        began = time.monotonic()
        for is_last in (False, True):
            headers = await self._headers(content_type)
            status, answer = await self._sent(
                method,
                path,
                content,
                headers,
                params=params,
                timeout_s=max(0.001, timeout_s - (time.monotonic() - began)),
                gate=gate,
            )
            if is_last or status != 401 or not await self._is_renewed(headers):
                break
        if status >= 400:
            raise self._refusal(f"{method} {path}", status, answer)
        return answer

    def _refusal(self, attempt: str, status: int, answer: bytes) -> APIError:
        refusal = error_of(attempt, status, parsed(answer))
        if status == 401 and self.credentials.problem:
            refusal.message += f"; reading the credentials again failed: {self.credentials.problem}"
        return refusal

    async def _sent(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        params: Mapping[str, str] | None,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> tuple[int, bytes]:
        """Status and body of one answer."""
        attempt, began = f"{method} {path}", time.monotonic()
        try:
            if self._wire is not None and method != "GET":
                response = await self._wire.exchange(
                    method,
                    path,
                    headers,
                    content or b"",
                    params=params,
                    timeout_s=timeout_s,
                    before=gate,
                )
                status, answer = response.status, response.content
            else:
                async with self._http.request(
                    method,
                    self.address + path,
                    data=None if content is None else _Body(content, gate),
                    params=params,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=timeout_s),
                    server_hostname=self._server_hostname,
                    proxy=self._proxy,
                ) as streamed:
                    status, answer = streamed.status, await streamed.read()
        except _NO_ANSWER as exc:
            if not (isinstance(gate, Gate) and gate.was_closed):  # what was not sent has no answer
                self._report(method, 0, time.monotonic() - began)
            raise Unavailable(attempt, message=f"{type(exc).__name__}: {exc}") from exc
        self._report(method, status, time.monotonic() - began)
        return status, answer

    async def write(self, method: str, path: str, body: Any = None, **options: Any) -> WriteResult:
        """The same, with the outcome of the write instead of the answer."""
        try:
            await self.request(method, path, body, **options)
        except APIError as exc:
            return answer_of(exc)
        return DONE

    async def write_all(self, method: str, path: str, bodies: Sequence[bytes]) -> list[WriteResult]:
        """Write several JSON objects of one collection, the requests together; each outcome by itself.

        UNKNOWN where no answer came: the request may have been carried out, or never read.
        """
        if self._wire is None or len(bodies) == 1:
            return [await self.write(method, path, orjson.Fragment(body)) for body in bodies]
        denial = "" if self._permissions is None else self._permissions(method, path)
        if denial:
            return [WriteResult(WriteOutcome.REFUSED, denial)] * len(bodies)
        fence, attempt, began = self._fence, f"{method} {path}", time.monotonic()
        left_s = REQUEST_TIMEOUT_S if fence is None else min(REQUEST_TIMEOUT_S, fence.seconds_left())
        if left_s <= 0:
            return [WriteResult(WriteOutcome.FENCED, "not sent: this process does not lead")] * len(bodies)
        headers, answers, why = await self._headers(JSON), [], ""
        if fence is not None:
            fence.begin()
        try:
            answers = await self._wire.exchanges(
                method,
                path,
                headers,
                bodies,
                timeout_s=left_s,
                before=no_gate if fence is None else Gate(fence),
            )
        except _NO_ANSWER as exc:
            why = f"{type(exc).__name__}: {exc}"
        finally:
            if fence is not None:
                fence.end(answered=len(answers) == len(bodies))
        results = []
        for answer in answers:
            self._report(method, answer.status, time.monotonic() - began)
            refused = answer.status >= 400
            results.append(
                answer_of(self._refusal(attempt, answer.status, answer.content)) if refused else DONE
            )
        if any(answer.status == 401 for answer in answers):
            await self._is_renewed(headers)  # for the next ones
        lost = WriteResult(WriteOutcome.UNKNOWN, why or "the connection ended before the answer")
        return results + [lost] * (len(bodies) - len(results))

    async def merge(self, path: str, body: Any) -> WriteResult:
        """Write a merge patch."""
        return await self.write("PATCH", path, body, content_type=MERGE_PATCH)

    async def object(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        """The same, the answer parsed."""
        return parsed(await self.request(method, path, body, **options))

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """The lines of a watch, in batches as they arrive.

        It is given up after ``silence_s`` seconds without a byte.

        Raises:
            APIError: The server refused the watch, or the stream broke.
        """
        attempt, began = f"WATCH {path}", time.monotonic()
        is_reported = False
        try:
            async with AsyncExitStack() as opened:
                for is_last in (False, True):
                    headers = await self._headers(JSON)
                    response = await opened.enter_async_context(
                        self._http.get(
                            self.address + path,
                            params=params,
                            headers=headers,
                            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s),
                            server_hostname=self._server_hostname,
                            proxy=self._proxy,
                        )
                    )
                    if is_last or response.status != 401 or not await self._is_renewed(headers):
                        break
                self._report("WATCH", response.status, time.monotonic() - began)
                is_reported = True
                if response.status >= 400:
                    raise self._refusal(attempt, response.status, await response.read())
                yield lines(response.content)
        except _NO_ANSWER as exc:
            if not is_reported:
                self._report("WATCH", 0, time.monotonic() - began)
            raise Unavailable(attempt, message=f"{type(exc).__name__}: {exc}") from exc

    def _report(self, method: str, status: int, seconds: float) -> None:
        if self._observer is not None:
            self._observer.request_answered(method, status, seconds)

    async def close(self) -> None:
        """End the session; the connections for reading are the client's to close."""
        await self._http.close()
        if self._wire is not None:
            await self._wire.close()

    async def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": JSON, "Content-Type": content_type}
        if shown := await self.credentials.authorization():
            headers["Authorization"] = shown
        return headers

    async def _is_renewed(self, headers: Mapping[str, str]) -> bool:
        return await self.credentials.refused(headers.get("Authorization", ""))


@asynccontextmanager
async def connected(
    kubeconfig: Path | None = None, context: str = "", *, own_client: bool = True
) -> AsyncIterator[Session]:
    """A session from a kubeconfig; without one in-cluster, else from the default kubeconfig.

    The context is one of the kubeconfig's, "" its current one.

    Raises:
        APIError: There is no usable configuration.
    """
    load = loader(kubeconfig, context)
    loaded = await load()
    async with opened_client(loaded.configuration) as api_client:
        session = Session(api_client, Credentials(loaded, load), own_client=own_client)
        try:
            yield session
        finally:
            await session.close()
