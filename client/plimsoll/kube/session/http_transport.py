"""HTTP over TCP and TLS: requests use connections of ours (docs/adr/0016), watches and proxies use aiohttp.

aiohttp is imported when it is first used: a command that only reads does without it (docs/adr/0043).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.request import getproxies_environment

from kubernetes_asyncio import client

from plimsoll.kube.session.connections import Wire
from plimsoll.version import __version__

if TYPE_CHECKING:
    import aiohttp

    from plimsoll.kube.session.http_client import OpenClient

#: The User-Agent header, which appears in the server's audit log.
AGENT = f"plimsoll/{__version__}"

#: Maximum number of concurrent connections for requests; watches have as many.
CONNECTIONS = 100

#: Timeout in seconds of the response headers of a watch. An API server sends them when the watch begins; the
#: request may have been queued for 15 s before. A streamed list may be silent for longer.
HEAD_S = 20.0

#: Statuses of a redirected read, which aiohttp follows.
REDIRECTS = frozenset((301, 302, 303, 307, 308))


def tls_of(configuration: client.Configuration) -> ssl.SSLContext:
    """The settings, as kubernetes-asyncio's own client makes them; without certificates for plain HTTP."""
    if str(configuration.host).startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the machine's authorities takes 40 ms
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class HTTPTransport:
    """A :class:`plimsoll.kube.session.transport.Transport` over the network.

    Args:
        configuration: The address and TLS settings.
        own_client: Whether requests use our own connections, which cost less; else they use aiohttp.
        proxies: The proxies that the environment names; None to read them from it.
        open_client: Opens aiohttp's client; None for :func:`plimsoll.kube.session.http_client.opened_client`.
    """

    def __init__(
        self,
        configuration: client.Configuration,
        *,
        own_client: bool = True,
        proxies: Mapping[str, str] | None = None,
        open_client: "OpenClient | None" = None,
    ) -> None:
        self.configuration = configuration
        self.address: str = str(configuration.host).rstrip("/")
        self._has_proxies = bool(getproxies_environment() if proxies is None else proxies)
        self._server_hostname: str | None = configuration.tls_server_name
        self._proxy: str | None = configuration.proxy
        self._tls = tls_of(configuration)
        self._open_client = open_client
        self._opened = AsyncExitStack()
        self._client: aiohttp.ClientSession | None = None
        self._wire: Wire | None = None
        if own_client and not self._proxy and not self._has_proxies:
            self._wire = Wire(self.address, self._tls, self._server_hostname, CONNECTIONS, AGENT)
        self.pipelines = self._wire is not None

    async def _http(self) -> "aiohttp.ClientSession":
        """Aiohttp's client, opened when it is first used."""
        if self._client is None:
            from plimsoll.kube.session.http_client import opened_client  # noqa: PLC0415 - imports aiohttp

            opening = (self._open_client or opened_client)(self._tls, self._has_proxies)
            self._client = await self._opened.enter_async_context(opening)
        return self._client

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
        if self._wire is not None:
            response = await self._wire.exchange(
                method, path, headers, content or b"", params=params, timeout_s=timeout_s, before=gate
            )
            if method != "GET" or response.status not in REDIRECTS:
                return response.status, response.content
        import aiohttp  # noqa: PLC0415 - not for requests over our own connections

        from plimsoll.kube.session.http_client import GatedBody  # noqa: PLC0415 - likewise

        http = await self._http()
        async with http.request(
            method,
            self.address + path,
            data=None if content is None else GatedBody(content, gate),
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
        import aiohttp  # noqa: PLC0415 - not for requests over our own connections

        http = await self._http()
        asking = http.get(
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
        """Close the transport."""
        await self._opened.aclose()
        if self._wire is not None:
            await self._wire.close()
