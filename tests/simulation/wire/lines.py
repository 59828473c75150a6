"""Lines carry the bytes of connections, and Plugs are the sockets at their ends, as in a kernel.

Bytes arrive in order, in parts that the seed cuts, after delays that it draws. What a process has handed to
its kernel arrives even if the process is paused or dead; what waits in its own buffers does not.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import itertools
import math
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from typing import Protocol

#: Seconds of one way, and between two parts of one write.
ONE_WAY_S, BETWEEN_S = (0.0005, 0.004), (0.0, 0.002)

#: Bytes that are on their way to a reader or wait there, at most: those of two socket buffers.
CAPACITIES = (4_096, 65_536, 65_536, 1_048_576)

#: Bytes that are on their way while a line lags: a path that is long, not narrow. With the buffers above,
#: 4 KiB could take as long as the lag, and a list minutes.
LAGGING_CAPACITY = 2**30

#: Bytes a second, by connection.
RATES = (math.inf, math.inf, 1e6, 1e5)

#: The share of writes that arrive in parts, and how many parts there are at most.
TORN_SHARE, PARTS = 0.2, 4

Address = tuple[str, int]


class Ending(Enum):
    """What ends one direction."""

    FIN = auto()
    RST = auto()


class Reader(Protocol):
    """What reads a socket: a transport."""

    def arrived(self) -> None:
        """There is something to read."""

    def room(self) -> None:
        """There is room to write."""

    def broke(self, problem: OSError) -> None:
        """The connection has ended with an error."""

    def close(self) -> None:
        """Close it after what waits to be written."""

    def abort(self) -> None:
        """Close it."""


@dataclass(slots=True)
class Cut:
    """What happens to a line after so many bytes more.

    Attributes:
        then: Called once.
    """

    after: int
    then: Callable[[], object]


@dataclass(eq=False, slots=True)
class Line:
    """One direction of a connection.

    Attributes:
        capacity: Bytes under way or unread, at most.
        rate: Bytes a second.
        lag_s: Seconds that all takes longer.
        carried: Bytes since the beginning.
        is_dead: Whether nothing arrives any more, without a word.
        coming: What is on its way or waits to be read, with the times of its arrival.
    """

    loop: asyncio.BaseEventLoop
    random: Random
    capacity: int
    rate: float
    lag_s: float = 0.0
    carried: int = 0
    held: int = 0
    last: float = 0.0
    is_dead: bool = False
    cut: Cut | None = None
    coming: deque[tuple[float, bytes | Ending]] = field(default_factory=deque)
    reader: Plug | None = None
    writer: Plug | None = None

    @property
    def room(self) -> int:
        """Bytes that may be written now."""
        return (LAGGING_CAPACITY if self.lag_s else self.capacity) - self.held

    def carry(self, data: bytes) -> None:
        """Take bytes; they arrive later, or never."""
        self.carried += len(data)
        cut = self.cut
        if cut is None:
            self._send(data)
        elif len(data) < cut.after:
            cut.after -= len(data)
            self._send(data)
        else:
            self.cut = None
            self._send(data[: cut.after])
            cut.then()

    def _send(self, data: bytes) -> None:
        assert self.reader is not None
        assert self.writer is not None
        if self.is_dead or not data:
            return
        if self.reader.is_closed:  # the other kernel answers that there is no such connection
            self.reader.outward.end(Ending.RST)
            return
        draw, size = self.random.random, len(data)
        cuts = [0, size]
        if size > 1 and draw() < TORN_SHARE:
            cuts = sorted({0, size, *(1 + int(draw() * (size - 1)) for _ in range(1 + int(draw() * PARTS)))})
        self.held += size
        at = self.loop.time() + self.random.uniform(*ONE_WAY_S) + self.lag_s
        for begin, end in itertools.pairwise(cuts):
            at = max(at, self.last) + (end - begin) / self.rate
            self._come(at, data[begin:end] if end - begin < size else data)
            at += self.random.uniform(*BETWEEN_S)

    def end(self, how: Ending) -> None:
        """Nothing more is written."""
        if not self.is_dead:
            at = self.loop.time() + self.random.uniform(*ONE_WAY_S) + self.lag_s
            self._come(max(at, self.last), how)

    def _come(self, at: float, what: bytes | Ending) -> None:
        assert self.reader is not None
        self.last = at
        self.coming.append((at, what))
        self.loop.call_at(at, self.reader.arrived, context=self.reader.context)

    def read(self, most: int) -> bytes | Ending | None:
        """What has arrived: bytes, at most so many, or the end; None for nothing."""
        now, coming, parts, size = self.loop.time(), self.coming, list[bytes](), 0
        while coming and coming[0][0] <= now and size < most:
            at, what = coming[0]
            if isinstance(what, Ending):
                if parts:
                    break
                coming.popleft()
                return what
            coming.popleft()
            if size + len(what) > most:
                coming.appendleft((at, what[most - size :]))
                what = what[: most - size]
            parts.append(what)
            size += len(what)
        if not parts:
            return None
        self.held -= size
        self._tell_writer()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def is_due(self) -> bool:
        """Whether there is something to read."""
        return bool(self.coming) and self.coming[0][0] <= self.loop.time()

    def _tell_writer(self) -> None:
        writer = self.writer
        if writer is not None and writer.wants_room and not self.is_dead:
            at = self.loop.time() + self.random.uniform(*ONE_WAY_S)
            self.loop.call_at(at, writer.room, context=writer.context)

    def lose(self) -> None:
        """What is under way is lost."""
        self.coming.clear()
        self.held = 0
        self._tell_writer()


class Plug:
    """A socket in memory: an end of a connection, as a process holds it; it hashes by its number.

    Attributes:
        owner: The process; "" for the API server.
        context: In which its callbacks run.
        reader: What reads it.
        wants_room: Whether its process waits until it can write.
    """

    def __init__(self, family: int, kind: int, number: int, owner: str) -> None:
        self.family, self.type, self.proto = family, kind, 0
        self.owner = owner
        self.context = contextvars.copy_context()
        self.reader: Reader | None = None
        self.wants_room = False
        self.is_closed = False
        self.inward: Line
        self.outward: Line
        self.is_plugged = False
        self.connection: Connection | None = None
        self._number = number
        self._keep_alive: dict[int, int] = {}

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other

    def plug_in(self, connection: Connection, inward: Line, outward: Line) -> None:
        """It is connected."""
        self.connection, self.inward, self.outward, self.is_plugged = connection, inward, outward, True
        inward.reader = outward.writer = self

    def arrived(self) -> None:
        """Something has come, or is said to have."""
        if self.reader is not None and not self.is_closed and self.inward.is_due:
            self.reader.arrived()

    def room(self) -> None:
        """There is room to write."""
        if self.reader is not None and not self.is_closed:
            self.reader.room()

    def writing(self, size: int) -> None:
        """Its process writes."""
        assert self.connection is not None
        if self is self.connection.client:
            self.connection.written(self.connection, size)

    # -- what a socket does ------------------------------------------------------------------------------

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""
        assert not flag

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Keep-alive is heeded."""
        if level == socket.IPPROTO_TCP:
            self._keep_alive[option] = value

    @property
    def noticed_after_s(self) -> float:
        """Seconds until keep-alive finds the other end gone; inf without."""
        idle, every, times = (
            self._keep_alive.get(option, 0)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        return idle + every * times if idle else math.inf

    def give_up(self) -> None:
        """The other end is gone."""
        if self.reader is not None and not self.is_closed:
            self.reader.broke(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))

    def fileno(self) -> int:
        """A number until it is closed."""
        return -1 if self.is_closed else self._number

    def getsockname(self) -> Address:
        """Where it is."""
        return (self.owner or "server", self._number)

    def shutdown(self, how: int) -> None:
        """End what is written, or all."""
        if not self.is_plugged or self.is_closed:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        self.outward.end(Ending.FIN)
        if how == socket.SHUT_RDWR:
            self.inward.lose()
            self.inward.last = self.inward.loop.time()
            self.inward.coming.append((self.inward.last, Ending.FIN))
            self.inward.loop.call_soon(self.arrived, context=self.context)

    def close(self) -> None:
        """Close it: the other end reads what was written, then the end, or that its bytes were not read."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.is_plugged:
            self.outward.end(Ending.RST if self.inward.held else Ending.FIN)
            self.inward.lose()
            assert self.connection is not None
            self.connection.closed(self)


@dataclass(eq=False, slots=True)
class Connection:
    """Two plugs and the lines between them.

    Attributes:
        ended: Called when both plugs are closed.
        written: Called before the client writes so many bytes.
        is_watch: Whether it carries a watch now.
    """

    number: int
    client: Plug
    server: Plug
    to_server: Line
    to_client: Line
    ended: Callable[[Connection], object]
    written: Callable[[Connection, int], object]
    is_watch: bool = False

    def reset(self) -> None:
        """Both ends learn that it has ended; what was under way is lost."""
        for line in (self.to_server, self.to_client):
            line.lose()
            line.cut = None
            line.lag_s = 0.0
            line.end(Ending.RST)

    def fall_silent(self) -> None:
        """Neither end learns anything any more."""
        if not self.to_server.is_dead:
            self.to_server.is_dead = True
            self.mute()

    def mute(self) -> None:
        """The client hears nothing any more, and finds out by keep-alive."""
        self.to_client.is_dead = True
        if math.isfinite(after_s := self.client.noticed_after_s):
            self.to_client.loop.call_later(after_s, self.client.give_up, context=self.client.context)

    def close_from_server(self) -> None:
        """The server closes it, after what it has written."""
        reader = self.server.reader
        if reader is not None:
            self.server.context.copy().run(reader.close)

    def break_from_server(self) -> None:
        """The server closes it; what waits is not sent."""
        reader = self.server.reader
        if reader is not None:
            self.server.context.copy().run(reader.abort)

    def closed(self, _plug: Plug) -> None:
        """One end is closed."""
        if self.client.is_closed and self.server.is_closed:
            self.ended(self)
