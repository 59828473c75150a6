"""HTTP over TCP and TLS: reads and watches use aiohttp, writes use connections of ours (docs/adr/0016)."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.request import getproxies_environment

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from kubernetes_asyncio import client

import plimsoll
from plimsoll.kube.session.connections import Wire

#: The User-Agent header, which appears in the server's audit log.
AGENT = f"plimsoll/{plimsoll.__version__}"

#: Maximum number of concurrent connections for reads; writes have as many.
CONNECTIONS = 100

#: Timeout in seconds of the response headers of a watch. An API server sends them when the watch begins; the
#: request may have been queued for 15 s before. A streamed list may be silent for longer.
HEAD_S = 20.0

#: Bytes of a watch that are buffered before flow control stops the server.
READ_BUFFER_BYTES = 2**21


class _Body(aiohttp.BytesPayload):
    """A body that passes the gate as it is sent: without its body a request is incomplete."""

    def __init__(self, content: bytes, gate: Callable[[], None]) -> None:
        super().__init__(content, content_type="application/json")
        self._gate = gate

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._gate()
        await super().write_with_length(writer, content_length)


class HTTPTransport:
    """A :class:`plimsoll.kube.session.transport.Transport` over the network.

    Args:
        api_client: Its connections are used for reads; the client closes them.
        own_client: Whether writes use our own connections, which cost less; else they use aiohttp, as
            reads do.
            reads do.
        proxies: The proxies that the environment names; None to read them from it.
    """

    def __init__(
        self,
        api_client: client.ApiClient,
        *,
        own_client: bool = True,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        has_proxies = bool(getproxies_environment() if proxies is None else proxies)
        self.configuration: client.Configuration = api_client.configuration
        # The client's own session looks up proxies and .netrc in two threads per request. Where the
        # environment names no proxy, that is half the cost of a request. Its TLS settings are kept.
        pooled: aiohttp.ClientSession = api_client.rest_client.pool_manager
        self._http = aiohttp.ClientSession(
            connector=pooled.connector,
            connector_owner=False,
            read_bufsize=READ_BUFFER_BYTES,
            trust_env=has_proxies,
        )
        self._server_hostname: str | None = api_client.rest_client.server_hostname
        self._proxy: str | None = api_client.rest_client.proxy
        self.address: str = str(self.configuration.host).rstrip("/")
        tls = getattr(pooled.connector, "_ssl", None)
        self._wire: Wire | None = None
        direct = own_client and not self._proxy and not has_proxies
        if direct and isinstance(tls, ssl.SSLContext):
            self._wire = Wire(self.address, tls, self._server_hostname, CONNECTIONS, AGENT)
        self.pipelines = self._wire is not None

    async def exchange(
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
        """Status and body of one response."""
        if self._wire is not None and method != "GET":
            response = await self._wire.exchange(
                method, path, headers, content or b"", params=params, timeout_s=timeout_s, before=gate
            )
            return response.status, response.content
        async with self._http.request(
            method,
            self.address + path,
            data=None if content is None else _Body(content, gate),
            params=params,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            server_hostname=self._server_hostname,
            proxy=self._proxy,
            allow_redirects=method == "GET",  # aiohttp would follow a redirected write with a GET
        ) as streamed:
            return streamed.status, await streamed.read()

    async def exchanges(
        self,
        method: str,
        writes: Sequence[tuple[str, bytes]],
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> list[tuple[int, bytes]]:
        """The responses to several requests that are sent together."""
        assert self._wire is not None
        answers = await self._wire.exchanges(method, headers, writes, timeout_s=timeout_s, before=gate)
        return [(answer.status, answer.content) for answer in answers]

    @asynccontextmanager
    async def watch(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Status and body of a streamed response."""
        asking = self._http.get(
            self.address + path,
            params=params,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s),
            server_hostname=self._server_hostname,
            proxy=self._proxy,
        )
        async with AsyncExitStack() as opened:
            async with asyncio.timeout(HEAD_S):
                response = await opened.enter_async_context(asking)
            yield response.status, response.content.iter_any()

    async def close(self) -> None:
        """Close the transport; the client closes the connections for reads."""
        await self._http.close()
        if self._wire is not None:
            await self._wire.close()
