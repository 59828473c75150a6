"""The scheduling loop: pop → cycle → assume → bind, or say why not and requeue.

One cycle at a time, in the event loop, touching nothing but memory; binding cycles
(:mod:`plimsoll.control.binding`) run beside it, many at once. A pod is assumed before its binding cycle
begins and forgotten when that fails, so no two decisions ever count on the same room.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from plimsoll.control.binding import Attempt, BindingCycle
from plimsoll.control.claiming import ClaimBinder
from plimsoll.control.enqueueing import Enqueueing
from plimsoll.control.explaining import Explanations, nominated_to
from plimsoll.control.extending import Extending
from plimsoll.control.gangs import Gangs, Hands
from plimsoll.control.metering import Meter
from plimsoll.control.ports import (
    Binder,
    Clock,
    Note,
    PodStatusWriter,
    Preemptor,
    Recorder,
    Verdict,
    VolumeWriter,
    pod_reference,
)
from plimsoll.control.preempting import Preemption
from plimsoll.control.victim_evictions import VictimEvictions
from plimsoll.engine.cycle import Decision, Outcome, Scheduler
from plimsoll.engine.extender import interested
from plimsoll.framework import (
    Code,
    CycleState,
    Diagnosis,
    Nomination,
    PodInfo,
    PodsToActivate,
    Snapshot,
    Status,
    VolumesPort,
)
from plimsoll.framework.observer import Observer
from plimsoll.model.event import ClusterEvent, PodDeleted, PodUpdated
from plimsoll.state.cache import Cache
from plimsoll.state.groups import Groups
from plimsoll.state.queue import FLUSHED, SchedulingQueue, room_freed
from plimsoll.state.queued_pod import QueuedPod

#: Bindings in flight at once.
BINDINGS = 100

#: Seconds of cycles after which other tasks of the event loop get their turn.
SLICE_S = 0.01


class SchedulingLoop:
    """Serves the pods of all profiles.

    Args:
        cache: The cluster; this loop assumes and forgets.
        queue: The waiting pods.
        binder: Sends bindings.
        volumes: Gives volumes to claims that waited for their pod.
        preemptor: Removes victims.
        statuses: Writes conditions.
        recorder: Records events.
        clock: Time.
        meter: Counts and times the calls of plugins.
        observer: Told of attempts and bindings.
        groups: Which pods start together; they must be told every event before this loop is.
        evictions: Evicts victims for policies that do not want them deleted.
        extending: Asks the extenders of profiles; without it, profiles have none.

    Attributes:
        gangs: Decides on pods that start together.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        *,
        binder: Binder,
        volumes: VolumeWriter,
        preemptor: Preemptor,
        statuses: PodStatusWriter,
        recorder: Recorder,
        clock: Clock,
        meter: Meter,
        observer: Observer,
        groups: Groups | None = None,
        evictions: VictimEvictions | None = None,
        extending: Extending | None = None,
    ) -> None:
        self._schedulers: Mapping[str, Scheduler] = {}
        self._enqueueing = Enqueueing(queue, cache.cluster.objects, clock, observer)
        self.on_placed: list[Callable[[PodInfo, str], None]] = []
        self._cache = cache
        self._queue = queue
        self._binding = BindingCycle(binder, statuses, clock, observer)
        self._volumes = ClaimBinder(cache.cluster, volumes, clock)
        self._preemption = Preemption(preemptor, recorder, observer, self._binding.call_off, evictions)
        self._explanations = Explanations(
            statuses,
            recorder,
            clock,
            observer,
            is_waiting=lambda uid: uid in queue and not cache.node_of(uid),
        )
        self._recorder = recorder
        self._extending = extending
        self._clock = clock
        self._meter = meter
        self._observer = observer
        self.gangs = Gangs(
            Groups() if groups is None else groups,
            cache,
            queue,
            binding=self._binding,
            hands=Hands(
                begun=self._begun,
                bind=self._bind_in_turn,
                undo=self._undo,
                unbound=self._unbound,
                make_room=lambda *what: self._beside(self._preempt(*what)),
                explain=self._explanations.explain,
                beside=self._beside,
                wake=self.wake,
            ),
            recorder=recorder,
            clock=clock,
            observer=observer,
        )
        self._enqueueing.hold = self.gangs.gate
        self._work = asyncio.Event()
        self._slots = asyncio.Semaphore(BINDINGS)
        self._waits_since: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def schedulers(self) -> Mapping[str, Scheduler]:
        """Scheduler by scheduler name; set as a whole when policies change."""
        return self._schedulers

    @schedulers.setter
    def schedulers(self, schedulers: Mapping[str, Scheduler]) -> None:
        self._schedulers = schedulers
        self._enqueueing.serve(schedulers)

    def serves(self, pod: PodInfo) -> bool:
        """Whether the pod is for us to place."""
        return self._enqueueing.serves(pod)

    def serves_name(self, scheduler_name: str) -> bool:
        """Whether pods that name this scheduler are for us to place."""
        return scheduler_name in self._schedulers

    def observe(self, event: ClusterEvent) -> None:
        """A pod that is gone is not bound any more; of one with a node nothing is kept."""
        self.gangs.observe(event)
        match event:
            case PodDeleted(pod):
                is_over = True
            case PodUpdated(_, pod):
                is_over = pod.is_terminal
            case _:
                return
        if is_over or pod.node_name:
            self._explanations.forget(pod.uid)
        if is_over:
            self._binding.call_off(pod.uid, "", "removed")

    @property
    def in_flight(self) -> int:
        """Binding cycles and preemptions under way."""
        return len(self._tasks)

    def wake(self) -> None:
        """There may be something to do."""
        self._work.set()

    def waited_s(self, now: float) -> float:
        """Seconds that the loop has waited for bindings to end: the only wait in which pods wait with it."""
        return 0.0 if self._waits_since is None else now - self._waits_since

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._explanations.run())
            group.create_task(self._serve())

    async def _serve(self) -> None:
        turn = self._clock.monotonic()
        while True:
            # The slot first: nothing may happen between a pod's pop and the decision on it.
            self._waits_since = self._clock.monotonic()
            await self._slots.acquire()
            self._waits_since = None
            now = self._clock.monotonic()
            queued = self._queue.pop(now)
            if queued is None:
                self._slots.release()
                await self._until_work(now)
                turn = self._clock.monotonic()
                continue
            if not self._contained(queued):
                self._slots.release()
            if self._clock.monotonic() - turn > SLICE_S:
                await asyncio.sleep(0)
                turn = self._clock.monotonic()

    async def _until_work(self, now: float) -> None:
        due = self._queue.next_due()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._work.wait())]
        if due is not None:
            waits.append(asyncio.ensure_future(self._clock.sleep(max(0.0, due - now))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._work.clear()

    # -- one attempt ---------------------------------------------------------------------------------

    def _contained(self, queued: QueuedPod) -> bool:
        """Try one pod; whatever breaks, such as a plugin's unprintable answer, the others are served."""
        try:
            with self._meter.attempt(queued.pod.pod.spec.scheduler_name):
                return self._attempt(queued)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._broken(queued, exc)
            return False

    def _broken(self, queued: QueuedPod, exc: Exception) -> None:
        """Something of ours broke on the way: the pod is tried again."""
        uid = queued.pod.uid
        self._observer.failed("scheduling", f"{queued.pod.key}: {exc!r}")
        node = self._cache.assumed.get(uid, "")
        self._cache.forget(uid)
        self._queue.failed(uid, self._clock.monotonic(), frozenset())
        if node:
            self._free(queued.pod, node)
        self._work.set()

    def _attempt(self, queued: QueuedPod) -> bool:
        """Try one pod; whether a binding was started."""
        pod = queued.pod
        name = pod.pod.spec.scheduler_name
        scheduler = self.schedulers.get(name)
        if scheduler is None or pod.is_terminating or self._cache.node_of(pod.uid):
            self._queue.remove(pod.uid)
            return False
        if self.gangs.attempt(queued, self.schedulers):
            return False
        if self._extending is not None and interested(scheduler.profile.extenders, pod):
            # Others have a say in it, over the network: it goes on beside the loop.
            self._beside(self._extend(queued, scheduler, self._extending))
            return False
        began = self._clock.monotonic()
        try:
            decision = scheduler.schedule(pod)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            problem = f"{type(exc).__name__}: {exc}"
            self._observer.failed("scheduling", problem)
            self._observer.attempt_ended(name, Outcome.ERROR.value, self._clock.monotonic() - began)
            self._explanations.explain(pod.pod, "SchedulerError", problem)
            self._queue.failed(pod.uid, self._clock.monotonic(), frozenset())
            return False
        attempt = self._decided(queued, scheduler, decision, began)
        if attempt is None:
            return False
        self._queue.settled(pod.uid)
        self._beside(self._bind(queued, attempt)).add_done_callback(lambda _: self._slots.release())
        return True

    async def _extend(self, queued: QueuedPod, scheduler: Scheduler, extending: Extending) -> None:
        """Try one pod with its extenders; what changed about it meanwhile makes the decision void."""
        pod = queued.pod
        began = self._clock.monotonic()
        try:
            decision = await extending.decide(scheduler, pod)
            # Nothing is awaited from here until the pod is assumed: the decision holds of this moment.
            if decision is None or not self._is_as_asked(queued, pod, scheduler):
                self._queue.failed(pod.uid, self._clock.monotonic(), frozenset())
                self._work.set()
                return
            attempt = self._decided(queued, scheduler, decision, began)
            self._work.set()
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._broken(queued, exc)
            return
        if attempt is not None:
            await self._bind_with_room(queued, attempt)

    def _is_as_asked(self, queued: QueuedPod, pod: PodInfo, scheduler: Scheduler) -> bool:
        """Whether the pod still waits, unchanged, and its policy is still the same."""
        return (
            pod.uid in self._queue
            and queued.pod.template is pod.template
            and not queued.pod.is_terminating
            and not self._cache.node_of(pod.uid)
            and self.schedulers.get(scheduler.profile.scheduler_name) is scheduler
        )

    def _decided(
        self, queued: QueuedPod, scheduler: Scheduler, decision: Decision, began: float
    ) -> Attempt | None:
        """Carry a decision out as far as memory goes; the attempt when it has to be bound now."""
        pod, name = queued.pod, scheduler.profile.scheduler_name
        ended = self._clock.monotonic()
        if decision.outcome is not Outcome.SCHEDULED:
            self._observer.attempt_ended(name, decision.outcome.value, ended - began)
            self._reject(queued, scheduler, decision, ended)
            return None
        self._observer.cycle_ended(ended - began)
        attempt, status = self._begun(queued, scheduler, decision.node, scheduler.state_of(pod), began)
        if status.code is Code.WAIT:
            # Waiting takes no slot: any number of pods may wait for one that needs it.
            self._beside(self._bind_when_permitted(queued, attempt))
            return None
        if not status.is_success:
            self._unbound(queued, attempt, status)
            return None
        return attempt

    def _begun(
        self, queued: QueuedPod, scheduler: Scheduler, node: str, state: CycleState, began: float
    ) -> tuple[Attempt, Status]:
        """Assume a pod on its node and begin its binding cycle."""
        self._cache.assume(queued.pod, node)
        scheduler.nominations.remove(queued.pod.uid)
        attempt = Attempt(queued.pod, node, scheduler.profile, state, began)
        attempt.state.write(VolumesPort(Snapshot(self._cache.cluster), self._volumes))
        attempt.state.write(PodsToActivate())
        status = self._binding.begin(attempt)
        if status.is_success or status.code is Code.WAIT:
            self._activate(attempt)
        return attempt, status

    def _reject(self, queued: QueuedPod, scheduler: Scheduler, decision: Decision, now: float) -> None:
        unschedulable = decision.outcome is Outcome.UNSCHEDULABLE and decision.diagnosis is not None
        plugins = decision.diagnosis.plugins if unschedulable and decision.diagnosis else frozenset()
        if decision.error is not None:
            error = decision.error
            self._observer.plugin_failed(error.plugin, error.point, error.problem)
        nomination = decision.nomination
        if unschedulable and nomination is not None:
            plugins |= nomination.waits_for
        # Whoever errs, or has no PostFilter to keep it, is nominated no longer.
        node = "" if nomination is None else nomination.node
        self._explanations.explain(
            queued.pod.pod, "Unschedulable" if unschedulable else "SchedulerError", decision.message, node
        )
        if nomination is not None and nomination.status.is_success and nomination.node:
            # Before the next decision: nobody else may count on that room, or preempt the same victims.
            scheduler.nominations.add(queued.pod, nomination.node)
            for outranked in nomination.outranked:
                scheduler.nominations.remove(outranked.uid)
            # The pod stays in flight until its victims are on their way out: it must not preempt twice.
            self._beside(self._preempt(queued, nomination, plugins))
            return
        if node == "":
            scheduler.nominations.remove(queued.pod.uid)
        self._queue.failed(queued.pod.uid, now, plugins)

    async def _preempt(self, queued: QueuedPod, nomination: Nomination, plugins: frozenset[str]) -> None:
        """Make room, and let the pod wait for its victims to go; what could not be sent is tried again."""
        pod, is_made = queued.pod, False
        scheduler = self._schedulers.get(pod.pod.spec.scheduler_name)
        try:
            if scheduler is not None and pod.uid in self._queue:  # else it is gone since the decision
                is_made = await self._preemption.make_room(
                    pod, nomination, scheduler.profile, lambda: pod.uid in self._queue
                )
        finally:
            self._queue.failed(pod.uid, self._clock.monotonic(), plugins if is_made else frozenset())
            self._work.set()

    # -- binding -------------------------------------------------------------------------------------

    def _beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside the loop; what it raises is contained."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._observer.failed("binding", repr(task.exception()))

    async def _bind_when_permitted(self, queued: QueuedPod, attempt: Attempt) -> None:
        began = self._clock.monotonic()
        try:
            status = await self._binding.permission(attempt)
        except BaseException:
            self._undo(attempt)
            raise
        self._observer.permit_waited(status.code.value, self._clock.monotonic() - began)
        if not status.is_success:
            self._unbound(queued, attempt, status)
            return
        await self._bind_with_room(queued, attempt)

    async def _bind_with_room(self, queued: QueuedPod, attempt: Attempt) -> None:
        """Bind as soon as there is room; pods of extenders, who may be slow, have room of their own."""
        self._queue.settled(attempt.pod.uid)
        pod, profile = attempt.pod, attempt.profile
        turns = None
        if self._extending is not None and interested(profile.extenders, pod):
            turns = self._extending.binding_turns(profile.scheduler_name)
        async with turns.turn(pod.priority) if turns is not None else self._slots:
            await self._bind(queued, attempt)

    def _bind_in_turn(self, queued: QueuedPod, attempt: Attempt) -> None:
        self._beside(self._bind_when_permitted(queued, attempt))

    async def _bind(self, queued: QueuedPod, attempt: Attempt) -> None:
        pod, node = attempt.pod, attempt.node
        name = attempt.profile.scheduler_name
        try:
            status = await self._binding.finish(attempt)
        except BaseException:
            # Cancelled or broken: what the server did is unknown; the watch will tell.
            self._undo(attempt)
            raise
        if not status.is_success:
            self._unbound(queued, attempt, status)
            self.gangs.not_bound(pod, node, self.schedulers.get(name))
            return
        self._queue.bound(pod.uid)
        self._activate(attempt)
        self._explanations.forget(pod.uid)
        now = self._clock.monotonic()
        self._observer.attempt_ended(name, Outcome.SCHEDULED.value, now - attempt.began)
        self._observer.pod_bound(queued.attempts, now - queued.first_seen)
        if queued.event == FLUSHED:
            self._observer.bound_after_flush()
        self._recorder.record(
            Note(
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
            self._work.set()

    def _undo(self, attempt: Attempt, status: Status | None = None) -> None:
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
        self._free(attempt.pod, attempt.node, but=uid if rejected else "")

    def _free(self, pod: PodInfo, node: str, but: str = "") -> None:
        """The room that a pod was about to take is free: for all that wait, but one."""
        freed = room_freed(pod, self._cache.cluster.objects, node)
        self._queue.happened(freed, self._clock.monotonic(), but=but, is_ours=True)
        self._work.set()

    def _unbound(self, queued: QueuedPod, attempt: Attempt, status: Status) -> None:
        """Undo an attempt that did not end in a binding; what the watch says next decides about the pod."""
        uid, answer = attempt.pod.uid, attempt.answer
        name = attempt.profile.scheduler_name
        is_ours = uid in self._queue
        result = Outcome.UNSCHEDULABLE if status.is_rejected else Outcome.ERROR
        self._observer.attempt_ended(name, result.value, self._clock.monotonic() - attempt.began)
        verdict = answer.verdict if answer is not None and not answer.is_done else None
        if verdict is not None:
            self._observer.binding_failed(name, verdict.value, status.message)
        self._undo(attempt, status)
        if not is_ours or verdict in (Verdict.CONFLICT, Verdict.GONE):
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
