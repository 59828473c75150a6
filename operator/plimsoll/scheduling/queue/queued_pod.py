"""Counts the attempts of a queued pod, and decides by their number how long it is in back-off.

Source: kube-scheduler v1.36, ``framework/types.go`` (QueuedPodInfo), ``backend/queue/backoff_queue.go``.
"""

import math

from msgspec import Struct

from plimsoll.framework import PodInfo

INITIAL_BACKOFF_S, MAX_BACKOFF_S = 1.0, 10.0

#: Seconds after which a waiting pod is stalled, if never tried or after so many errors in a row.
STALLED_S, STALLED_ERRORS = 600.0, 5

#: Back-off after the first of several attempts in a row that took too much, and after the last.
ASIDE_S, MAX_ASIDE_S = 60.0, 3600.0


class QueuedPod(Struct):
    """A waiting pod and its history.

    Attributes:
        pod: Its latest state.
        timestamp: When it entered the queue, or its last attempt ended.
        first_seen: When it could first be tried: on entering the queue, or when its first gate opened.
        attempts: How often it was popped.
        unschedulable_count: Attempts that some plugin rejected; never reset.
        error_count: Attempts in a row that ended with an error.
        costly_count: Attempts in a row that were given up because they took too much processor time.
        rejected_by: Plugins that rejected the last attempt.
        pending_on: Plugins that rejected it until an outside action; their events skip the back-off.
        gated_by: The PreEnqueue plugin that gates it, "" without one.
        event: The event that moved it to its queue, as metrics name it.
    """

    pod: PodInfo
    timestamp: float
    first_seen: float
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    costly_count: int = 0
    rejected_by: frozenset[str] = frozenset()
    pending_on: frozenset[str] = frozenset()
    gated_by: str = ""
    event: str = ""

    def note_failure(self, now: float, rejected_by: frozenset[str], pending_on: frozenset[str]) -> None:
        """Record a failed attempt; without a rejecting plugin it was an error."""
        self.timestamp = now
        self.rejected_by, self.pending_on = rejected_by, pending_on
        if rejected_by or pending_on:
            self.unschedulable_count += 1
            self.error_count = 0
        else:
            self.error_count += 1

    def backoff_s(self) -> float:
        """Back-off after the last attempt, in seconds."""
        if self.costly_count:
            return min(ASIDE_S * 2.0 ** min(self.costly_count - 1, 10), MAX_ASIDE_S)
        count = self.error_count or self.unschedulable_count
        return 0.0 if not count else min(INITIAL_BACKOFF_S * 2.0 ** min(count - 1, 10), MAX_BACKOFF_S)

    def ready_second(self) -> int:
        """The last whole second of the back-off; the pod is ready after it."""
        return math.floor(self.timestamp + self.backoff_s())

    def is_backing_off(self, now: float) -> bool:
        """Whether the pod is in back-off."""
        return self.backoff_s() > 0 and self.ready_second() >= math.floor(now)

    def is_stalled(self, now: float) -> bool:
        """Whether the pod waits for long although no plugin rejects and no gate holds it."""
        if self.gated_by or self.rejected_by or self.pending_on or now - self.first_seen <= STALLED_S:
            return False
        return not self.attempts or self.error_count >= STALLED_ERRORS
