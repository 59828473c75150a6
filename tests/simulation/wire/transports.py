"""A Transport on a socket in memory, with the semantics of asyncio's own."""

from __future__ import annotations

import asyncio
import socket
from asyncio import transports
from collections.abc import Callable
from typing import Any, cast

from simulation.wire.lines import Ending, Plug

#: Bytes of one read, as asyncio does.
MOST = 256 * 1024


#: What pauses and resumes protocols that write; a Transport.
_FlowControl: Any = vars(transports)["_FlowControlMixin"]


class WireTransport(_FlowControl):  # type: ignore[misc] # typeshed does not have it
    """Reads and writes a plug for a protocol.

    Args:
        failed: Called with an error of the protocol, which it must not raise.
    """

    def __init__(
        self,
        loop: asyncio.BaseEventLoop,
        plug: Plug,
        protocol: asyncio.BaseProtocol,
        failed: Callable[[BaseException], object],
    ) -> None:
        super().__init__({"sockname": plug.getsockname(), "peername": (plug.owner, 0), "plug": plug}, loop)
        self._loop: asyncio.BaseEventLoop = loop
        self._plug = plug
        self._protocol: Any = protocol
        self._failed = failed
        self._outgoing = bytearray()
        self._has_begun = self._is_paused = self._is_closing = self._is_lost = False
        self._has_ended = False
        plug.reader = self

    def begin(self, waiter: asyncio.Future[None] | None = None) -> None:
        """Tell the protocol, then read."""
        self._protocol.connection_made(self)
        self._has_begun = True
        self._plug.arrived()
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # -- reading -----------------------------------------------------------------------------------------

    def arrived(self) -> None:
        """There is something to read."""
        if self._is_lost or not self._has_begun:
            return
        if self._is_paused or self._is_closing:
            return
        got = self._plug.inward.read(MOST)
        try:
            if isinstance(got, bytes):
                self._take(got)
            elif got is Ending.FIN:
                if not self._protocol.eof_received():
                    self.close()
            elif got is Ending.RST:
                self._force_close(ConnectionResetError(104, "Connection reset by peer"))
        except Exception as exc:  # noqa: BLE001 - as asyncio does
            self._failed(exc)
            self._force_close(exc)
        if not self._plug.is_closed and self._plug.inward.is_due:
            self._loop.call_soon(self._plug.arrived)

    def _take(self, data: bytes) -> None:
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            protocol.data_received(data)
            return
        while data and not self._is_lost:
            buffer = memoryview(cast("Any", protocol.get_buffer(len(data))))
            part = data[: len(buffer)]
            buffer[: len(part)] = part
            data = data[len(part) :]
            protocol.buffer_updated(len(part))

    def is_reading(self) -> bool:
        """Whether it reads."""
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        """Leave what comes in the socket."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Read again."""
        if self._is_paused:
            self._is_paused = False
            self._loop.call_soon(self._plug.arrived)

    # -- writing -----------------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        """Send what fits into the socket, and keep the rest."""
        if self._has_ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._is_lost or self._plug.is_closed:
            return
        self._plug.writing(len(data))
        line = self._plug.outward
        if not self._outgoing and len(data) <= line.room:
            line.carry(bytes(data))
            return
        self._outgoing += data
        self.room()
        self._maybe_pause_protocol()

    def writelines(self, list_of_data: Any) -> None:
        """Send them together."""
        self.write(b"".join(list_of_data))

    def room(self) -> None:
        """There is room to write."""
        if self._is_lost or self._plug.is_closed:
            return
        line = self._plug.outward
        while self._outgoing and (room := line.room) > 0:
            part = bytes(self._outgoing[:room])
            del self._outgoing[:room]
            line.carry(part)
            if self._plug.is_closed:
                return
        self._plug.wants_room = bool(self._outgoing)
        self._maybe_resume_protocol()
        if not self._outgoing:
            if self._is_closing:
                self._lose(None)
            elif self._has_ended:
                self._plug.shutdown(socket.SHUT_WR)

    def get_write_buffer_size(self) -> int:
        """Bytes that wait."""
        return len(self._outgoing)

    def can_write_eof(self) -> bool:
        """Yes."""
        return True

    def write_eof(self) -> None:
        """Write no more."""
        if not self._is_closing and not self._has_ended:
            self._has_ended = True
            if not self._outgoing and not self._plug.is_closed:
                self._plug.shutdown(socket.SHUT_WR)

    # -- the end -----------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Whether it is closed, or will be."""
        return self._is_closing

    def close(self) -> None:
        """Send what waits, then close."""
        if not self._is_closing:
            self._is_closing = True
            if not self._outgoing:
                self._is_lost = True
                self._loop.call_soon(self._call_connection_lost, None)

    def abort(self) -> None:
        """Close now."""
        self._force_close(None)

    def broke(self, problem: OSError) -> None:
        """The connection has ended with an error."""
        self._force_close(problem)

    def _force_close(self, exc: Exception | None) -> None:
        if not self._is_lost:
            self._outgoing.clear()
            self._is_closing = self._is_lost = True
            self._loop.call_soon(self._call_connection_lost, exc)

    def _lose(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._call_connection_lost(exc)

    def _call_connection_lost(self, exc: Exception | None) -> None:
        try:
            self._protocol.connection_lost(exc)
        except Exception as problem:  # noqa: BLE001 - as asyncio does
            self._failed(problem)
        finally:
            self._plug.reader = None
            self._plug.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Another protocol reads from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The one that reads."""
        return cast("asyncio.BaseProtocol", self._protocol)
