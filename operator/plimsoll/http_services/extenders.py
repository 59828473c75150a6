"""POSTs to HTTP extenders; their responses are not trusted.

No credentials of ours are sent, no proxy, cookie or .netrc of the environment is used, redirects are not
followed, and responses are not decompressed. A slow, endless or malformed response becomes an error message
within the timeout. Each extender has its own session and therefore its own connections, so that a hanging
extender does not delay others.

Source: kube-scheduler v1.36, ``pkg/scheduler/extender.go``. Differs: upstream follows redirects, reads
responses without bound, and does not verify the server if ``enableHTTPS`` is set without a CA.
"""

import asyncio
import base64
import binascii
import os
import ssl
from collections.abc import Collection

import aiohttp

from plimsoll.kube.session.http_client import bounded
from plimsoll.kube.session.session import JSON
from plimsoll.ports.extenders import Endpoint, Reply, TLSSettings

#: Maximum response size: a constant, and a factor on the size of the request (responses may repeat the
#: nodes).
ANSWER_BYTES, ANSWER_FACTOR = 2**20, 3

#: Concurrent connections to one extender; further requests wait, within their own timeout.
CONNECTIONS = 32


class HTTPExtenders:
    """Calls extenders; a session is opened with the first request and kept."""

    def __init__(self) -> None:
        self._sessions: dict[Endpoint, aiohttp.ClientSession] = {}

    def problem_of(self, endpoint: Endpoint) -> str:
        """Why this endpoint cannot be called; empty when it can."""
        try:
            tls_context(endpoint.tls)
        except (ssl.SSLError, binascii.Error, ValueError, OSError) as exc:
            return f"the certificates cannot be used: {_described(exc)}; give PEM in base64"
        return ""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:
        """Send a request; never raises, never exceeds the endpoint's timeout, never reads without bound."""
        url = f"{endpoint.url.rstrip('/')}/{verb}"
        try:
            async with (
                asyncio.timeout(endpoint.timeout_s),
                self._session(endpoint).post(
                    url,
                    data=body,
                    allow_redirects=False,
                    server_hostname=endpoint.tls.server_name or None,
                ) as response,
            ):
                if response.status != 200:
                    return Reply(None, f"failed {verb} with extender at URL {url}, code {response.status}")
                limit = ANSWER_BYTES + ANSWER_FACTOR * len(body)
                content = await bounded(response, limit)
                problem = f'Post "{url}": the answer has more than {limit} bytes' if content is None else ""
                return Reply(content, problem)
        except TimeoutError:
            return Reply(None, f'Post "{url}": no complete answer within {endpoint.timeout_s:g} s')
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as exc:
            # The last request of this session: the policy changed, and the session was closed meanwhile.
            return Reply(None, f'Post "{url}": {_described(exc)}')

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Close the connections to all other extenders."""
        gone = [each for each in self._sessions if each not in endpoints]
        for session in [self._sessions.pop(each) for each in gone]:  # all before the first is awaited
            await session.close()

    async def close(self) -> None:
        """Close all sessions."""
        await self.retain(())

    def _session(self, endpoint: Endpoint) -> aiohttp.ClientSession:
        known = self._sessions.get(endpoint)
        if known is None:
            known = self._sessions[endpoint] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS, ssl=tls_context(endpoint.tls)),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"Content-Type": JSON, "Accept": JSON, "Accept-Encoding": "identity"},
            )
        return known


def tls_context(settings: TLSSettings) -> ssl.SSLContext:
    """The TLS settings to verify a server with.

    Raises:
        ValueError: A setting that should hold a certificate holds none.
        ssl.SSLError: A certificate cannot be used.
    """
    # Without certificates the library would trust the system's, so an empty text must not reach it.
    authorities = _decoded(settings.ca_data).decode("ascii") if settings.ca_data else None
    context = ssl.create_default_context(cadata=authorities)
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.cert_data:
        # The library reads only files; this one is in memory and in no directory.
        descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            for part in (settings.cert_data, settings.key_data):
                os.write(descriptor, _decoded(part) + b"\n")
            # An empty password makes an encrypted key an error; without one the library would prompt for it.
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
        finally:
            os.close(descriptor)
    return context


def _decoded(text: str) -> bytes:
    """Decodes base64; line breaks are allowed, nothing else is, and nothing is nothing."""
    content = base64.b64decode("".join(text.split()), validate=True)
    if not content:
        raise ValueError("there is nothing in it")
    return content


def _described(exc: BaseException) -> str:
    return str(exc) or type(exc).__name__
