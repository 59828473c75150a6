"""A pytest plugin whose event loops are closed after their connections, so that none is found later.

A socket that an event loop leaves open is found by the garbage collector, which fails whichever test runs
then. These loops look at what is open when they are closed. A connection that is about to end gets the time
that it needs; one that does not end is cut, and the test that made it fails.
"""

from __future__ import annotations

import asyncio
from typing import Any

#: Seconds until a connection will never end, on a machine with other work, and between two looks.
PATIENCE_S, PACE_S = 120.0, 0.002


class LeftOpenError(AssertionError):
    """Connections were open when their event loop was closed."""


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that is not closed before its connections are."""

    def close(self) -> None:
        """Wait for the connections, then close.

        Raises:
            LeftOpenError: Some had to be cut.
        """
        if self.is_closed() or self.is_running():  # closed before, or about to be refused
            super().close()
            return
        deadline = self.time() + PATIENCE_S
        while self._connections() and self.time() < deadline:
            self.run_until_complete(asyncio.sleep(PACE_S))
        named = [_named(each) for each in self._connections()]
        for each in self._connections():
            each.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()
        if named:
            raise LeftOpenError(f"an event loop was closed before {', '.join(named)}")

    def _connections(self) -> list[asyncio.WriteTransport]:
        transports: list[asyncio.WriteTransport] = [*self._transports.values()]  # type: ignore[attr-defined] # asyncio has no public list of them
        return [each for each in transports if each.get_extra_info("socket").fileno() >= 0]


class WatchedLoops(asyncio.DefaultEventLoopPolicy):
    """Makes watched loops, also for commands that run one of their own."""

    def new_event_loop(self) -> WatchedLoop:
        """A loop."""
        return WatchedLoop()


def pytest_configure(config: Any) -> None:
    """Make all loops of this process watched ones."""
    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(WatchedLoops())
    config.add_cleanup(lambda: asyncio.set_event_loop_policy(before))


def _named(connection: asyncio.WriteTransport) -> str:
    names = (connection.get_extra_info(each) for each in ("sockname", "peername"))
    return "{} to {} of {!r}".format(*names, connection.get_protocol())
