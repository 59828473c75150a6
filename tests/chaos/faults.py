"""ChaosKinds are what goes wrong in a run on sockets; ChaosFaults draws them by the seed and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
    TIMEOUT_BEFORE_EFFECT = "504 before the write takes effect, up to two seconds later"
    UNAUTHORIZED = "401"
    WATCH_CUT = "watch that ends"
    WATCH_TORN = "watch that ends in mid-line"
    WATCH_LAG = "watch held back for seconds"
    WATCH_SILENT = "watch that says nothing more and stays open"
    WATCH_GONE = "410 in a watch"
    STORM_OF_409 = "storm of 409: most writes of both operators, for a while"
    STORM_OF_429 = "storm of 429: most requests of both operators, for a while"
    STORM_OF_500 = "storm of 500: most requests of both operators, for a while"
    STORM_OF_504 = "storm of 504, before or after the effect or without one, for a while"
    DISK_FULL = "etcd has no space: 500 for each write, for a while"
    REFUSED = "one operator is refused connections for a while"
    PARTITION = "all that one operator sends is swallowed for a while"
    OUTAGE = "both operators are refused connections for a while"
    SERVER_HELD = "SIGSTOP of the API server for a moment"
    SERVER_KILLED = "SIGKILL and start of the API server"
    KILLED = "SIGKILL of an operator"
    PAUSED = "SIGSTOP and SIGCONT of an operator"
    STOPPED = "SIGTERM of an operator"
    LEASE_STOLEN = "lease taken by somebody else"
    NO_NAMES = "the API server's name is not resolved for a while"
    TOKEN_EXPIRED = "token of an operator expires before its file is replaced"
    CERTIFICATE_RENEWED = "certificate of the API server renewed"
    CERTIFICATE_EXPIRED = "certificate of the API server expired for a while, then renewed"
    CLOCK_STEPPED = "wall clock of an operator stepped to an hour ahead or behind, or back"
    VERSION_CHANGED = "operator replaced by one of another version"
    DEFINITION_DELETED = "custom resource definition deleted, and created again"
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
    BOUND_BY_RIVAL = "another scheduler binds a pod of ours"
    EVICTED_BY_RIVAL = "a descheduler next to ours evicts a pod"
    PEOPLE_AT_WORK = "people work with what a feature has made"


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
    ChaosKind.TIMEOUT_BEFORE_EFFECT: 0.01,
    ChaosKind.UNAUTHORIZED: 0.003,
}

#: What both operators meet in a storm, with the share of exchanges; of :data:`OF_WRITES` only at writes.
STORMS: Mapping[ChaosKind, Mapping[ChaosKind, float]] = {
    ChaosKind.STORM_OF_409: {ChaosKind.CONFLICT: 0.8},
    ChaosKind.STORM_OF_429: {ChaosKind.BUSY: 0.5, ChaosKind.BUSY_WITH_DELAY: 0.4},
    ChaosKind.STORM_OF_500: {ChaosKind.INTERNAL_ERROR: 0.9},
    ChaosKind.STORM_OF_504: {
        ChaosKind.TIMEOUT: 0.3,
        ChaosKind.TIMEOUT_AFTER_EFFECT: 0.3,
        ChaosKind.TIMEOUT_BEFORE_EFFECT: 0.3,
    },
    ChaosKind.DISK_FULL: {ChaosKind.DISK_FULL: 1.0},
}

#: Kinds that meet writes alone.
OF_WRITES = frozenset((ChaosKind.CONFLICT, ChaosKind.TIMEOUT_BEFORE_EFFECT, ChaosKind.DISK_FULL))

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
    **dict.fromkeys(STORMS, 0.6),
    ChaosKind.NO_NAMES: 0.7,
    ChaosKind.TOKEN_EXPIRED: 1.0,
    ChaosKind.CERTIFICATE_RENEWED: 0.5,
    ChaosKind.CERTIFICATE_EXPIRED: 0.5,
    ChaosKind.CLOCK_STEPPED: 1.5,
    ChaosKind.VERSION_CHANGED: 1.0,
    ChaosKind.DEFINITION_DELETED: 0.7,
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
    ChaosKind.BOUND_BY_RIVAL: 2.0,
    ChaosKind.EVICTED_BY_RIVAL: 2.0,
    ChaosKind.PEOPLE_AT_WORK: 8.0,
}


class ChaosFaults:
    """Draws faults while they last.

    On sockets a seed says what goes wrong, and not in which moment: a run is not repeated by it.

    Attributes:
        random: Draws.
        is_over: Whether nothing goes wrong any more; at first nothing does.
        counts: How often each kind has happened.
        by_feature: How often a kind has met a request about an object of a feature, or has happened while
            something of a feature was under way.
        in_storms: How many answers storms have given.
        storm: The kind of storm that both operators are in.
        under_way: Names the features of which something is under way.
        about: Names the features that a path is about.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_over = True
        self.counts: Counter[ChaosKind] = Counter()
        self.by_feature: Counter[tuple[ChaosKind, str]] = Counter()
        self.in_storms = 0
        self.storm: ChaosKind | None = None
        self.under_way: Callable[[], Iterable[str]] = tuple
        self.about: Callable[[str], Iterable[str]] = lambda _: ()

    def of_exchange(self, path: str, *, is_write: bool) -> ChaosKind | None:
        """What an exchange meets."""
        kind = self._drawn(OF_EXCHANGES if self.storm is None else STORMS[self.storm])
        if kind is None or (kind in OF_WRITES and not is_write):
            return None
        if self.storm is not None:
            self.in_storms += 1
            return kind
        return self._counted(kind, self.about(path))

    def of_watch(self) -> ChaosKind | None:
        """What a part of a watch meets."""
        kind = self._drawn(OF_WATCHES)
        return kind if kind is None else self.count(kind)

    def deed(self, shares: Mapping[ChaosKind, float]) -> ChaosKind:
        """What happens next."""
        return self.random.choices(list(shares), list(shares.values()))[0]

    def count(self, kind: ChaosKind) -> ChaosKind:
        """It has happened."""
        return self._counted(kind, self.under_way())

    def _counted(self, kind: ChaosKind, features: Iterable[str]) -> ChaosKind:
        self.counts[kind] += 1
        self.by_feature.update((kind, each) for each in features)
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
