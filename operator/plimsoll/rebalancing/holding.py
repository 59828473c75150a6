"""Holding targets: the room that a move was proved for stays taken until its replacement is there.

A held target is a nomination at the highest priority, so nobody is told that the room is free: neither
the scheduling loop nor another plan. It is held in the replacement's stead first, and in its own name as
soon as it appears.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from plimsoll.cluster.cache import Cache
from plimsoll.engine.nominator import Nominations
from plimsoll.engine.profile import Profile
from plimsoll.framework import Pod, PodInfo
from plimsoll.framework.descheduling.strategy import REPLACEMENT
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import Move, replacement_of
from plimsoll.rebalancing.records.record import Record

#: The priority with which a target is held.
FIRM = 2**31 - 1


class Holds:
    """The targets of moves under way.

    Attributes:
        profiles: By scheduler name: who places replacements; set when policies change.
    """

    def __init__(self, cache: Cache, nominations: Nominations) -> None:
        self.profiles: Mapping[str, Profile] = {}
        self._cache = cache
        self._nominations = nominations
        self._held_by: dict[str, str] = {}  #: uid of the nomination, by record
        self._beginning: dict[str, str] = {}  #: uid of the workload, by record

    def begin(self, record: Record, move: Move) -> None:
        """A move is about to be recorded: from now on every policy counts it, and sees its room taken."""
        self._beginning[record.key] = move.workload.uid
        self.hold(record, move)

    def begun(self, record: Record, *, is_recorded: bool) -> None:
        """It is recorded, and followed until it ends; or it is not made."""
        self._beginning.pop(record.key, None)
        if not is_recorded:
            self.release(record)

    def beginning(self) -> Counter[str]:
        """Moves that are about to be recorded as begun, by workload uid."""
        return Counter(self._beginning.values())

    def hold(self, record: Record, move: Move) -> None:
        """Keep the room on the target for the replacement: other pods see it taken."""
        if move.target and not move.is_forecast:
            firm = self._firm(replacement_of(move.pod, self._cache.cluster))
            self._held_by[record.key] = firm.uid
            self._nominations.add(firm, move.target)

    def restore(self, record: Record, like: Pod) -> None:
        """Keep the room again for the replacement of a pod that an earlier process evicted.

        Args:
            record: Of the move.
            like: The evicted pod, or another one of its owner.
        """
        target = record.spec.target_node
        if target is None or record.is_forecast:
            return
        metadata = msgspec.structs.replace(like.metadata, name=record.spec.pod.name, uid=record.spec.pod.uid)
        pod = self._cache.info(msgspec.structs.replace(like, metadata=metadata))
        firm = self._firm(replacement_of(pod, self._cache.cluster))
        self._held_by[record.key] = firm.uid
        self._nominations.add(firm, target)

    def reserve(self, move: Move) -> None:
        """Keep the room for a move of a bundle whose turn has not come."""
        if move.target and not move.is_forecast:
            self._nominations.add(self._firm(replacement_of(move.pod, self._cache.cluster)), move.target)

    def unreserve(self, move: Move) -> None:
        """Its turn has come, or never will."""
        self._nominations.remove(f"{REPLACEMENT}{move.pod.uid}")

    def hand_over(self, record: Record, pod: Pod) -> None:
        """The replacement has appeared: the room is kept in its own name, and it goes there."""
        self.release(record)
        target = record.spec.target_node
        if target is not None and not pod.node_name and not record.is_forecast:
            self._nominations.add(self._cache.info(pod), target)

    def release(self, record: Record) -> None:
        """The room is anybody's again."""
        uid = self._held_by.pop(record.key, None)
        if uid is not None:
            self._nominations.remove(uid)

    def arrived(self, uid: str) -> None:
        """A replacement runs: it needs no nomination any more."""
        self._nominations.remove(uid)

    def claimed(self) -> Cluster:
        """A fork of the cluster in which everybody who has a nominated node is there already."""
        fork = self._cache.cluster.fork()
        for node, pods in self._nominations.by_node.items():
            for pod in pods.values():
                if pod.uid not in fork.pods:
                    fork.place(pod, node)
        return fork

    def _firm(self, hold: PodInfo) -> PodInfo:
        """The same with the highest priority: nobody is told that the room is free."""
        spec = msgspec.structs.replace(hold.pod.spec, priority=FIRM)
        return self._cache.info(msgspec.structs.replace(hold.pod, spec=spec))
