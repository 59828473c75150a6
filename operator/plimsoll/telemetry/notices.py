"""Sends notices of moves, stops and refusals as CloudEvents to one address; nothing waits for it.

A notice is made where the operator tells its log of a move, or records an event on a policy or a maintenance.
The queue is bounded: when it is full the oldest notice goes. Each that was not delivered is counted.
"""

import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.rate_limit import RateLimiter
from plimsoll.timing.signal import Signal

#: Notices that wait, at most.
MOST_WAITING = 1_000

#: Notices that are sent without a pause before the rate applies.
BURST = 20

#: Seconds before the second and third attempt.
RETRIES_S = (2.0, 10.0)

#: Phases of a move that make a notice: beginning and ends; predictions and proposals are counted.
TOLD = frozenset({Phase.EVICTING, Phase.SURGING, *FINISHED} - {Phase.PREDICTED})

#: Kinds whose events make a notice.
KINDS = frozenset(("SchedulingPolicy", "NodeMaintenance"))

Post = Callable[[Mapping[str, object]], Awaitable[str]]
"""Sends an event; returns why it was not accepted, "" if it was."""


class Notices(Observer):
    """The notifier.

    Args:
        cluster: Name of the cluster, "" for none.
        per_minute: Notices in the long run, at most.
    """

    def __init__(self, post: Post, cluster: str, per_minute: int, clock: Clock, observer: Observer) -> None:
        self._post, self._clock, self._observer = post, clock, observer
        self._cluster = cluster
        self._pace = RateLimiter(clock, per_minute / 60.0, min(per_minute, BURST))
        self._waiting: deque[Mapping[str, object]] = deque()
        self._news = Signal()

    def move_told(self, decision: str, step: str, facts: Mapping[str, object]) -> None:
        """Send a notice of a move that has begun or ended."""
        if step in TOLD:
            self._tell(f"move.{step.lower()}", decision, {"phase": step, "record": decision, **facts})

    def object_noted(self, kind: str, name: str, reason: str, text: str, *, is_warning: bool) -> None:
        """Tell what is said of a policy or a maintenance: runs in counts, stops, obstacles."""
        if kind in KINDS:
            facts = {"kind": kind, "name": name, "reason": reason, "message": text, "isWarning": is_warning}
            self._tell(f"{kind.lower()}.{reason.lower()}", name, facts)

    def _tell(self, what: str, subject: str, facts: Mapping[str, object]) -> None:
        event = {
            "specversion": "1.0",
            "id": str(uuid.uuid4()),
            "source": f"/clusters/{self._cluster}/plimsoll" if self._cluster else "/plimsoll",
            "type": f"dev.plimsoll.{what}",
            "subject": subject,
            "time": datetime.fromtimestamp(self._clock.now(), UTC).isoformat().replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "data": {**({"cluster": self._cluster} if self._cluster else {}), **facts},
        }
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._observer.notice_ended("dropped", f"{MOST_WAITING} notices wait already")
        self._waiting.append(event)
        self._news.notify()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._news.until(lambda: bool(self._waiting))
            await self._pace.turn()
            problem = await self._sent(self._waiting.popleft())
            self._observer.notice_ended("failed" if problem else "sent", problem)

    async def _sent(self, event: Mapping[str, object]) -> str:
        problem = await self._post(event)
        for pause_s in RETRIES_S:
            if not problem:
                break
            await self._clock.sleep(pause_s)
            problem = await self._post(event)
        return problem
