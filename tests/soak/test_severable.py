"""Connections carry bytes both ways until they are cut."""

import asyncio

from soak.severable import SeverableConnections


async def test_a_cut_breaks_what_is_open_and_nothing_later() -> None:
    """The next connection is as good as new."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()
        await writer.wait_closed()

    async with (
        await asyncio.start_server(echo, "127.0.0.1", 0) as server,
        SeverableConnections(server.sockets[0].getsockname()[1]) as between,
    ):
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", between.port)
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            assert between.cut() == 1
            try:
                rest = await reader.read()
            except ConnectionResetError:
                rest = b""
            assert rest == b""
            writer.close()
