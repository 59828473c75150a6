"""A connection that outlives its event loop fails the test that made it, and no later one."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing
from socket import create_server
from typing import TYPE_CHECKING, Any

import pytest

import event_loops
from event_loops import LeftOpenError, WatchedLoop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket


@pytest.fixture
def listening() -> Iterator[socket]:
    """A server that accepts, and says nothing."""
    with create_server(("127.0.0.1", 0)) as one:
        yield one


async def connect(server: socket) -> Any:
    """A connection to it."""
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, *server.getsockname())
    return transport


def test_a_connection_that_is_not_closed_is_cut_and_named(
    listening: socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a loop of a command, too; the garbage collector finds nothing."""
    monkeypatch.setattr(event_loops, "PATIENCE_S", 0.01)

    with pytest.raises(LeftOpenError, match=f"to .*{listening.getsockname()[1]}.* of <asyncio.protocols"):
        asyncio.run(connect(listening))
    gc.collect()


def test_a_connection_that_is_about_to_end_is_waited_for(listening: socket) -> None:
    """Its server has hung up, or it was closed in the last turn."""
    with closing(WatchedLoop()) as loop:
        loop.run_until_complete(connect(listening)).close()
        loop.run_until_complete(connect(listening))
        for _ in range(2):
            listening.accept()[0].close()


async def test_tests_run_in_such_a_loop() -> None:
    assert isinstance(asyncio.get_running_loop(), WatchedLoop)
