"""WireFaultKinds are what may go wrong with bytes; a WireFaultPlan draws them by the seed and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from random import Random

from simulation.faults import FaultKind, met


class WireFaultKind(StrEnum):
    """What may go wrong between two HTTP parsers."""

    CONNECT_REFUSED = "connection refused"
    CONNECT_UNANSWERED = "connection without an answer"
    REQUEST_TORN = "connection reset in mid-request"
    SILENT = "half-open connection: bytes vanish both ways"
    KEEP_ALIVE_RACE = "idle connection closed while a request is sent"
    IDLE_CLOSED = "idle connection closed"
    ANSWER_CUT = "answer that is cut off"
    ANSWER_UNFINISHED = "answer whose last bytes never come"
    ANSWER_DRIPS = "answer that drips"
    CLOSED_AFTER_ANSWER = "connection closed after an answer, unannounced"
    LAST_ANSWER = "connection closed after an answer, announced"
    PROXY_PAGE = "page of a proxy in front of the API server"
    PROXY_PAGE_AFTER_EFFECT = "page of a proxy after the request took effect"
    NO_HTTP = "answer that is no HTTP"
    INTERIM = "answer after an interim one"
    REDIRECT = "redirect to a login page"
    LOGIN_PAGE = "login page instead of an answer"
    GATEWAY_TIMEOUT = "504 of a proxy before the request takes effect"
    WATCH_SILENT = "watch that falls silent"
    WATCH_DRIPS = "watch that drips"
    MACHINE_LOST = "end of a process without a word to the other end"


#: All kinds of faults; the key is the name.
KINDS: dict[str, StrEnum] = {kind.name: kind for kind in (*FaultKind, *WireFaultKind)}

#: With the share of what meets them while they are enabled: connections, writes of a client, answers,
#: requests, parts of a watch, and ends of a process.
OF_CONNECTIONS = {WireFaultKind.CONNECT_REFUSED: 0.05, WireFaultKind.CONNECT_UNANSWERED: 0.03}
OF_WRITES = {
    WireFaultKind.REQUEST_TORN: 0.015,
    WireFaultKind.SILENT: 0.005,
    WireFaultKind.KEEP_ALIVE_RACE: 0.05,
}
OF_ANSWERS = {
    WireFaultKind.IDLE_CLOSED: 0.05,
    WireFaultKind.ANSWER_CUT: 0.03,
    WireFaultKind.ANSWER_UNFINISHED: 0.01,
    WireFaultKind.ANSWER_DRIPS: 0.01,
    WireFaultKind.CLOSED_AFTER_ANSWER: 0.05,
    WireFaultKind.LAST_ANSWER: 0.05,
    WireFaultKind.NO_HTTP: 0.02,
    WireFaultKind.INTERIM: 0.03,
    WireFaultKind.PROXY_PAGE_AFTER_EFFECT: 0.01,
}
OF_REQUESTS = {
    WireFaultKind.PROXY_PAGE: 0.03,
    WireFaultKind.REDIRECT: 0.02,
    WireFaultKind.LOGIN_PAGE: 0.02,
    WireFaultKind.GATEWAY_TIMEOUT: 0.02,
}
OF_PARTS = {WireFaultKind.WATCH_SILENT: 0.003, WireFaultKind.WATCH_DRIPS: 0.02}
OF_ENDS = {WireFaultKind.MACHINE_LOST: 0.5}


class WireFaultPlan:
    """Draws faults of bytes: of each run a subset of the kinds, until the faults stop.

    Attributes:
        counts: How often each has happened.
    """

    def __init__(
        self,
        random: Random,
        time: Callable[[], float],
        until: float,
        chosen: Collection[StrEnum] | None = None,
    ) -> None:
        self._random = random
        self._time = time
        self._until = until
        share = random.choice((0.1, 0.3, 0.6))
        drawn = [kind for kind in WireFaultKind if random.random() < share]
        self.enabled = frozenset(drawn if chosen is None else set(WireFaultKind).intersection(chosen))
        self.counts: Counter[StrEnum] = Counter()

    @property
    def is_over(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self._time() >= self._until

    def drawn(self, shares: Mapping[WireFaultKind, float]) -> WireFaultKind | None:
        """What one of them meets, counted."""
        kind = None if self.is_over else met(self._random, shares, self.enabled)
        if kind is not None:
            self.counts[kind] += 1
        return kind
