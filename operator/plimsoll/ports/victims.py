"""Port for preemption: evicts victims with records, where a policy enables that."""

from collections.abc import Callable, Sequence
from typing import Protocol

from plimsoll.model.kinds.pod_info import PodInfo


class VictimEvictor(Protocol):
    """Evicts victims of preemption through the Eviction API."""

    async def evict(
        self,
        victims: Sequence[PodInfo],
        pod: PodInfo,
        policy: str,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        """Evict the victims of one pod; whether all of them are on their way.

        Args:
            victims: Pods on one node.
            pod: The pod that needs the room.
            policy: The policy whose profile decided.
            is_wanted: Whether the pod still waits; called before each eviction.
            told: Called with each victim whose eviction was accepted, and the name of its record.
        """
