"""A way to the API server that can be cut: it passes bytes on, and breaks all connections when told to."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self


class SeverableConnections:
    """Listens on a free port of loopback and connects to another one.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    def cut(self) -> int:
        """Break all connections, in mid-line where that happens to be; how many there were."""
        for writer in self._writers:
            writer.transport.abort()
        return len(self._writers) // 2

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            with suppress(OSError):
                there, onwards = await asyncio.open_connection("127.0.0.1", self._target)
                self._writers.add(onwards)
                try:
                    await asyncio.gather(_passed(reader, onwards), _passed(there, writer))
                finally:
                    self._writers.discard(onwards)
                    onwards.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
            self._tasks.discard(task)


async def _passed(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy until the source ends; then close the sink."""
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    with suppress(OSError):
        sink.close()
