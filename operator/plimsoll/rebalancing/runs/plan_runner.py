"""Makes plans off the event loop and within a time limit: in forks of the process, or in threads.

A fork shares neither the interpreter's lock nor the loop's processor, so placing does not wait for a plan
(docs/adr/0028). It is killed when it exceeds its limit, and when its policy changes or goes.

In a thread are made: plans that will take little, and all where no fork can be had. A
thread cannot be ended from outside. A plan that exceeds its limit there is abandoned: its policy does not run
while the thread lives, except once an hour or after its spec was changed, and not even then while too many
such threads live. A policy whose abandoned threads have ended runs as before. Others are not affected.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy, SchedulingPolicySpec
from plimsoll.framework.errors import PlimsollError
from plimsoll.ports.clock import Clock, Computer, NoRoomForProcess, SnapshotComputer
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.timing.signal import Signal

T = TypeVar("T")

#: Seconds that a plan may take, beyond the longest search that a policy may ask for. The thread of one that
#: takes longer cannot be ended; the other policies go on without it.
PLANNING_S = 900.0

#: Plans made at the same time, and seconds after which one no longer counts among them: the others go on.
SLOTS, SLOW_S = 4, 30.0

#: Abandoned threads that may live, and seconds until a policy that has one may try again.
ABANDONED, RETRY_S = 4, 3_600.0


#: CPU seconds that a plan may take in a thread; it shares the interpreter's lock with placing.
SMALL_S = 0.15

#: CPU seconds of a plan in a fork, or of the first one in a thread, up to which another is tried in a thread.
TRIAL_S = 1.0

#: Of the first plan the pods are counted.
FEW_PODS = 1_000

#: CPU seconds for each pod that has changed since the plan before.
CHANGED_POD_S = 15e-6


class PlanCalledOff(PlimsollError):
    """The policy was changed, or deleted, while its plan was made."""


@dataclass(frozen=True, slots=True, eq=False)
class _Abandoned:
    spec: SchedulingPolicySpec
    since: float
    plan: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """The latest plan.

    Attributes:
        took_s: CPU seconds.
        pods: How many there were.
        is_apart: Whether it was made in a fork.
        is_warm: Whether it was made in a thread, and the one before as well.
        is_long: Whether a plan in a thread has taken too long.
    """

    took_s: float
    pods: int
    is_apart: bool
    is_warm: bool
    is_long: bool


@dataclass(slots=True)
class PlanCosts:
    """What plans took, by policy and content, and so what the next one will take.

    A fork costs more than a short plan: the system copies what both sides write to, and what the plan finds
    out about templates is lost with it. In a thread it is kept, so the second plan there is the one to go by.
    """

    _known: dict[tuple[str, str], _Known] = field(default_factory=dict)

    def is_small(self, policy: str, content: str, pods: int, changed: int = 0) -> bool:
        """Whether the next plan is made in a thread.

        Args:
            policy: Its name.
            content: What the plan is for, in a word.
            pods: How many are placed.
            changed: How many of them have changed since the latest plan.
        """
        known = self._known.get((policy, content))
        if known is None:
            return pods < FEW_PODS
        expected = known.took_s * max(1.0, pods / max(known.pods, 1)) + changed * CHANGED_POD_S
        return expected <= (SMALL_S if known.is_warm or known.is_long else TRIAL_S)

    def learn(self, policy: str, content: str, pods: int, took_s: float, *, is_apart: bool) -> None:
        """A plan took so many CPU seconds."""
        before = self._known.get((policy, content))
        is_warm = not is_apart and before is not None and not before.is_apart
        if is_apart:
            is_long = before is not None and before.is_long
        else:
            is_long = took_s > (SMALL_S if is_warm else TRIAL_S)
        self._known[policy, content] = _Known(took_s, pods, is_apart, is_warm, is_long)

    def forget(self, policy: str) -> None:
        """The policy rebalances no longer."""
        for known in [known for known in self._known if known[0] == policy]:
            del self._known[known]


@dataclass(eq=False)
class PlanRunner:
    """Makes plans."""

    computer: Computer  #: runs each function in a thread of its own
    clock: Clock
    ended: Signal  #: notified when an abandoned plan has ended
    forks: SnapshotComputer | None = (
        None  #: runs each function in a fork of the process, where one can be had
    )
    cpu_s: Callable[[], float] = time.thread_time  #: CPU seconds that the calling thread has used
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SLOTS), init=False)
    _abandoned: set[_Abandoned] = field(default_factory=set, init=False)
    _slow: set[str] = field(default_factory=set, init=False)
    #: the latest plan of a policy, where it was abandoned
    _hanging: dict[str, _Abandoned] = field(default_factory=dict, init=False)
    _costs: PlanCosts = field(default_factory=PlanCosts, init=False)
    #: plans that are made in forks, by policy
    _forked: dict[str, asyncio.Future[Any]] = field(default_factory=dict, init=False)

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
        self._costs.forget(policy)
        self.call_off(policy)

    def call_off(self, policy: str) -> None:
        """End the plan of a policy if it is made in a fork: it is not wanted any more."""
        task = self._forked.pop(policy, None)
        if task is not None:
            task.cancel()

    async def make_apart(
        self,
        policy: SchedulingPolicy,
        function: Callable[[], T],
        parcel: PlanParcel,
        limit_s: float,
        prepare: Callable[[], int] | None = None,
    ) -> T:
        """The function's result, made in a fork unless it is small or none can be had.

        What is kept for later runs must be found here, as all that a fork finds but its result is lost:
        ``prepare`` runs in a thread of this process, and the function afterwards. It returns how many pods
        have changed.

        Raises:
            TimeoutError: It was ended, or abandoned.
            PlanCalledOff: The policy has changed.
            ComputationFailed: The function raised in the fork.
            ComputationLost: The fork has ended without a result.
            Exception: What the function raised in a thread.
        """

        def timed() -> tuple[T, float]:
            began = self.cpu_s()
            return function(), self.cpu_s() - began

        changed = 0 if prepare is None else await self.make(policy, prepare, limit_s)
        packed: bytes | None = None
        if (forks := self.forks_for(policy, parcel, changed)) is not None:
            with contextlib.suppress(NoRoomForProcess):
                computing = forks.compute(lambda: parcel.pack(timed()))
                packed = await self.make_in_fork(policy, computing, limit_s)
        if packed is None:
            made, took = await self.make(policy, timed, limit_s)
        else:
            made, took = cast("tuple[T, float]", parcel.unpack(packed))
        self.learn(policy, parcel, took, is_apart=packed is not None)
        return made

    def forks_for(
        self, policy: SchedulingPolicy, parcel: PlanParcel, changed: int = 0
    ) -> SnapshotComputer | None:
        """What forks the process for a plan; None when the plan is small, or where no fork can be had."""
        is_small = self._costs.is_small(policy.metadata.name, parcel.content, parcel.pods, changed)
        return None if is_small or self.forks is None or self.forks.obstacle() else self.forks

    def learn(self, policy: SchedulingPolicy, parcel: PlanParcel, took_s: float, *, is_apart: bool) -> None:
        """Such a plan took so long: by that it is decided where the next one is made."""
        self._costs.learn(policy.metadata.name, parcel.content, parcel.pods, took_s, is_apart=is_apart)

    async def make_in_fork(
        self,
        policy: SchedulingPolicy,
        computing: Coroutine[Any, Any, bytes],
        limit_s: float,
    ) -> bytes:
        """What a fork computes; it has ended when this raises.

        Raises:
            TimeoutError: It was ended.
            PlanCalledOff: The policy has changed.
            PlimsollError: What a SnapshotComputer raises.
        """
        name = policy.metadata.name
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            computing.close()
            raise
        task = asyncio.ensure_future(computing)
        self._forked[name] = task
        try:
            if not await self._waited(name, task, limit_s):
                raise TimeoutError(f"the plan was not ready within {limit_s:.0f} s")
        finally:
            is_called_off = self._forked.pop(name, None) is not task
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not report it as lost
        if is_called_off:
            raise PlanCalledOff("the policy was changed while its plan was made")
        self._hanging.pop(name, None)
        packed: bytes = task.result()
        return packed

    async def make(self, policy: SchedulingPolicy, function: Callable[[], T], limit_s: float) -> T:
        """The function's result, made in a thread.

        Raises:
            TimeoutError: It was abandoned.
            Exception: What the function raised.
        """
        await self._slots.acquire()
        task = asyncio.ensure_future(self.computer.compute(function))
        try:
            is_done = await self._waited(policy.metadata.name, task, limit_s)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not is_done:
            self._abandon(policy, task)
            raise TimeoutError(f"the plan was not ready within {limit_s:.0f} s")
        self._hanging.pop(policy.metadata.name, None)
        return task.result()

    async def _waited(self, policy: str, task: asyncio.Future[Any], limit_s: float) -> bool:
        """Wait for a computation that holds a slot, which it gives back when it is slow; whether it ended."""
        try:
            done, _ = await asyncio.wait({task}, timeout=min(SLOW_S, limit_s))
        finally:
            self._slots.release()
        if not done and limit_s > SLOW_S:
            self._slow.add(policy)
            try:
                done, _ = await asyncio.wait({task}, timeout=limit_s - SLOW_S)
            finally:
                self._slow.discard(policy)
        return bool(done)

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
