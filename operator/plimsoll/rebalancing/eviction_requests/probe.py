"""Probes whether the server serves the EvictionRequest API; repeats every 30 s.

A policy that wants its pods to leave by EvictionRequest evicts nothing while the API is missing: another
way would break what it promises to their responders.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.ports.clock import Clock
from plimsoll.ports.eviction_requests import EvictionRequester
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.ways import REQUESTS_API, leaves_by_request
from plimsoll.timing.signal import Signal

#: Seconds after which the server is asked again.
ASK_S = 30.0

#: Seconds for which no request is made after no controller took one up.
UNATTENDED_S = 600.0

#: Reasons of conditions and records.
NOT_OFFERED, UNATTENDED = "EvictionRequestsNotOffered", "EvictionRequestsUnattended"

_WHERE = "spec.rebalancing.evictBy is EvictionRequest"
_NOT_ASKED = f"{_WHERE}: the server has not been asked yet whether it offers {REQUESTS_API}/v1alpha1"
_WHAT_TO_DO = "no pod is evicted until it does, or until evictBy is Eviction"


@dataclass(eq=False)
class EvictionRequestProbe:
    """What the server offers."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    requester: EvictionRequester
    clock: Clock
    changed: Signal  #: notified when evictions by request may have become available, or are so no longer
    wanted: Signal = field(default_factory=Signal, init=False)  #: notified when there may be something to ask
    judged: Signal = field(default_factory=Signal, init=False)  #: notified after each answer of the server
    _asked: float | None = field(default=None, init=False)
    _why_not: str = field(default=_NOT_ASKED, init=False)
    _left_alone_until: float = field(default=float("-inf"), init=False)
    _left_alone: str = field(default="", init=False)

    @property
    def is_served(self) -> bool:
        """Whether the API can be spoken to."""
        return not self._why_not

    @property
    def problem(self) -> str:
        """Why no request can be made, "" when one can."""
        if self._why_not:
            return self._why_not
        return self._left_alone if self.clock.monotonic() < self._left_alone_until else ""

    @property
    def reason(self) -> str:
        """The same in one word."""
        return NOT_OFFERED if self._why_not else UNATTENDED

    def refusal(self) -> tuple[str, str] | None:
        """Reason and sentence why no request can be made; None when one can."""
        return (self.reason, self.problem) if self.problem else None

    def troubles(self) -> Mapping[str, str]:
        """What keeps policies that evict by request from moving pods, in sentences by reason."""
        return {self.reason: self.problem} if self._asked is not None and self.problem else {}

    def policies_changed(self) -> None:
        """Policies may want the API now, or no longer."""
        self.wanted.notify()

    def next_due(self) -> float | None:
        """When to look again, in seconds of the monotonic clock; None while no policy wants the API."""
        if self._asked is None or not self._is_wanted():
            return None
        due = self._asked + ASK_S
        is_left_alone = self.clock.monotonic() < self._left_alone_until
        return min(due, self._left_alone_until) if is_left_alone else due

    def _is_wanted(self) -> bool:
        return any(leaves_by_request(policy) for policy in self.policies.values())

    def withdrawn(self, message: str) -> None:
        """The server no longer serves the API."""
        self._asked = self.clock.monotonic()
        self._judge(WriteResult(WriteOutcome.GONE, message))
        self.wanted.notify()

    def unattended(self, message: str) -> None:
        """No controller acts on requests; none is made for a while."""
        self._left_alone_until = self.clock.monotonic() + UNATTENDED_S
        self._left_alone = f"{_WHERE}: {message}; tried again within {UNATTENDED_S / 60:.0f} minutes"
        self.wanted.notify()

    async def refresh(self, *, immediately: bool = False) -> None:
        """Ask the server if a policy wants the API and the server was not asked lately."""
        now = self.clock.monotonic()
        is_due = immediately or self._asked is None or now - self._asked >= ASK_S
        if is_due and self._is_wanted():
            self._asked = now
            answer = await self.requester.offered()
            if answer.is_done:
                answer, _ = await self.requester.list()
            self._judge(answer)
        self.changed.notify()

    def _judge(self, answer: WriteResult) -> None:
        match answer.verdict:
            case WriteOutcome.DONE:
                self._why_not = ""
            case WriteOutcome.GONE:
                self._why_not = (
                    f"{_WHERE}, but the server does not offer {REQUESTS_API}/v1alpha1 (alpha in Kubernetes"
                    f" 1.37, feature gate EvictionRequestAPI); {_WHAT_TO_DO}"
                )
            case WriteOutcome.REFUSED:
                self._why_not = (
                    f"{_WHERE}, but the operator may not use {REQUESTS_API}/v1alpha1: {answer.message}; apply"
                    " deploy/components/eviction-requests, or set evictionRequests of the chart"
                )
            case _ if self._why_not:  # else it was there a moment ago
                self._why_not = f"{_WHERE}, but whether the server offers it is not known: {answer.message}"
        self.judged.notify()
