"""Binds decided pods: assumes them, runs their binding cycles, and reports the outcome or undoes them.

A pod is assumed before its binding cycle (:mod:`plimsoll.scheduling.binding.cycle`) begins, and forgotten
when the cycle fails, so no two decisions ever count on the same room. This module decides what a failure
means for the queue, the room and the user.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from plimsoll.cluster.changes import room_freed
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.profile import Profile
from plimsoll.framework import Code, CycleState, Diagnosis, Nomination, PodInfo, PodsToActivate, Status
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import UNSCHEDULABLE, pod_reference
from plimsoll.ports.writes import WriteOutcome
from plimsoll.scheduling.binding.cycle import BindingAttempt, BindingCycle
from plimsoll.scheduling.conditions import Explanations, nominated_to
from plimsoll.scheduling.queue.queue import FLUSHED, SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.timing.slots import Slots

#: Maximum number of bindings in flight, and of pods of one profile for which PreBind plugins run.
BINDINGS, PREPARATIONS = 100, 100

#: Bindings that are posted together, once so many tasks run that a pod would wait for a slot anyway.
TOGETHER, ALONE = 4, 8


class BindingHook:
    """Takes part in bindings; subclasses override what they need. The pipeline is built with its hooks."""

    def slot(self, pod: PodInfo, profile: Profile) -> AbstractAsyncContextManager[object] | None:
        """A context to enter instead of taking one of the pipeline's slots, None for a slot."""

    def bound(self, pod: PodInfo) -> None:
        """Called after a pod was bound."""

    def not_bound(self, pod: PodInfo, node: str) -> None:
        """Called after the binding of a pod to that node failed and was undone."""


@dataclass(eq=False)
class BindingPipeline:
    """Binds pods.

    Attributes:
        slots: Limits bindings in flight; acquired before ``bind`` and released after it.
        tasks: Tasks that run concurrently with the scheduling loop.
    """

    _book: ReservationBook
    _queue: SchedulingQueue
    _cycle: BindingCycle
    _explanations: Explanations
    _recorder: EventRecorder
    _clock: Clock
    _observer: Observer
    _hooks: Sequence[BindingHook]
    slots: Slots = field(default_factory=lambda: Slots(BINDINGS), init=False)
    tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    #: with the context of each attempt
    _collected: list[tuple[QueuedPod, BindingAttempt, Context]] = field(default_factory=list, init=False)
    _preparing: dict[str, Slots] = field(default_factory=dict, init=False)  #: by scheduler name
    _sharing: int = field(default=0, init=False)  #: bindings that run in the task of another one

    def start(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> asyncio.Task[None]:
        """Run a coroutine in a task; its exceptions are logged and go no further."""
        task = asyncio.get_running_loop().create_task(work, context=context)
        self.tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._observer.failed("binding", repr(task.exception()))

    @property
    def in_flight(self) -> int:
        """Binding cycles and preemptions under way."""
        return len(self.tasks) + self._sharing

    def begin(
        self, queued: QueuedPod, profile: Profile, node: str, state: CycleState, began: float
    ) -> tuple[BindingAttempt, Status]:
        """Assume a pod on its node and begin its binding cycle; plugins write into ``state``."""
        self._book.cache.assume(queued.pod, node)
        if self._book.nominator.by_node:
            self._book.release_uid(queued.pod.uid)
        attempt = BindingAttempt(queued.pod, node, profile, state, began)
        wanted = PodsToActivate()
        state.write(wanted)
        facts = {"pod": queued.pod.key, "node": node, "profile": profile.scheduler_name}
        self._observer.placement_told(queued.pod.uid, "assumed", facts)
        status = self._cycle.begin(attempt)
        if wanted.uids and (status.is_success or status.code is Code.WAIT):
            self._activate(attempt)
        return attempt, status

    def dispatch(self, queued: QueuedPod, profile: Profile, decision: Decision, began: float) -> bool:
        """Assume a decided pod and have it bound; returns whether the binding took over the slot.

        The caller posts the collected bindings (:meth:`post_collected`) before it awaits anything.
        """
        attempt = self.place(queued, profile, decision, began)
        if attempt is None:
            return False
        self._queue.settled(attempt.pod.uid)
        if attempt.works:
            # PreBind takes no slot, however long it lasts: other profiles' pods need them.
            self.start(self.bind_in_slot(queued, attempt))
            return False
        is_written = attempt.pod.uid in self._explanations.writing
        if is_written or len(self.tasks) < ALONE or not self._cycle.posts_only(attempt):
            self._bind_alone(queued, attempt)
            return True
        if self._collected and self._collected[0][1].profile is not profile:
            self.post_collected()
        self._collected.append((queued, attempt, copy_context()))
        if len(self._collected) == TOGETHER:
            self.post_collected()
        return True

    def post_collected(self) -> None:
        """Bind, in one task, the pods whose bindings were collected."""
        if not self._collected:
            return
        group, self._collected = self._collected, []
        if len(group) == 1:
            self._bind_alone(*group[0])
        else:
            self._sharing += len(group) - 1
            self.start(self._bind_together(group))

    def _bind_alone(self, queued: QueuedPod, attempt: BindingAttempt, context: Context | None = None) -> None:
        """Bind a pod that holds a slot, in its own task."""
        task = self.start(self.bind(queued, attempt), context)
        task.add_done_callback(lambda _: self.slots.release())

    async def _bind_together(self, group: Sequence[tuple[QueuedPod, BindingAttempt, Context]]) -> None:
        """Bind pods that hold a slot each; those that are not bound by this continue on their own."""
        try:
            done = await self._cycle.post_together([each[1:] for each in group])
        except BaseException:
            for _, attempt, _ in group:
                self.slots.release()
                self.undo(attempt)  # the watch will show the outcome at the server
            raise
        finally:
            self._sharing -= len(group) - 1
        for (queued, attempt, context), is_bound in zip(group, done, strict=True):
            if not is_bound:
                self._bind_alone(queued, attempt, context)
                continue
            self.slots.release()
            try:
                self._report_bound(queued, attempt)
            except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are bound
                self._observer.failed("binding", repr(exc))

    def place(
        self, queued: QueuedPod, profile: Profile, decision: Decision, began: float
    ) -> BindingAttempt | None:
        """Assume a decided pod and begin its binding; returns the attempt if it is to bind now."""
        self._observer.cycle_ended(self._clock.monotonic() - began)
        state = CycleState() if decision.state is None else decision.state.clone()
        attempt, status = self.begin(queued, profile, decision.node, state, began)
        if status.code is Code.WAIT:
            # Waiting takes no slot: any number of pods may wait for a pod that needs one.
            self.start_bind_when_permitted(queued, attempt)
            return None
        if not status.is_success:
            self.unbound(queued, attempt, status)
            return None
        return attempt

    async def permission(self, attempt: BindingAttempt) -> Status:
        """Wait until every plugin that holds the pod allows it, or one rejects it."""
        return await self._cycle.permission(attempt)

    def start_bind_when_permitted(self, queued: QueuedPod, attempt: BindingAttempt) -> None:
        """Wait in a task for Permit and then for a slot, and bind."""
        self.start(self._bind_when_permitted(queued, attempt))

    async def _bind_when_permitted(self, queued: QueuedPod, attempt: BindingAttempt) -> None:
        began = self._clock.monotonic()
        try:
            status = await self._cycle.permission(attempt)
        except BaseException:
            self.undo(attempt)
            raise
        self._observer.permit_waited(status.code.value, self._clock.monotonic() - began)
        if not status.is_success:
            self.unbound(queued, attempt, status)
            return
        await self.bind_in_slot(queued, attempt)

    async def bind_in_slot(self, queued: QueuedPod, attempt: BindingAttempt) -> None:
        """Run PreBind; bind as soon as a slot is free, or the context that a hook returned is entered."""
        self._queue.settled(attempt.pod.uid)
        if attempt.works:
            async with self._preparing.setdefault(attempt.profile.scheduler_name, Slots(PREPARATIONS)):
                if not await self._is_prepared(queued, attempt):
                    return
        slots = (hook.slot(attempt.pod, attempt.profile) for hook in self._hooks)
        async with next((slot for slot in slots if slot is not None), self.slots):
            await self.bind(queued, attempt)

    async def _is_prepared(self, queued: QueuedPod, attempt: BindingAttempt) -> bool:
        """Run PreBind; returns whether the pod may be bound, and undoes the attempt otherwise."""
        if attempt.pod.uid not in self._queue:  # it was deleted while other pods were prepared
            self.undo(attempt)
            return False
        try:
            status = await self._cycle.prepare(attempt)
        except BaseException:
            self.undo(attempt)
            raise
        if not status.is_success:
            self._not_bound(queued, attempt, status)
        return status.is_success

    def _not_bound(self, queued: QueuedPod, attempt: BindingAttempt, status: Status) -> None:
        self.unbound(queued, attempt, status)
        for hook in self._hooks:
            hook.not_bound(attempt.pod, attempt.node)

    async def bind(self, queued: QueuedPod, attempt: BindingAttempt) -> None:
        """Bind a pod that holds a slot, and report the outcome."""
        pod = attempt.pod
        try:
            if pod.uid in self._explanations.writing:
                await self._explanations.end_of_write(pod.uid)
            status = await self._cycle.finish(attempt)
        except BaseException:
            # Cancelled or failed: the outcome at the server is unknown; the watch will show it.
            self.undo(attempt)
            raise
        if not status.is_success:
            self._not_bound(queued, attempt, status)
            return
        self._report_bound(queued, attempt)

    def _report_bound(self, queued: QueuedPod, attempt: BindingAttempt) -> None:
        """Report that the API server has bound a pod."""
        pod, node, name = attempt.pod, attempt.node, attempt.profile.scheduler_name
        self._queue.done(pod.uid)
        self._activate(attempt)
        self._explanations.forget(pod.uid)
        now = self._clock.monotonic()
        self._observer.attempt_ended(name, AttemptOutcome.SCHEDULED.value, now - attempt.began)
        self._observer.pod_bound(queued.attempts, now - queued.first_seen)
        facts = {"pod": pod.key, "node": node, "profile": name, "attempts": queued.attempts}
        self._observer.placement_told(pod.uid, "bound", facts)
        if queued.event == FLUSHED:
            self._observer.bound_after_flush()
        self._recorder.record(
            EventNote(
                pod_reference(pod.pod),
                "Scheduled",
                "Binding",
                f"Successfully assigned {pod.key} to {node}",
                reporter=name,
            )
        )
        for hook in self._hooks:
            hook.bound(pod)

    def _activate(self, attempt: BindingAttempt) -> None:
        """Activate the pods that plugins requested in the cycle state."""
        wanted = attempt.state.read(PodsToActivate).uids
        if wanted:
            self._queue.activate(wanted, self._clock.monotonic())
            wanted.clear()

    def undo(self, attempt: BindingAttempt, status: Status | None = None) -> None:
        """Unreserve and forget the pod, requeue it, and requeue pods that may use its room."""
        uid = attempt.pod.uid
        self._cycle.undo(attempt)
        self._book.cache.forget(uid)
        rejected = frozenset((status.plugin,)) if status is not None and status.is_rejected else frozenset()
        rejected -= {""}  # cancelled: no plugin waits for an event, so back-off suffices
        is_pending = status is not None and status.code is Code.PENDING
        by, on = (frozenset(), rejected) if is_pending else (rejected, frozenset())
        self._queue.add_unschedulable_if_not_present(uid, self._clock.monotonic(), by, on)
        # If a plugin rejected the pod here, its room is free only for other pods.
        self.free(attempt.pod, attempt.node, but=uid if rejected else "")

    def give_back(self, pod: PodInfo, nomination: Nomination) -> Sequence[Awaitable[str]]:
        """Carry out PostFilter's decision about unused claims; each result says why it failed."""
        devices, given = self._cycle.devices, []
        if nomination.deallocates is not None:
            given.append(devices.deallocate(nomination.deallocates, pod))
        if nomination.deletes is not None:
            given.append(devices.delete(nomination.deletes))
        return given

    def free(self, pod: PodInfo, node: str, but: str = "") -> None:
        """Requeue all waiting pods but one, as the room that a pod was about to take is free."""
        freed = room_freed(pod, self._book.cache.cluster.objects, node)
        self._queue.move_all_to_active_or_backoff_queue(freed, self._clock.monotonic(), but=but, is_ours=True)

    def drop_assumed(self, pod: PodInfo) -> None:
        """Forget a pod whose attempt failed with an error, and requeue it."""
        node = self._book.cache.assumed.get(pod.uid, "")
        self._book.cache.forget(pod.uid)
        self._queue.add_unschedulable_if_not_present(pod.uid, self._clock.monotonic())
        if node:
            self.free(pod, node)

    def unbound(self, queued: QueuedPod, attempt: BindingAttempt, status: Status) -> None:
        """Undo an attempt that did not end in a binding; the watch decides what becomes of the pod."""
        uid, answer = attempt.pod.uid, attempt.answer
        name = attempt.profile.scheduler_name
        is_ours = uid in self._queue
        result = AttemptOutcome.UNSCHEDULABLE if status.is_rejected else AttemptOutcome.ERROR
        self._observer.attempt_ended(name, result.value, self._clock.monotonic() - attempt.began)
        verdict = answer.verdict if answer is not None and not answer.is_done else None
        facts = {"pod": attempt.pod.key, "node": attempt.node, "profile": name, "reason": status.message}
        if verdict is not None:
            self._observer.binding_failed(name, verdict.value, status.message)
            facts["verdict"] = verdict.value
        self._observer.placement_told(uid, "not bound", facts)
        self.undo(attempt, status)
        if not is_ours or verdict in (WriteOutcome.CONFLICT, WriteOutcome.GONE):
            return
        pod = queued.pod.pod
        if attempt.nominated:
            pod = nominated_to(pod, attempt.node)
        if status.is_rejected:
            refused = Diagnosis(1, dict.fromkeys(status.reasons, 1), frozenset((status.plugin,)))
            self._explanations.explain(pod, UNSCHEDULABLE, str(refused), "")
        else:
            said = answer.message if verdict is not None and answer is not None else status.message
            self._explanations.explain(
                pod, "SchedulerError", f"binding rejected: {said}" if verdict else said, ""
            )
