"""kopf's HTTP session: answers that would end kopf count as broken connections, which it survives.

kopf repeats requests whose connection breaks before the head of an answer, and watches whose body breaks. It
ends the operator, and with it a leader, when the body of another answer breaks, or when a watch ends in the
middle of a line. Proxies and API servers that are replaced do both. And it gives up a resource that is not
served (404) when it asks before it has heard that the definition was deleted; should the definition be
created again before kopf looks, it never asks again.
"""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Self

import aiohttp
import kopf
import msgspec
from aiohttp.connector import Connection

from plimsoll.app.kopf_handlers import PLURAL


class NotServed(aiohttp.ClientConnectionError):
    """The API server does not have the policies' definition at present."""


class WholeLines:
    """The body of a watch: complete lines alone.

    kopf ends when a watch says that something is wrong, with any code but 410, and at a line that is not
    an event. Either is passed on as a 410, at which it lists again.

    Args:
        content: aiohttp's.
    """

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Lines as they come, several in a piece; one that is no event of an object is the last, as a 410.

        Raises:
            aiohttp.ClientPayloadError: The body has ended in the middle of a line.
        """
        rest = b""
        async for piece in self._content.iter_chunked(size):
            lines, end, rest = (rest + piece).rpartition(b"\n")
            if end:
                good, is_all = _events(lines + end)
                if good:
                    yield good
                if not is_all:
                    await asyncio.sleep(TROUBLE_S)
                    yield GONE
                    return
        if rest:
            raise aiohttp.ClientPayloadError(f"the watch ended in mid-line, after {len(rest)} bytes of it")

    def exception(self) -> BaseException | None:
        """What has broken the body."""
        return self._content.exception()

    def set_exception(self, *problem: Any) -> None:
        """Break the body."""
        self._content.set_exception(*problem)


#: Seconds until a watch that says that something is wrong is given up: the next one may say the same.
TROUBLE_S = 1.0

#: What makes kopf list again.
GONE = b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Gone","code":410}}\n'


class _Object(msgspec.Struct):
    metadata: dict[str, Any]


class _Event(msgspec.Struct):
    type: str
    object: _Object


#: The types of events of objects.
_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")

_EVENT = msgspec.json.Decoder(_Event)


def _events(lines: bytes) -> tuple[bytes, bool]:
    """The lines up to the first that is not an event of an object, and whether these are all."""
    good: list[bytes] = []
    for line in filter(None, lines.split(b"\n")):
        try:
            is_known = _EVENT.decode(line).type in _TYPES
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            is_known = False
        if not is_known:
            return b"".join(good), False
        good.append(line + b"\n")
    return b"".join(good), True


class WholeAnswer(aiohttp.ClientResponse):
    """An answer that is read before kopf gets it, unless it is a watch."""

    async def start(self, connection: Connection) -> Self:
        """Read the head, and the body of what is no watch.

        Raises:
            aiohttp.ClientConnectionError: The body has ended early; or, as NotServed, there are no policies
                now, so that kopf asks again.
        """
        await super().start(connection)
        if self.ok and "watch" in self.url.query:
            self.content = WholeLines(self.content)  # type: ignore[assignment] # all of it that kopf and aiohttp use
            return self
        try:
            await self.read()
        except aiohttp.ClientPayloadError as exc:
            raise aiohttp.ClientConnectionError(f"the answer has ended early: {exc}") from exc
        if self.status == HTTPStatus.NOT_FOUND and self.url.name == PLURAL:
            raise NotServed(f"{PLURAL}: not found")
        return self


def session_of(info: kopf.ConnectionInfo) -> kopf.AiohttpSession:
    """What kopf would make of a login, with such answers; kopf closes it."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        proxy=info.proxy_url,
        trust_env=info.trust_env,
        response_class=WholeAnswer,
    )
    return kopf.AiohttpSession(server=info.server, aiohttp_session=session, priority=info.priority)
