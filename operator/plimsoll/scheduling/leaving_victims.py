"""Activates a preemptor as soon as the last of its victims has left.

The preemptor's room is reserved. Instead of waiting out its back-off behind newer pods it becomes active, in
the order of the queue.
"""

from collections.abc import Iterable

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.watch_events import PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import PodInfo
from plimsoll.model.names import PodUid
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.queue.queue import SchedulingQueue


class LeavingVictims:
    """Terminating victims by preemptor; observes events after the queue's feed."""

    def __init__(self, queue: SchedulingQueue, cache: Cache, clock: Clock) -> None:
        self._queue = queue
        self._cache = cache
        self._clock = clock
        self._awaited: dict[str, set[PodUid]] = {}  #: uids of victims by the preemptor's uid
        self._preemptor_of: dict[str, str] = {}  #: the preemptor's uid by the victim's

    def expect(self, preemptor: PodInfo, victims: Iterable[PodInfo]) -> None:
        """Record the terminating victims that a queued preemptor waits for; replaces earlier ones.

        A victim of two preemptors counts for the later one. A preemptor that was deleted while its victims
        were being removed is not recorded.
        """
        uid = preemptor.uid
        self._expect_none(uid)
        if uid not in self._queue:
            return
        placed = self._cache.cluster.pods
        awaited = {victim.uid for victim in victims if victim.uid in placed}
        for victim in awaited:
            self._forget(victim)
            self._preemptor_of[victim] = uid
        if awaited:
            self._awaited[uid] = awaited
        else:
            self._try_again(uid)

    def observe(self, event: WatchEvent) -> None:
        """Handle a deleted or ended pod: a victim, or a preemptor whose victims may stay for hours."""
        match event:
            case PodDeleted(pod):
                pass
            case PodUpdated(_, pod) if pod.is_terminal:
                pass
            case _:
                return
        self._expect_none(pod.uid)
        uid = self._forget(pod.uid)
        if uid and uid not in self._awaited:
            self._try_again(uid)

    def _expect_none(self, preemptor: str) -> None:
        for victim in self._awaited.pop(preemptor, ()):
            del self._preemptor_of[victim]

    def _forget(self, victim: str) -> str:
        """Remove a victim; returns the uid of its preemptor, "" without one."""
        uid = self._preemptor_of.pop(victim, "")
        if uid:
            awaited = self._awaited[uid]
            awaited.discard(victim)
            if not awaited:
                del self._awaited[uid]
        return uid

    def _try_again(self, uid: str) -> None:
        self._queue.activate((uid,), self._clock.monotonic())
