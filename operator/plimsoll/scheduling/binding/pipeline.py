"""Carries a decision to the API server: assumed, bound beside the loop, told; or all of it undone.

A pod is assumed before its binding cycle (:mod:`plimsoll.scheduling.binding.cycle`) begins and forgotten when
that fails, so no two decisions ever count on the same room. What a failure means for the queue, the room and
the user is decided here.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.extenders.extender import interested
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Code, CycleState, Diagnosis, PodInfo, PodsToActivate, Snapshot, Status
from plimsoll.framework.binding_ports import VolumesPort
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import pod_reference
from plimsoll.ports.writes import WriteOutcome
from plimsoll.scheduling.binding.cycle import Attempt, BindingCycle
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.scheduling.conditions import Explanations, nominated_to
from plimsoll.scheduling.extenders.client import Extending
from plimsoll.scheduling.queue.queue import FLUSHED, SchedulingQueue, room_freed
from plimsoll.scheduling.queue.queued_pod import QueuedPod

#: Bindings in flight at once.
BINDINGS = 100


class Carrier:
    """Takes pods to their nodes.

    Args:
        cache: Where pods are assumed and forgotten.
        book: Pods that are assumed need their reservation no longer.
        queue: Told how attempts end.
        binding: Runs the plugins.
        volumes: Books volumes.
        explanations: Tells users why a pod was not bound.
        recorder: Tells them that it was.
        extending: Has turns for pods of extenders, who may be slow.
        clock: Time.
        observer: Told of attempts and bindings.
        wake: Called when the queue may have something to do.

    Attributes:
        slots: Bindings in flight; one is taken before ``bind`` and given back after.
        tasks: What runs beside the loop.
        on_placed: Told each pod that was bound, and its node.
        on_not_bound: Told each pod whose binding failed, its node and its scheduler name.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        book: ReservationBook,
        queue: SchedulingQueue,
        binding: BindingCycle,
        volumes: ClaimBinder,
        explanations: Explanations,
        recorder: EventRecorder,
        extending: Extending | None,
        clock: Clock,
        observer: Observer,
        wake: Callable[[], None],
    ) -> None:
        self.slots = asyncio.Semaphore(BINDINGS)
        self.tasks: set[asyncio.Task[None]] = set()
        self.on_placed: list[Callable[[PodInfo, str], None]] = []
        self.on_not_bound: Callable[[PodInfo, str, str], None] = lambda _pod, _node, _name: None
        self._cache = cache
        self._book = book
        self._queue = queue
        self._binding = binding
        self._volumes = volumes
        self._explanations = explanations
        self._recorder = recorder
        self._extending = extending
        self._clock = clock
        self._observer = observer
        self._wake = wake

    def begun(
        self, queued: QueuedPod, scheduler: ProfileScheduler, node: str, state: CycleState, began: float
    ) -> tuple[Attempt, Status]:
        """Assume a pod on its node and begin its binding cycle."""
        self._cache.assume(queued.pod, node)
        self._book.release_uid(queued.pod.uid)
        attempt = Attempt(queued.pod, node, scheduler.profile, state, began)
        attempt.state.write(VolumesPort(Snapshot(self._cache.cluster), self._volumes))
        attempt.state.write(PodsToActivate())
        told = {"pod": queued.pod.key, "node": node, "profile": scheduler.profile.scheduler_name}
        self._observer.placement_told(queued.pod.uid, "assumed", told)
        status = self._binding.begin(attempt)
        if status.is_success or status.code is Code.WAIT:
            self._activate(attempt)
        return attempt, status

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside the loop; what it raises is contained."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._observer.failed("binding", repr(task.exception()))

    async def bind_when_permitted(self, queued: QueuedPod, attempt: Attempt) -> None:
        """Wait for those who hold the pod, then bind it."""
        began = self._clock.monotonic()
        try:
            status = await self._binding.permission(attempt)
        except BaseException:
            self.undo(attempt)
            raise
        self._observer.permit_waited(status.code.value, self._clock.monotonic() - began)
        if not status.is_success:
            self.unbound(queued, attempt, status)
            return
        await self.bind_with_room(queued, attempt)

    async def bind_with_room(self, queued: QueuedPod, attempt: Attempt) -> None:
        """Bind as soon as there is room; pods of extenders, who may be slow, have room of their own."""
        self._queue.settled(attempt.pod.uid)
        pod, profile = attempt.pod, attempt.profile
        turns = None
        if self._extending is not None and interested(profile.extenders, pod):
            turns = self._extending.binding_turns(profile.scheduler_name)
        async with turns.turn(pod.priority) if turns is not None else self.slots:
            await self.bind(queued, attempt)

    def bind_in_turn(self, queued: QueuedPod, attempt: Attempt) -> None:
        """The same, beside the loop."""
        self.beside(self.bind_when_permitted(queued, attempt))

    async def bind(self, queued: QueuedPod, attempt: Attempt) -> None:
        """Bind a pod that holds a slot, and say so."""
        pod, node = attempt.pod, attempt.node
        name = attempt.profile.scheduler_name
        try:
            status = await self._binding.finish(attempt)
        except BaseException:
            # Cancelled or broken: what the server did is unknown; the watch will tell.
            self.undo(attempt)
            raise
        if not status.is_success:
            self.unbound(queued, attempt, status)
            self.on_not_bound(pod, node, name)
            return
        self._queue.bound(pod.uid)
        self._activate(attempt)
        self._explanations.forget(pod.uid)
        now = self._clock.monotonic()
        self._observer.attempt_ended(name, AttemptOutcome.SCHEDULED.value, now - attempt.began)
        self._observer.pod_bound(queued.attempts, now - queued.first_seen)
        told = {"pod": pod.key, "node": node, "profile": name, "attempts": queued.attempts}
        self._observer.placement_told(pod.uid, "bound", told)
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
        for listener in self.on_placed:
            listener(pod, node)

    def _activate(self, attempt: Attempt) -> None:
        """Have the pods tried that plugins want tried, now that this one has come so far."""
        wanted = attempt.state.read(PodsToActivate).uids
        if wanted:
            self._queue.activate(wanted, self._clock.monotonic())
            wanted.clear()
            self._wake()

    def undo(self, attempt: Attempt, status: Status | None = None) -> None:
        """Give back what was reserved and assumed; the pod is tried again, and others may have its room."""
        uid = attempt.pod.uid
        self._binding.undo(attempt)
        self._cache.forget(uid)
        rejected = frozenset((status.plugin,)) if status is not None and status.is_rejected else frozenset()
        rejected -= {""}  # called off: no plugin waits for an event, back-off will do
        is_pending = status is not None and status.code is Code.PENDING
        by, on = (frozenset(), rejected) if is_pending else (rejected, frozenset())
        self._queue.failed(uid, self._clock.monotonic(), by, on)
        # If a plugin does not want this pod to have the room, it is free for the others only.
        self.free(attempt.pod, attempt.node, but=uid if rejected else "")

    def free(self, pod: PodInfo, node: str, but: str = "") -> None:
        """The room that a pod was about to take is free: for all that wait, but one."""
        freed = room_freed(pod, self._cache.cluster.objects, node)
        self._queue.happened(freed, self._clock.monotonic(), but=but, is_ours=True)
        self._wake()

    def unbound(self, queued: QueuedPod, attempt: Attempt, status: Status) -> None:
        """Undo an attempt that did not end in a binding; what the watch says next decides about the pod."""
        uid, answer = attempt.pod.uid, attempt.answer
        name = attempt.profile.scheduler_name
        is_ours = uid in self._queue
        result = AttemptOutcome.UNSCHEDULABLE if status.is_rejected else AttemptOutcome.ERROR
        self._observer.attempt_ended(name, result.value, self._clock.monotonic() - attempt.began)
        verdict = answer.verdict if answer is not None and not answer.is_done else None
        told = {"pod": attempt.pod.key, "node": attempt.node, "profile": name, "reason": status.message}
        if verdict is not None:
            self._observer.binding_failed(name, verdict.value, status.message)
            told["verdict"] = verdict.value
        self._observer.placement_told(uid, "not bound", told)
        self.undo(attempt, status)
        if not is_ours or verdict in (WriteOutcome.CONFLICT, WriteOutcome.GONE):
            return
        pod = queued.pod.pod
        if attempt.nominated:
            pod = nominated_to(pod, attempt.node)
        if status.is_rejected:
            refused = Diagnosis(1, dict.fromkeys(status.reasons, 1), frozenset((status.plugin,)))
            self._explanations.explain(pod, "Unschedulable", str(refused), "")
        else:
            said = answer.message if verdict is not None and answer is not None else status.message
            self._explanations.explain(
                pod, "SchedulerError", f"binding rejected: {said}" if verdict else said, ""
            )
