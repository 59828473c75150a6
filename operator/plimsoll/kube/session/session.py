"""One connection to one API server: address, TLS and credentials by kubernetes-asyncio, bytes by us.

The generated client reads kubeconfigs and tokens. Its typed APIs send their requests through this session
(:mod:`plimsoll.kube.session.typed_client`); hot paths do without its models, which take 0.27 ms a pod
(docs/adr/0001).
"""

import copy
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.request import getproxies_environment

import aiohttp
import orjson
from aiohttp.abc import AbstractStreamWriter
from kubernetes_asyncio import client

import plimsoll
from plimsoll.kube.session.api_client import opened_client
from plimsoll.kube.session.connections import Wire
from plimsoll.kube.session.credentials import Credentials, loader
from plimsoll.kube.session.errors import APIError, Fenced, Unauthorized, Unavailable, answered, error_of
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteResult

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


class WriteFence(Protocol):
    """Says whether this process may write (:mod:`plimsoll.leadership.fence`)."""

    def seconds_left(self) -> float:
        """Seconds that a write which is sent now may take, 0 when none may be sent."""

    def begin(self) -> None:
        """A write is sent."""

    def end(self, *, answered: bool) -> None:
        """It was answered, or is waited for no longer."""


@dataclass(slots=True)
class _Gate:
    """Passed right before a request is sent: it may have waited, or the process was paused."""

    fence: WriteFence
    was_closed: bool = False

    def __call__(self) -> None:
        if self.fence.seconds_left() <= 0:
            self.was_closed = True
            raise ConnectionAbortedError("the fence has closed")


def _open() -> None:
    """No fence."""


class _Body(aiohttp.BytesPayload):
    """A body that passes a gate: without its body a request is incomplete."""

    def __init__(self, content: bytes, gate: Callable[[], None]) -> None:
        super().__init__(content, content_type=JSON)
        self._gate = gate

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._gate()
        await super().write_with_length(writer, content_length)


class Session:
    """Sends requests; raises :mod:`plimsoll.kube.session.errors`."""

    def __init__(self, api_client: client.ApiClient, credentials: Credentials) -> None:
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
        if not self._proxy and not getproxies_environment() and isinstance(tls, ssl.SSLContext):
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
        gate = _Gate(fence)
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
        gate: Callable[[], None] = _open,
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
        refusal = error_of(attempt, status, _parsed(answer))
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
            if not (isinstance(gate, _Gate) and gate.was_closed):  # what was not sent has no answer
                self._report(method, 0, time.monotonic() - began)
            raise Unavailable(attempt, message=f"{type(exc).__name__}: {exc}") from exc
        self._report(method, status, time.monotonic() - began)
        return status, answer

    async def write(self, method: str, path: str, body: Any = None, **options: Any) -> WriteResult:
        """The same, with the outcome of the write instead of the answer."""
        return await answered(self.request(method, path, body, **options))

    async def merge(self, path: str, body: Any) -> WriteResult:
        """Write a merge patch."""
        return await self.write("PATCH", path, body, content_type=MERGE_PATCH)

    async def object(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        """The same, the answer parsed."""
        return _parsed(await self.request(method, path, body, **options))

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
                yield _lines(response.content)
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


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[list[bytes]]:
    """Complete lines, however long; aiohttp's own readline refuses those beyond its buffer."""
    pending: list[bytes] = []
    async for chunk in content.iter_any():
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            pending.append(chunk)
            continue
        lines = b"".join((*pending, head)).split(b"\n")
        pending = [tail] if tail else []
        yield [line for line in lines if line]


async def bounded(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The body that another server than the API server sent; None when it has more than ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {"message": content[:200].decode(errors="replace")}
    return answer if isinstance(answer, dict) else {"message": str(answer)[:200]}


@asynccontextmanager
async def connected(kubeconfig: Path | None = None, context: str = "") -> AsyncIterator[Session]:
    """A session from a kubeconfig; without one in-cluster, else from the default kubeconfig.

    The context is one of the kubeconfig's, "" its current one.

    Raises:
        APIError: There is no usable configuration.
    """
    load = loader(kubeconfig, context)
    loaded = await load()
    async with opened_client(loaded.configuration) as api_client:
        session = Session(api_client, Credentials(loaded, load))
        try:
            yield session
        finally:
            await session.close()
