"""kopf's HTTP session: turns responses that would end kopf into broken connections, which it survives.

kopf repeats requests whose connection breaks before the response headers, and watches whose body breaks. It
ends the operator, and with it a leader, when the body of another response breaks, or when a watch ends in the
middle of a line. Proxies and restarted API servers cause both.

Also, kopf gives a resource up if a request gets a 404 before kopf has received the deletion of its
definition. If the definition is recreated before kopf notices, kopf never requests the resource again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Self

import aiohttp
import kopf
import msgspec
from aiohttp.connector import Connection

from plimsoll.app import kopf_handlers
from plimsoll.app.kopf_handlers import PLURAL, KopfLogin
from plimsoll.app.operator import Operator


class NotServed(aiohttp.ClientConnectionError):
    """The API server does not serve the policies' definition at the moment."""


class WholeLines:
    """The body of a watch, restricted to complete lines.

    kopf ends when a watch reports an error with any code but 410, and at a line that is not an event. Both
    are forwarded as a 410, after which kopf lists again.

    Args:
        content: The body from aiohttp.
    """

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Yield lines as they arrive, several at a time; the first that is not an event becomes a last 410.

        Raises:
            aiohttp.ClientPayloadError: The body ended in the middle of a line, or the connection is closed.
        """
        rest = b""
        async for piece in _read(self._content, size):
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
        """The exception that broke the body."""
        return self._content.exception()

    def set_exception(self, *problem: Any) -> None:
        """Break the body with an exception."""
        self._content.set_exception(*problem)


async def _read(content: aiohttp.StreamReader, size: int) -> AsyncIterator[bytes]:
    """Yield a body as it arrives.

    aiohttp raises a RuntimeError if a body is read whose connection was closed before, which happens when
    kopf logs in again between the headers of a watch and its first line. kopf does not survive it.
    """
    try:
        async for piece in content.iter_chunked(size):
            yield piece
    except RuntimeError as exc:
        raise aiohttp.ClientPayloadError(f"the watch was closed: {exc}") from exc


#: Seconds before a watch that reports an error is ended, because the next one may report the same.
TROUBLE_S = 1.0

#: The event that makes kopf list again.
GONE = b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Gone","code":410}}\n'


class _Object(msgspec.Struct):
    metadata: dict[str, Any]


class _Event(msgspec.Struct):
    type: str
    object: _Object


#: The event types that carry objects.
_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")

_EVENT = msgspec.json.Decoder(_Event)


def _events(lines: bytes) -> tuple[bytes, bool]:
    """The lines before the first that is not an event of an object, and whether these are all."""
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
    """A response that is read completely before kopf receives it, unless it is a watch."""

    async def start(self, connection: Connection) -> Self:
        """Read the headers, and the body unless the response is a watch.

        Raises:
            aiohttp.ClientConnectionError: The body ended early. As NotServed: the policies are not served at
            the
                moment, so that kopf retries.
        """
        await super().start(connection)
        if self.ok and "watch" in self.url.query:
            self.content = WholeLines(self.content)  # type: ignore[assignment] # all of it that kopf and aiohttp use
            return self
        try:
            await self.read()
        except (aiohttp.ClientPayloadError, RuntimeError) as exc:  # see _read
            raise aiohttp.ClientConnectionError(f"the answer has ended early: {exc}") from exc
        if self.status == HTTPStatus.NOT_FOUND and self.url.name == PLURAL:
            raise NotServed(f"{PLURAL}: not found")
        return self


def session_of(info: kopf.ConnectionInfo) -> kopf.AiohttpSession:
    """The session that kopf would create for a login, with these responses; kopf closes it."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        proxy=info.proxy_url,
        trust_env=info.trust_env,
        response_class=WholeAnswer,
    )
    return kopf.AiohttpSession(server=info.server, aiohttp_session=session, priority=info.priority)


async def begin(
    operator: Operator, stop: asyncio.Event, end_tasks: Callable[[], Awaitable[None]]
) -> asyncio.Task[None]:
    """Start kopf and watch each of its root tasks: if one ends, kopf ends, and so does the process.

    Args:
        operator: Gets the policies.
        stop: Ends kopf when it is set.
        end_tasks: Ends the operator's own tasks, before kopf waits for tasks that are not its own.
    """
    registry = kopf.OperatorRegistry()
    login = KopfLogin(operator.session, operator.clock)
    opened: list[kopf.AiohttpSession] = []

    async def logged_in() -> kopf.AiohttpSession:
        info = await login()
        if login.task is not None:
            operator.supervision.watch("kopf's login", login.task)
        opened[:] = [session_of(info)]
        return opened[-1]

    others = asyncio.all_tasks()

    async def ended() -> None:
        await end_tasks()
        # kopf would wait five seconds for its requests that are about to be retried.
        for task in asyncio.all_tasks() - others - {asyncio.current_task()}:
            if task.get_name() != "kopf":
                task.cancel()

    kopf_handlers.register(registry, logged_in, ended, operator.policies)
    roots = await kopf.spawn_tasks(registry=registry, clusterwide=True, standalone=True, stop_flag=stop)
    for root in roots:
        operator.supervision.watch(f"kopf's {root.get_name()}", root)

    async def run() -> None:
        try:
            await kopf.run_tasks(roots, ignored=others)
        finally:
            for each in opened:  # kopf closes those that it has used
                await each.aiohttp_session.close()

    return asyncio.create_task(run(), name="kopf")
