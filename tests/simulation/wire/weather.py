"""Weather is what befalls connections: the faults of bytes that are drawn where bytes are written."""

from __future__ import annotations

from random import Random

from simulation.wire.faults import OF_CONNECTIONS, OF_ENDS, OF_WRITES, WireFaultKind, WireFaultPlan
from simulation.wire.lines import Connection, Cut, Plug


class Weather:
    """Draws what befalls connections and writes of clients.

    Attributes:
        faults: Draws the kinds.
        listens: Whether the API server is there; None when connections are not even refused.
    """

    def __init__(self, random: Random, faults: WireFaultPlan) -> None:
        self.random = random
        self.faults = faults
        self.listens: bool | None = True

    def accepts(self, _plug: Plug) -> bool | None:
        """Whether a connection is accepted; None when there is no answer."""
        if not self.listens:
            return self.listens
        met = self.faults.drawn(OF_CONNECTIONS)
        if met is None:
            return True
        return False if met is WireFaultKind.CONNECT_REFUSED else None

    def written(self, connection: Connection, size: int) -> None:
        """A client writes."""
        met = self.faults.drawn(OF_WRITES)
        if met is None or connection.to_server.cut is not None:
            return
        if met is WireFaultKind.REQUEST_TORN:
            connection.to_server.cut = Cut(self.random.randrange(size), connection.reset)
        elif met is WireFaultKind.SILENT:
            connection.to_server.cut = Cut(self.random.randint(0, size), connection.fall_silent)
        elif connection.to_client.carried and not connection.is_watch:
            connection.close_from_server()

    def ended(self, connection: Connection) -> None:
        """A process has ended: its kernel says so to the other end, or is gone as well."""
        if self.faults.drawn(OF_ENDS) is not None:
            connection.fall_silent()
