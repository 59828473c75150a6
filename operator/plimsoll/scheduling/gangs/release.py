"""Members wait for one another on Permit: bound once enough of them may be, or not at all.

Other plugins decide about each member; here they are counted. Who is still asked about when the others go
follows when its turn comes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import CycleState, Nomination, Status, unschedulable
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.binding.cycle import Attempt, BindingCycle
from plimsoll.scheduling.conditions import Explain
from plimsoll.scheduling.gangs.gates import PLUGIN
from plimsoll.scheduling.queue.queued_pod import QueuedPod

Begun = tuple[QueuedPod, Attempt]
"""A member that is assumed, with its binding cycle begun."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What the scheduling loop does with pods.

    Attributes:
        begun: Assume a pod on its node and begin its binding cycle, in an attempt that began then.
        bind: Bind beside the loop, when there is a slot.
        undo: Give back what was reserved and assumed, and queue the pod again.
        unbound: The same, and tell why.
        make_room: Nominate a pod and remove its victims, beside the loop; then it is queued again, rejected
            by these plugins.
        explain: Tell why a pod has no node.
        beside: Do something beside the loop.
        wake: Look at the queue again.
    """

    begun: Callable[[QueuedPod, ProfileScheduler, str, CycleState, float], tuple[Attempt, Status]]
    bind: Callable[[QueuedPod, Attempt], None]
    undo: Callable[[Attempt], None]
    unbound: Callable[[QueuedPod, Attempt, Status], None]
    make_room: Callable[[QueuedPod, Nomination, frozenset[str]], object]
    explain: Explain
    beside: Callable[[Coroutine[Any, Any, None]], object]
    wake: Callable[[], None]


def too_few(group: str, permitted: int, needed: int) -> str:
    """Why nobody starts."""
    return f"{permitted} of the {needed} members that PodGroup {group} needs were permitted to start"


class Releasing:
    """Lets gangs bind.

    Args:
        binding: Knows who waits on Permit.
        hands: The loop's.
        clock: Time.
    """

    def __init__(self, binding: BindingCycle, hands: Hands, clock: Clock) -> None:
        self._binding = binding
        self._hands = hands
        self._clock = clock

    async def release(self, group: str, begun: Sequence[Begun], needed: int, timeout_s: float) -> int:
        """Bind when enough members may, and nobody where too few may in time; how many were permitted."""
        free = [each for each in begun if each[1].held is None]
        refused: list[tuple[QueuedPod, Attempt, Status]] = []
        asked = {
            asyncio.ensure_future(self._binding.permission(each[1])): each
            for each in begun
            if each[1].held is not None
        }
        over = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            while asked and len(free) < needed <= len(free) + len(asked) and not over.done():
                await asyncio.wait({*asked, over}, return_when=asyncio.FIRST_COMPLETED)
                for task in [each for each in asked if each.done()]:
                    queued, attempt = asked.pop(task)
                    status = task.result()
                    if status.is_success:
                        free.append((queued, attempt))
                    else:
                        refused.append((queued, attempt, status))
        except BaseException:
            for task in asked:
                task.cancel()
            for _, attempt in begun:
                self._hands.undo(attempt)
            raise
        finally:
            over.cancel()
        permitted = len(free)
        if permitted < needed:
            why = unschedulable(too_few(group, permitted, needed)).by(PLUGIN)
            for _, attempt in asked.values():
                if attempt.held is not None:
                    attempt.held.reject(PLUGIN, why.message)
            refused += [(queued, attempt, why) for queued, attempt in free]
            free = []
        for queued, attempt, status in refused:
            self._hands.unbound(queued, attempt, status)
        for queued, attempt in free:
            self._hands.bind(queued, attempt)
        for task, (queued, attempt) in asked.items():
            self._hands.beside(self._follow(task, queued, attempt))
        return permitted

    async def _follow(
        self, permission: "asyncio.Future[Status]", queued: QueuedPod, attempt: Attempt
    ) -> None:
        """A member that waits still when the others have gone."""
        try:
            status = await permission
        except BaseException:
            self._hands.undo(attempt)
            raise
        if status.is_success:
            self._hands.bind(queued, attempt)
        else:
            self._hands.unbound(queued, attempt, status)
