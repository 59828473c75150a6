"""Makes plans off the event loop, each in a thread of its own and within a time limit.

A thread cannot be ended from outside. A plan that exceeds its limit is abandoned: its policy does not run
while the thread lives, except once an hour or after its spec was changed, and not even then while too many
such threads live. A policy whose abandoned threads have ended runs as before. Others are not affected.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy, SchedulingPolicySpec
from plimsoll.ports.clock import Clock, Computer
from plimsoll.timing.signal import Signal

T = TypeVar("T")

#: Seconds that a plan may take, beyond the longest search that a policy may ask for. The thread of one that
#: takes longer cannot be ended; the other policies go on without it.
PLANNING_S = 900.0

#: Plans made at the same time, and seconds after which one no longer counts among them: the others go on.
SLOTS, SLOW_S = 4, 30.0

#: Abandoned threads that may live, and seconds until a policy that has one may try again.
ABANDONED, RETRY_S = 4, 3_600.0


@dataclass(frozen=True, slots=True, eq=False)
class _Abandoned:
    spec: SchedulingPolicySpec
    since: float
    plan: asyncio.Future[Any]


@dataclass(eq=False)
class PlanRunner:
    """Makes plans."""

    computer: Computer  #: runs each function in a thread of its own
    clock: Clock
    ended: Signal  #: notified when an abandoned plan has ended
    _slots: Any = field(default=asyncio.Semaphore(SLOTS), init=False)
    _abandoned: set[_Abandoned] = field(default_factory=set, init=False)
    _slow: set[str] = field(default_factory=set, init=False)
    #: the latest plan of a policy, where it was abandoned
    _hanging: dict[str, _Abandoned] = field(default_factory=dict, init=False)

    @property
    def abandoned(self) -> int:
        """How many threads live whose result is no longer waited for."""
        return len(self._abandoned)

    def is_slow(self, policy: str) -> bool:
        """Whether a plan of the policy has been under way for long, or hangs."""
        return policy in self._slow or policy in self._hanging

    def is_hanging(self, policy: str) -> bool:
        """Whether the latest plan of the policy was abandoned, and has not ended."""
        return policy in self._hanging

    def obstacle(self, policy: SchedulingPolicy) -> str:
        """Why the policy may not plan now, "" when it may."""
        latest = self._hanging.get(policy.metadata.name)
        if latest is None:
            return ""
        if len(self._abandoned) >= ABANDONED:
            return f"{len(self._abandoned)} plans hang; no further one is tried until one of them ends"
        if latest.spec != policy.spec or self.clock.monotonic() - latest.since >= RETRY_S:
            return ""
        return "its plan hangs; it runs again when that ends, within the hour, or when its spec is changed"

    def forget(self, policy: str) -> None:
        """The policy rebalances no longer."""
        self._hanging.pop(policy, None)

    async def make(self, policy: SchedulingPolicy, function: Callable[[], T], limit_s: float) -> T:
        """The function's result.

        Raises:
            TimeoutError: It was abandoned.
        """
        await self._slots.acquire()
        task = asyncio.ensure_future(self.computer.compute(function))
        try:
            done, _ = await asyncio.wait({task}, timeout=min(SLOW_S, limit_s))
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._slots.release()
        if not done and limit_s > SLOW_S:
            self._slow.add(policy.metadata.name)
            try:
                done, _ = await asyncio.wait({task}, timeout=limit_s - SLOW_S)
            finally:
                self._slow.discard(policy.metadata.name)
        if not done:
            self._abandon(policy, task)
            raise TimeoutError(f"the plan was not ready within {limit_s:.0f} s")
        self._hanging.pop(policy.metadata.name, None)
        return task.result()

    def _abandon(self, policy: SchedulingPolicy, task: asyncio.Future[T]) -> None:
        name = policy.metadata.name
        abandoned = self._hanging[name] = _Abandoned(policy.spec, self.clock.monotonic(), task)
        self._abandoned.add(abandoned)

        def ended(late: asyncio.Future[T]) -> None:
            self._abandoned.discard(abandoned)
            if self._hanging.get(name) is abandoned:
                del self._hanging[name]
            self.ended.notify()
            if not late.cancelled():
                late.exception()  # retrieved, so that asyncio does not report it as lost

        task.add_done_callback(ended)
