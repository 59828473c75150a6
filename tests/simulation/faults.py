"""FaultKinds are what may go wrong in a simulation; a FaultPlan draws them by the seed and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from random import Random
from typing import TypeVar

KindT = TypeVar("KindT", bound=StrEnum)


class FaultKind(StrEnum):
    """What may go wrong."""

    LATENCY = "slow exchange"
    DROPPED_REQUEST = "connection dropped before the request arrives"
    LOST_RESPONSE = "response lost after the write took effect"
    BLACK_HOLE = "request that is never answered"
    CONFLICT = "409"
    TOO_MANY_REQUESTS = "429"
    TOO_MANY_WITH_DELAY = "429 with Retry-After"
    INTERNAL_ERROR = "500"
    UNAVAILABLE = "503"
    TIMEOUT = "504"
    TIMEOUT_AFTER_EFFECT = "504 after the write took effect"
    TIMEOUT_BEFORE_EFFECT = "504 before the write takes effect"
    UNAUTHORIZED = "401"
    INVALID = "422"
    TRUNCATED = "answer that ends in the middle"
    PROXY_PAGE = "200 with a page of a proxy, nothing carried out"
    BAD_GATEWAY = "502 with a page of a proxy after the write took effect"
    OLD_ANSWER = "answer that comes long after the state that it shows"
    WATCH_CUT = "watch that ends"
    WATCH_TORN = "watch that ends in mid-line"
    WATCH_LAG = "watch that lags behind others"
    WATCH_EXPIRED = "410 in mid-watch"
    WATCH_SILENT = "watch that is silent until the faults stop"
    WATCH_BEHIND = "watch served by an API server that is behind"
    NO_BOOKMARKS = "bookmark left out"
    RESOURCE_LAGS = "all watches of one resource lag for a minute"
    RIGHTS_TAKEN = "rights taken away for a while"
    AT_BINDING = "fault at a binding"
    AT_RECORD = "fault at the write of a record"
    AT_RECORD_STATUS = "fault at the write of a record's status"
    AT_EVICTION = "fault at an eviction or deletion of a pod"
    AT_LEASE = "fault at the write of the lease"
    AT_POD_STATUS = "fault at the write of a pod's status"
    AT_POLICY_STATUS = "fault at the write of a policy's status"
    AT_CLAIM_STATUS = "fault at the write of a resource claim's status"
    COMPACTION = "etcd compaction: 410 for watches that resume"
    API_RESTART = "API server restart"
    REPLICA_KILLED = "replica killed"
    REPLICA_PAUSED = "replica paused"
    REPLICA_STOPPED = "replica stopped by SIGTERM"
    CLOCK_JUMP = "wall clock of a replica jumps"
    CLOCK_RATE = "clock of a replica runs at another rate for a while"
    REPLICA_SLOW = "one step of a replica takes twelve seconds"
    LEASE_STOLEN = "lease taken by somebody else"
    LEASE_DELETED = "lease deleted"
    LEASE_ABSURD = "lease with absurd contents"
    NODE_GONE = "node deleted"
    NODE_FLAPPED = "node not ready for a while"
    NODE_SHRUNK = "node with less room"
    NODE_TAINTED = "node tainted for a while"
    NODE_ADDED = "node added"
    NODE_REPLACED = "node that comes back under its name as another object"
    NODE_GROWN = "node with more room"
    NODE_CORDONED = "node cordoned for a while"
    NODE_RELABELLED = "labels of a node changed"
    KUBELET_SILENT = "node lost with its pods for a while"
    KUBELET_REFUSES = "kubelet that refuses each pod for a while"
    AUTOSCALER_ADDS = "autoscaler adds a node for pods that wait"
    AUTOSCALER_REMOVES = "autoscaler empties and removes a node"
    OTHER_SCHEDULER = "another scheduler takes room"
    POD_DELETED = "pod deleted by hand"
    POLICY_EDITED = "policy edited"
    BUDGET_CHANGED = "disruption budget changed"
    WORKLOAD_SCALED = "workload scaled"
    RECORD_DELETED = "eviction record deleted by hand"
    RECORD_STATUS_EDITED = "status of a record edited by hand"
    RECORD_ANNOTATED = "record labelled and annotated by hand"
    RECORD_HELD = "record with a finalizer that somebody added"
    RECORD_FORGED = "record created by hand"
    POD_REPLACED = "pod deleted and created again under its name immediately"
    POD_ASSIGNED = "pod created with a node"
    POD_GATED = "pod with a scheduling gate that is lifted later"
    POD_RELABELLED = "labels of a pod changed"
    POD_HELD = "pod stuck in its deletion by a finalizer"
    STATEFUL_POD_DELETED = "pod of a StatefulSet deleted, and created again under its name immediately"
    SCALED_RAPIDLY = "workload scaled up and down within seconds"
    ROLLOUT = "rollout of a workload"
    BROKEN_ROLLOUT = "rollout of pods that never start, crash or are never ready"
    PRIORITY_DELETED = "priority class of a pod deleted"
    MOVE_MEDDLED = "somebody meddles with a move at its requests"
    MOVE_ANSWER_LATE = "answer to a request of a move that comes late"
    SURGE_TURNED_BACK = "pods of a surge deleted while its rollout is taken back, and its node alone open"
    LEASE_MEDDLED = "somebody meddles with a lease at its renewal, and its holder is paused"
    WRITE_REFUSED = "writes of a few kinds refused: 401, 409, 422, 429 or 500"
    NODE_UNREADABLE = "node that cannot be read for a while"


#: Of one exchange, with the share of exchanges that meet it while it is enabled.
OF_EXCHANGES = {
    FaultKind.LATENCY: 0.05,
    FaultKind.DROPPED_REQUEST: 0.03,
    FaultKind.LOST_RESPONSE: 0.05,
    FaultKind.BLACK_HOLE: 0.01,
    FaultKind.CONFLICT: 0.03,
    FaultKind.TOO_MANY_REQUESTS: 0.03,
    FaultKind.TOO_MANY_WITH_DELAY: 0.02,
    FaultKind.INTERNAL_ERROR: 0.03,
    FaultKind.UNAVAILABLE: 0.03,
    FaultKind.TIMEOUT: 0.02,
    FaultKind.TIMEOUT_AFTER_EFFECT: 0.02,
    FaultKind.UNAUTHORIZED: 0.01,
    FaultKind.INVALID: 0.02,
    FaultKind.TRUNCATED: 0.02,
    FaultKind.PROXY_PAGE: 0.02,
    FaultKind.BAD_GATEWAY: 0.02,
    FaultKind.OLD_ANSWER: 0.02,
    FaultKind.TIMEOUT_BEFORE_EFFECT: 0.05,
}

#: Those that meet writes alone.
OF_WRITES_ONLY = frozenset((FaultKind.CONFLICT, FaultKind.INVALID, FaultKind.TIMEOUT_BEFORE_EFFECT))

#: Of one part of a watch, likewise.
OF_WATCHES = {
    FaultKind.WATCH_CUT: 0.01,
    FaultKind.WATCH_TORN: 0.01,
    FaultKind.WATCH_LAG: 0.1,
    FaultKind.WATCH_EXPIRED: 0.01,
    FaultKind.WATCH_SILENT: 0.003,
}

#: Of a whole watch, from its beginning.
OF_OPENINGS = {FaultKind.WATCH_BEHIND: 0.1, FaultKind.NO_BOOKMARKS: 0.5}

#: Of one write of its kind that arrives at the API server, likewise; leases are renewed all the time.
AT_WRITES = {
    FaultKind.AT_BINDING: 0.15,
    FaultKind.AT_RECORD: 0.5,
    FaultKind.AT_RECORD_STATUS: 0.3,
    FaultKind.AT_EVICTION: 0.5,
    FaultKind.AT_LEASE: 0.05,
    FaultKind.AT_POD_STATUS: 0.2,
    FaultKind.AT_POLICY_STATUS: 0.1,
    FaultKind.AT_CLAIM_STATUS: 0.3,
    FaultKind.MOVE_MEDDLED: 0.3,
    FaultKind.MOVE_ANSWER_LATE: 0.4,
    FaultKind.SURGE_TURNED_BACK: 0.7,
    FaultKind.LEASE_MEDDLED: 0.25,
    FaultKind.WRITE_REFUSED: 0.4,
}

#: Kinds that came after the others: they are enabled in this part of the runs in which another kind would be,
#: so that most seeds stay what they were.
LATER = frozenset(
    (
        FaultKind.MOVE_MEDDLED,
        FaultKind.MOVE_ANSWER_LATE,
        FaultKind.SURGE_TURNED_BACK,
        FaultKind.LEASE_MEDDLED,
        FaultKind.TIMEOUT_BEFORE_EFFECT,
        FaultKind.WRITE_REFUSED,
        FaultKind.NODE_UNREADABLE,
    )
)
LATER_PART = 0.25

#: Those that somebody or something does, whenever it is.
DEEDS = [
    kind
    for kind in FaultKind
    if not any(kind in drawn for drawn in (OF_EXCHANGES, OF_WATCHES, OF_OPENINGS, AT_WRITES))
]


def met(random: Random, shares: Mapping[KindT, float], enabled: Collection[KindT]) -> KindT | None:
    """One of the kinds that are enabled, each with its share, or none."""
    drawn = random.random()
    for kind, share in shares.items():
        if kind in enabled:
            drawn -= share
            if drawn < 0.0:
                return kind
    return None


class FaultPlan:
    """Draws faults: of each run a subset of the kinds, until the faults stop.

    Args:
        random: Draws.
        time: Virtual seconds.
        until: When the faults stop.
        chosen: The kinds that happen; None draws them.
        kept: Single faults that happen, by their numbers in the order in which they are drawn; None for all.

    Attributes:
        enabled: The kinds that happen in this run.
        counts: How often each has happened.
        drawn: How many single faults were drawn, whether they happened or not.
    """

    def __init__(
        self,
        random: Random,
        time: Callable[[], float],
        until: float,
        chosen: Collection[StrEnum] | None = None,
        kept: Collection[int] | None = None,
    ) -> None:
        self._random = random
        self._time = time
        self.until = until
        share = random.choice((0.1, 0.3, 0.6))
        drawn = random.getrandbits(64)
        # Each kind by a source of its own: a new kind does not change which of the others a seed has.
        shares = {kind: share * LATER_PART if kind in LATER else share for kind in FaultKind}
        among = [kind for kind in FaultKind if Random(f"{drawn} {kind.name}").random() < shares[kind]]
        self.enabled = frozenset(among if chosen is None else set(FaultKind).intersection(chosen))
        self.counts: Counter[FaultKind] = Counter()
        self.drawn = 0
        self._kept = kept

    @property
    def is_over(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self._time() >= self.until

    def of_exchange(self, *, is_write: bool) -> FaultKind | None:
        """What an exchange meets."""
        kind = self._drawn(OF_EXCHANGES)
        if kind in OF_WRITES_ONLY and not is_write:
            return None
        return self.count(kind) if kind is not None and self._is_kept() else None

    def of_watch(self) -> FaultKind | None:
        """What a part of a watch meets."""
        kind = self._drawn(OF_WATCHES)
        return self.count(kind) if kind is not None and self._is_kept() else None

    def of_opening(self) -> FaultKind | None:
        """What a watch meets as a whole; bookmarks are counted one by one."""
        kind = self._drawn(OF_OPENINGS)
        return kind if kind in (None, FaultKind.NO_BOOKMARKS) else self.count(kind)

    def at_write(self, kind: FaultKind) -> bool:
        """Whether something happens at a write of this kind."""
        if kind not in self.enabled or self.is_over or self._random.random() >= AT_WRITES[kind]:
            return False
        return self._is_kept()

    def deed(self) -> FaultKind | None:
        """What somebody does next."""
        kinds = [kind for kind in DEEDS if kind in self.enabled]
        kind = self._random.choice(kinds) if kinds and not self.is_over else None
        return kind if kind is not None and self._is_kept() else None

    def _is_kept(self) -> bool:
        """Whether the single fault that was just drawn happens."""
        self.drawn += 1
        return self._kept is None or self.drawn - 1 in self._kept

    def count(self, kind: FaultKind) -> FaultKind:
        """It has happened."""
        self.counts[kind] += 1
        return kind

    def _drawn(self, shares: dict[FaultKind, float]) -> FaultKind | None:
        return None if self.is_over else met(self._random, shares, self.enabled)
