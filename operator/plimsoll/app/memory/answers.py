"""MemoryAnswers report the in-memory state of a pod or node; they run in the main loop's thread."""

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.answers.operator_memory import NodeMemory, PodMemory, QueueMemory, RoomMemory
from plimsoll.cluster.reservations import Reservation, ReservationBook
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.queue.queue import SchedulingQueue

#: Maximum number of pods and reservations that one response lists.
MOST = 500


@dataclass(frozen=True)
class MemoryAnswers:
    """Reads the queue, the cache and the reservation book; writes nothing.

    Attributes:
        standing: The state of the election, in words.
    """

    queue: SchedulingQueue
    book: ReservationBook
    clock: Clock
    standing: Callable[[], str]

    def pod(self, namespace: str, name: str) -> PodMemory:
        """The state of a pod; empty for an unknown pod."""
        key = f"{namespace}/{name}"
        cache = self.book.cache
        uids: list[str] = [each.pod.uid for each in self.queue if each.pod.key == key]
        uids += [uid for uid in cache.assumed if cache.cluster.pods[uid].key == key]
        uid = uids[0] if uids else ""
        held = self.book.held_by_uid(uid)
        return PodMemory(
            standing=self.standing(),
            queue=self._queued(uid),
            assumed=cache.assumed.get(uid, ""),
            room=None if held is None else self._room(held),
        )

    def node(self, name: str) -> NodeMemory:
        """The state of a node; empty for an unknown node."""
        cache = self.book.cache
        assumed = [cache.cluster.pods[uid].key for uid, node in cache.assumed.items() if node == name]
        held = [self.book.held_by_uid(uid) for uid in self.book.nominator.by_node.get(name, {})]
        return NodeMemory(
            standing=self.standing(),
            assumed=sorted(assumed)[:MOST],
            rooms=[self._room(each) for each in held[:MOST] if each is not None],
        )

    def _queued(self, uid: str) -> QueueMemory | None:
        found = self.queue.whereabouts(uid)
        if found is None:
            return None
        place, queued, ahead = found
        now = self.clock.monotonic()
        backoff = queued.timestamp + queued.backoff_s() - now if place == "backoff" else 0.0
        return QueueMemory(
            queue=place,
            ahead=ahead,
            attempts=queued.attempts,
            waited_seconds=max(0, round(now - queued.timestamp)),
            backoff_seconds=max(0, round(backoff)),
            rejected_by=sorted(queued.rejected_by | queued.pending_on),
            gated_by=queued.gated_by,
            event=queued.event,
        )

    def _room(self, held: Reservation) -> RoomMemory:
        left = None if held.until is None else max(0, round(held.until - self.clock.monotonic()))
        return RoomMemory(
            node=held.node, pod=held.pod.key, reason=held.reason, owner=held.owner, seconds_left=left
        )
