"""Room that is held, by nominations, for members whose binding failed while their group was starting."""

from dataclasses import dataclass

from plimsoll.cluster.cache import Cache
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.queue.queue import SchedulingQueue, room_freed


@dataclass(frozen=True, slots=True)
class Room:
    """One member's.

    Attributes:
        group: Key of its PodGroup.
        pod: The member.
        node: Where.
        scheduler: Whose nominations hold it.
    """

    group: str
    pod: PodInfo
    node: str
    scheduler: ProfileScheduler


class GangRooms:
    """Holds rooms against pods of no higher priority.

    Args:
        cache: Knows what hints look at.
        queue: Others may be woken when a room is given up.
        clock: Time.
    """

    def __init__(self, cache: Cache, queue: SchedulingQueue, clock: Clock) -> None:
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._held: dict[str, Room] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._held

    def hold(self, room: Room) -> None:
        """Nominate the member to its room."""
        self._held[room.pod.uid] = room
        room.scheduler.nominations.add(room.pod, room.node)

    def drop(self, uid: str) -> None:
        """The member is gone, or has its room: nobody needs to be told."""
        self._held.pop(uid, None)

    def give_up(self, group: str) -> None:
        """Others may have the rooms of a group's members."""
        for uid in [uid for uid, room in self._held.items() if room.group == group]:
            room = self._held.pop(uid)
            room.scheduler.nominations.remove(uid)
            freed = room_freed(room.pod, self._cache.cluster.objects, room.node)
            self._queue.happened(freed, self._clock.monotonic(), but=uid)
