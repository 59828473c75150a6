"""ChaosKinds are what goes wrong in a run on sockets; ChaosFaults draws them by the seed and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from random import Random


class ChaosKind(StrEnum):
    """What goes wrong."""

    DELAY = "request delayed"
    CUT = "connection cut before the request is passed on"
    RESET = "connection reset before the request is passed on"
    TORN_REQUEST = "request that ends in the middle"
    REPEATED = "request passed on twice"
    LOST_ANSWER = "answer lost after the request took effect"
    TORN_ANSWER = "answer that ends in the middle"
    SLOW_ANSWER = "answer that trickles"
    HALF_CLOSED = "connection half-closed instead of an answer"
    SWALLOWED = "request swallowed: neither answered nor passed on"
    SWALLOWED_ANSWER = "answer swallowed: it took effect, and the connection stays open"
    CONFLICT = "409"
    BUSY = "429"
    BUSY_WITH_DELAY = "429 with Retry-After"
    INTERNAL_ERROR = "500"
    BAD_GATEWAY = "502 of a proxy, in HTML"
    UNAVAILABLE = "503"
    TIMEOUT = "504"
    TIMEOUT_AFTER_EFFECT = "504 after the write took effect"
    UNAUTHORIZED = "401"
    WATCH_CUT = "watch that ends"
    WATCH_TORN = "watch that ends in mid-line"
    WATCH_LAG = "watch held back for seconds"
    WATCH_SILENT = "watch that says nothing more and stays open"
    WATCH_GONE = "410 in a watch"
    REFUSED = "one operator is refused connections for a while"
    PARTITION = "all that one operator sends is swallowed for a while"
    OUTAGE = "both operators are refused connections for a while"
    SERVER_HELD = "SIGSTOP of the API server for a moment"
    SERVER_KILLED = "SIGKILL and start of the API server"
    KILLED = "SIGKILL of an operator"
    PAUSED = "SIGSTOP and SIGCONT of an operator"
    STOPPED = "SIGTERM of an operator"
    LEASE_STOLEN = "lease taken by somebody else"
    POD_DELETED = "pod deleted by hand"
    SCALED = "Deployment scaled"
    NODE_TAINTED = "node tainted for a while"
    NODE_FLAPPED = "node not ready for a while"
    NODE_CORDONED = "node cordoned for a while"
    NODE_REPLACED = "node deleted and created again"
    BUDGET_CHANGED = "disruption budget changed"
    POLICY_EDITED = "policy edited"
    RECORD_DELETED = "eviction record deleted by hand"
    ROOM_TAKEN = "another scheduler takes room"


#: Of one exchange, with the share of exchanges that meet it.
OF_EXCHANGES: Mapping[ChaosKind, float] = {
    ChaosKind.DELAY: 0.03,
    ChaosKind.CUT: 0.01,
    ChaosKind.RESET: 0.01,
    ChaosKind.TORN_REQUEST: 0.005,
    ChaosKind.REPEATED: 0.005,
    ChaosKind.LOST_ANSWER: 0.02,
    ChaosKind.TORN_ANSWER: 0.01,
    ChaosKind.SLOW_ANSWER: 0.01,
    ChaosKind.HALF_CLOSED: 0.005,
    ChaosKind.SWALLOWED: 0.003,
    ChaosKind.SWALLOWED_ANSWER: 0.003,
    ChaosKind.CONFLICT: 0.01,
    ChaosKind.BUSY: 0.01,
    ChaosKind.BUSY_WITH_DELAY: 0.005,
    ChaosKind.INTERNAL_ERROR: 0.01,
    ChaosKind.BAD_GATEWAY: 0.005,
    ChaosKind.UNAVAILABLE: 0.01,
    ChaosKind.TIMEOUT: 0.005,
    ChaosKind.TIMEOUT_AFTER_EFFECT: 0.01,
    ChaosKind.UNAUTHORIZED: 0.003,
}

#: Of one part of a watch, likewise.
OF_WATCHES: Mapping[ChaosKind, float] = {
    ChaosKind.WATCH_CUT: 0.004,
    ChaosKind.WATCH_TORN: 0.004,
    ChaosKind.WATCH_LAG: 0.02,
    ChaosKind.WATCH_SILENT: 0.001,
    ChaosKind.WATCH_GONE: 0.002,
}

#: What befalls connections and processes, with how often relative to each other.
OF_MACHINES: Mapping[ChaosKind, float] = {
    ChaosKind.REFUSED: 1.0,
    ChaosKind.PARTITION: 1.0,
    ChaosKind.OUTAGE: 0.5,
    ChaosKind.SERVER_HELD: 0.5,
    ChaosKind.SERVER_KILLED: 0.5,
    ChaosKind.KILLED: 1.5,
    ChaosKind.PAUSED: 1.5,
    ChaosKind.STOPPED: 1.0,
    ChaosKind.LEASE_STOLEN: 0.5,
}

#: What people and other programs do to the cluster, likewise.
OF_PEOPLE: Mapping[ChaosKind, float] = {
    ChaosKind.POD_DELETED: 8.0,
    ChaosKind.SCALED: 8.0,
    ChaosKind.NODE_TAINTED: 3.0,
    ChaosKind.NODE_FLAPPED: 2.0,
    ChaosKind.NODE_CORDONED: 2.0,
    ChaosKind.NODE_REPLACED: 1.0,
    ChaosKind.BUDGET_CHANGED: 2.0,
    ChaosKind.POLICY_EDITED: 1.0,
    ChaosKind.RECORD_DELETED: 1.0,
    ChaosKind.ROOM_TAKEN: 2.0,
}


class ChaosFaults:
    """Draws faults while they last.

    On sockets a seed says what goes wrong, and not in which moment: a run is not repeated by it.

    Attributes:
        random: Draws.
        is_over: Whether nothing goes wrong any more; at first nothing does.
        counts: How often each kind has happened.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_over = True
        self.counts: Counter[ChaosKind] = Counter()

    def of_exchange(self, *, is_write: bool) -> ChaosKind | None:
        """What an exchange meets."""
        kind = self._drawn(OF_EXCHANGES)
        if kind is ChaosKind.CONFLICT and not is_write:
            return None
        return kind if kind is None else self.count(kind)

    def of_watch(self) -> ChaosKind | None:
        """What a part of a watch meets."""
        kind = self._drawn(OF_WATCHES)
        return kind if kind is None else self.count(kind)

    def deed(self, shares: Mapping[ChaosKind, float]) -> ChaosKind:
        """What happens next."""
        return self.random.choices(list(shares), list(shares.values()))[0]

    def count(self, kind: ChaosKind) -> ChaosKind:
        """It has happened."""
        self.counts[kind] += 1
        return kind

    def _drawn(self, shares: Mapping[ChaosKind, float]) -> ChaosKind | None:
        if self.is_over:
            return None
        drawn = self.random.random()
        for kind, share in shares.items():
            drawn -= share
            if drawn < 0.0:
                return kind
        return None
