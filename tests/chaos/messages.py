"""Messages of HTTP/1.1 as a proxy reads and writes them: heads, whole bodies, and bodies without end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

#: The most that a head may have, and a line of a chunked body.
LIMIT_BYTES = 2**20

#: Headers that belong to one connection, or are computed again.
OF_A_CONNECTION = frozenset(
    ("connection", "keep-alive", "content-length", "transfer-encoding", "authorization", "host", "expect")
)


class BrokenMessageError(Exception):
    """The other end has closed the connection in the middle of a message, or does not speak HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a message.

    Attributes:
        first: Method, target and version; or version, status and reason.
        headers: In their order, as they were spelled.
    """

    first: tuple[str, str, str]
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        """The value of a header, "" without one."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.first[1])

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.header("transfer-encoding").lower()

    def with_body(self, *extra: tuple[str, str]) -> bytes:
        """The head to send on, with other headers about connection and body."""
        kept = [each for each in self.headers if each[0].lower() not in OF_A_CONNECTION]
        lines = [" ".join(self.first), *(f"{key}: {value}" for key, value in (*kept, *extra))]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def head(reader: asyncio.StreamReader) -> Head | None:
    """The next head; None at the end of the connection.

    Raises:
        BrokenMessageError: It ends too early.
    """
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as exc:
        if exc.partial:
            raise BrokenMessageError("the head of a message is cut") from exc
        return None
    except asyncio.LimitOverrunError as exc:
        raise BrokenMessageError("the head of a message is too long") from exc
    first, *lines = text[:-4].split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2:
        raise BrokenMessageError(f"no HTTP: {first!r}")
    pairs = [line.partition(":") for line in lines]
    one, two, three = (*parts, "")[:3]
    return Head((one, two, three), tuple((key, value.strip()) for key, _, value in pairs))


async def body(reader: asyncio.StreamReader, of: Head) -> bytes:
    """The whole body of a message.

    Raises:
        BrokenMessageError: It is cut.
    """
    if of.is_chunked:
        return b"".join([part async for part in chunks(reader)])
    try:
        return await reader.readexactly(int(of.header("content-length") or 0))
    except asyncio.IncompleteReadError as exc:
        raise BrokenMessageError("the body of a message is cut") from exc


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a body as they come.

    Raises:
        BrokenMessageError: The body is cut.
    """
    try:
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            part = await reader.readexactly(size + 2)
            if not size:
                return
            yield part[:-2]
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as exc:
        raise BrokenMessageError("the body of a message is cut") from exc


def chunk(part: bytes) -> bytes:
    """A chunk to send; an empty one ends the body."""
    return f"{len(part):x}\r\n".encode() + part + b"\r\n"
