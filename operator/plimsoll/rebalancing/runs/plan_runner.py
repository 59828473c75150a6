"""Makes plans off the event loop and within a time limit: in forks of the process, or in threads.

A fork shares neither the interpreter's lock nor the loop's processor, so scheduling does not wait for a plan
(docs/adr/0028). It is killed when it exceeds its limit, or when its policy is changed or deleted.

Threads make plans that are expected to be short, and all plans where the system has no forks. A thread cannot
be killed. A plan that exceeds its limit there is abandoned: its policy does not run while the thread lives,
except once an hour or after its spec was changed, and not even then while too many such threads live. When
the abandoned threads have ended, the policy runs as before. Other policies are not affected.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import msgspec

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy, SchedulingPolicySpec
from plimsoll.framework.errors import PlimsollError
from plimsoll.planning.strategy_run import PlanBudget
from plimsoll.ports.clock import Clock, Computer, NoRoomForProcess, SnapshotComputer
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.timing.signal import Signal

T = TypeVar("T")

#: Maximum seconds of a plan, beyond the longest search that a policy may request. The thread of a longer plan
#: cannot be killed; the other policies continue without it.
PLANNING_S = 900.0

#: Number of concurrent plans, and seconds after which a plan no longer counts, so that others may run.
SLOTS, SLOW_S = 4, 30.0

#: Maximum number of abandoned threads, and seconds after which a policy that has one may try again.
ABANDONED, RETRY_S = 4, 3_600.0


#: Maximum CPU seconds of a plan in a thread, which shares the interpreter's lock with scheduling.
SMALL_S = 0.15

#: CPU seconds of a plan in a fork, or of the first one in a thread, up to which a thread is tried.
TRIAL_S = 1.0

#: Number of pods below which a policy's first plan is made in a thread.
FEW_PODS = 1_000

#: CPU seconds for each pod that has changed since the earlier plan.
CHANGED_POD_S = 15e-6


class PlanCalledOff(PlimsollError):
    """The policy was changed or deleted while its plan was made."""


class _Abandoned(msgspec.Struct, frozen=True, eq=False):
    spec: SchedulingPolicySpec
    since: float
    plan: asyncio.Future[Any]


class _Known(msgspec.Struct, frozen=True):
    """The latest plan.

    Attributes:
        took_s: CPU seconds.
        pods: Number of pods.
        is_apart: Whether a fork made it.
        is_warm: Whether a thread made it and the one before.
        is_long: Whether a plan in a thread has taken too long.
    """

    took_s: float
    pods: int
    is_apart: bool
    is_warm: bool
    is_long: bool


class PlanCosts(msgspec.Struct):
    """Costs of plans, by policy and content, and so the expected cost of the next one.

    A fork costs more than a short plan: the system copies the memory that both sides write to, and what the
    plan learns about templates is lost with it. A thread keeps it, so the second plan in a thread is the one
    to compare.
    """

    _known: dict[tuple[str, str], _Known] = msgspec.field(default_factory=dict)

    def is_small(self, policy: str, content: str, pods: int, changed: int = 0) -> bool:
        """Whether a thread makes the next plan.

        Args:
            policy: Its name.
            content: The kind of the plan, in a word.
            pods: Number of placed pods.
            changed: Number of pods that have changed since the latest plan.
        """
        known = self._known.get((policy, content))
        if known is None:
            return pods < FEW_PODS
        expected = known.took_s * max(1.0, pods / max(known.pods, 1)) + changed * CHANGED_POD_S
        return expected <= (SMALL_S if known.is_warm or known.is_long else TRIAL_S)

    def learn(self, policy: str, content: str, pods: int, took_s: float, *, is_apart: bool) -> None:
        """Record the CPU seconds of a plan."""
        before = self._known.get((policy, content))
        is_warm = not is_apart and before is not None and not before.is_apart
        if is_apart:
            is_long = before is not None and before.is_long
        else:
            is_long = took_s > (SMALL_S if is_warm else TRIAL_S)
        self._known[policy, content] = _Known(took_s, pods, is_apart, is_warm, is_long)

    def forget(self, policy: str) -> None:
        """Forget a policy that no longer rebalances."""
        for known in [known for known in self._known if known[0] == policy]:
            del self._known[known]


@dataclass(eq=False)
class PlanRunner:
    """Makes plans."""

    computer: Computer  #: runs each function in a thread of its own
    clock: Clock
    ended: Signal  #: notified when an abandoned plan has ended
    forks: SnapshotComputer | None = None  #: runs each function in a fork of the process, if possible
    cpu_s: Callable[[], float] = time.thread_time  #: CPU seconds of the calling thread
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SLOTS), init=False)
    _abandoned: set[_Abandoned] = field(default_factory=set, init=False)
    _slow: set[str] = field(default_factory=set, init=False)
    #: the latest plan of a policy, if it was abandoned
    _hanging: dict[str, _Abandoned] = field(default_factory=dict, init=False)
    _costs: PlanCosts = field(default_factory=PlanCosts, init=False)
    #: plans under way in forks, by policy
    _forked: dict[str, asyncio.Future[Any]] = field(default_factory=dict, init=False)

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
        """Forget a policy that no longer rebalances."""
        self._hanging.pop(policy, None)
        self._costs.forget(policy)
        self.call_off(policy)

    def call_off(self, policy: str) -> None:
        """Kill the fork that makes the policy's plan, as the plan is no longer wanted."""
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
        """The function's result, made in a fork unless it is small or forks are unavailable.

        Work that later runs reuse must be done in this process, as a fork's work is lost except for its
        result: ``prepare`` runs in a thread of this process, and the function afterwards. It returns how many
        pods have changed.

        Raises:
            TimeoutError: It was killed, or abandoned.
            PlanCalledOff: The policy has changed.
            ComputationFailed: The function raised in the fork.
            ComputationLost: The fork has ended without a result.
            Exception: What the function raised in a thread.
        """

        def timed() -> tuple[T, float]:
            budget = PlanBudget(self.cpu_s)
            return budget.within(function), budget.used_s

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
        """The function that forks the process for a plan; None for a small plan, or without forks."""
        is_small = self._costs.is_small(policy.metadata.name, parcel.content, parcel.pods, changed)
        return None if is_small or self.forks is None or self.forks.obstacle() else self.forks

    def learn(self, policy: SchedulingPolicy, parcel: PlanParcel, took_s: float, *, is_apart: bool) -> None:
        """Record the cost of a plan, which decides where the next one is made."""
        self._costs.learn(policy.metadata.name, parcel.content, parcel.pods, took_s, is_apart=is_apart)

    async def make_in_fork(
        self,
        policy: SchedulingPolicy,
        computing: Coroutine[Any, Any, bytes],
        limit_s: float,
    ) -> bytes:
        """The result of a fork, which has ended when this raises.

        Raises:
            TimeoutError: It was killed.
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
        """Wait for a computation; release its slot when it is slow. Returns whether it ended."""
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
