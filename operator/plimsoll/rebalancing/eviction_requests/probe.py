"""Probes whether the server serves the EvictionRequest API; repeats every 30 s.

While the API is missing, a policy that evicts by EvictionRequest evicts nothing: any other way would break
its promise to the pods' responders.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.ports.clock import Clock
from plimsoll.ports.eviction_requests import EvictionRequester
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.ways import REQUESTS_API, leaves_by_request
from plimsoll.timing.signal import Signal

#: Seconds after which the server is probed again.
ASK_S = 30.0

#: Seconds without requests after no controller acted on one.
UNATTENDED_S = 600.0

#: Reasons of conditions and records.
NOT_OFFERED, UNATTENDED = "EvictionRequestsNotOffered", "EvictionRequestsUnattended"

_WHERE = "spec.rebalancing.evictBy is EvictionRequest"
_NOT_ASKED = f"{_WHERE}: the server has not been asked yet whether it offers {REQUESTS_API}/v1alpha1"
_WHAT_TO_DO = "no pod is evicted until it does, or until evictBy is Eviction"


@dataclass(eq=False)
class EvictionRequestProbe:
    """Probes the EvictionRequest API of the server."""

    policies: Mapping[str, SchedulingPolicy]  #: policies that rebalance, keyed by name, at any moment
    requester: EvictionRequester
    clock: Clock
    changed: Signal  #: notified when evictions by request become available or unavailable
    wanted: Signal = field(default_factory=Signal, init=False)  #: notified when a probe may be needed
    judged: Signal = field(default_factory=Signal, init=False)  #: notified after each response of the server
    _asked: float | None = field(default=None, init=False)
    _why_not: str = field(default=_NOT_ASKED, init=False)
    _left_alone_until: float = field(default=float("-inf"), init=False)
    _left_alone: str = field(default="", init=False)

    @property
    def is_served(self) -> bool:
        """Whether the server serves the API."""
        return not self._why_not

    @property
    def problem(self) -> str:
        """Why no request can be made, "" if one can."""
        if self._why_not:
            return self._why_not
        return self._left_alone if self.clock.monotonic() < self._left_alone_until else ""

    @property
    def reason(self) -> str:
        """The same as a machine reason."""
        return NOT_OFFERED if self._why_not else UNATTENDED

    def refusal(self) -> tuple[str, str] | None:
        """Reason and sentence why no request can be made; None if one can."""
        return (self.reason, self.problem) if self.problem else None

    def troubles(self) -> Mapping[str, str]:
        """Sentences about what keeps policies that evict by request from moving pods, by reason."""
        return {self.reason: self.problem} if self._asked is not None and self.problem else {}

    def policies_changed(self) -> None:
        """Check whether a policy needs the API, as policies have changed."""
        self.wanted.notify()

    def next_due(self) -> float | None:
        """When the next probe is due, in monotonic seconds; None while no policy needs the API."""
        if self._asked is None or not self._is_wanted():
            return None
        due = self._asked + ASK_S
        is_left_alone = self.clock.monotonic() < self._left_alone_until
        return min(due, self._left_alone_until) if is_left_alone else due

    def _is_wanted(self) -> bool:
        return any(leaves_by_request(policy) for policy in self.policies.values())

    def withdrawn(self, message: str) -> None:
        """Record that the server no longer serves the API."""
        self._asked = self.clock.monotonic()
        self._judge(WriteResult(WriteOutcome.GONE, message))
        self.wanted.notify()

    def unattended(self, message: str) -> None:
        """Record that no controller acts on requests; none is made for a while."""
        self._left_alone_until = self.clock.monotonic() + UNATTENDED_S
        self._left_alone = f"{_WHERE}: {message}; tried again within {UNATTENDED_S / 60:.0f} minutes"
        self.wanted.notify()

    async def refresh(self, *, immediately: bool = False) -> None:
        """Probe the server if a policy needs the API and no probe was made lately."""
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
            case _ if self._why_not:  # otherwise it was served a moment ago
                self._why_not = f"{_WHERE}, but whether the server offers it is not known: {answer.message}"
        self.judged.notify()
