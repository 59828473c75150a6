"""The scheduling loop: pop → cycle → assume → bind, or say why not and requeue.

One cycle at a time, in the event loop, touching nothing but memory; what follows a decision
(:mod:`plimsoll.scheduling.binding.pipeline`) runs beside it, for many pods at once.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from plimsoll.access.rights import Access
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.extenders.extender import interested
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import SUCCESS, Code, Nomination, PodInfo, Status
from plimsoll.model.kinds.watch_event import ClusterEvent, PodDeleted, PodUpdated
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import PodBinding, PodStatusWriter, Preemptor
from plimsoll.ports.volumes import VolumeWriter
from plimsoll.rebalancing.moves.victims import VictimEvictions
from plimsoll.scheduling.binding.cycle import Attempt, BindingCycle
from plimsoll.scheduling.binding.pipeline import Carrier
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.scheduling.conditions import Explanations
from plimsoll.scheduling.extenders.client import Extending
from plimsoll.scheduling.gangs.attempt import Gangs
from plimsoll.scheduling.gangs.release import Hands
from plimsoll.scheduling.plugin_timing import PluginTimer
from plimsoll.scheduling.preemption import Preemption
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queue_plugins import Enqueueing
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.scheduling.rights_gate import BindingGate

#: Seconds of cycles after which other tasks of the event loop get their turn.
SLICE_S = 0.01


class SchedulingLoop:
    """Serves the pods of all profiles.

    Args:
        cache: The cluster; this loop assumes and forgets.
        queue: The waiting pods.
        binder: Sends bindings.
        volumes: Gives volumes to claims that waited for their pod.
        book: Where nominated pods hold room.
        preemptor: Removes victims.
        statuses: Writes conditions.
        recorder: Records events.
        clock: Time.
        meter: Counts and times the calls of plugins.
        observer: Told of attempts and bindings.
        groups: Which pods start together; they must be told every event before this loop is.
        evictions: Evicts victims for policies that do not want them deleted.
        extending: Asks the extenders of profiles; without it, profiles have none.
        access: What the API server allows; without it, everything.

    Attributes:
        gangs: Decides on pods that start together.
        on_placed: Told each pod that was bound, and its node.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        *,
        book: ReservationBook,
        binder: PodBinding,
        volumes: VolumeWriter,
        preemptor: Preemptor,
        statuses: PodStatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        meter: PluginTimer,
        observer: Observer,
        groups: Groups | None = None,
        evictions: VictimEvictions | None = None,
        extending: Extending | None = None,
        access: Access | None = None,
    ) -> None:
        self._schedulers: Mapping[str, ProfileScheduler] = {}
        self._enqueueing = Enqueueing(queue, cache.cluster.objects, clock, observer)
        self._cache = cache
        self._book = book
        self._queue = queue
        self._binding = BindingCycle(binder, statuses, clock, observer)
        self._preemption = Preemption(preemptor, recorder, observer, self._binding.call_off, evictions)
        self._explanations = Explanations(
            statuses,
            recorder,
            clock,
            observer,
            is_waiting=lambda uid: uid in queue and not cache.node_of(uid),
        )
        self._work = asyncio.Event()
        self._carrier = Carrier(
            cache=cache,
            book=book,
            queue=queue,
            binding=self._binding,
            volumes=ClaimBinder(cache, volumes, clock),
            explanations=self._explanations,
            recorder=recorder,
            extending=extending,
            clock=clock,
            observer=observer,
            wake=self._work.set,
        )
        self.on_placed = self._carrier.on_placed
        self._extending = extending
        self._clock = clock
        self._meter = meter
        self._observer = observer
        self.gangs = Gangs(
            Groups() if groups is None else groups,
            queue,
            book=book,
            binding=self._binding,
            hands=Hands(
                begun=self._carrier.begun,
                bind=self._carrier.bind_in_turn,
                undo=self._carrier.undo,
                unbound=self._carrier.unbound,
                make_room=lambda *what: self._carrier.beside(self._preempt(*what)),
                explain=self._explanations.explain,
                beside=self._carrier.beside,
                wake=self.wake,
            ),
            recorder=recorder,
            clock=clock,
            observer=observer,
        )
        self._binding_gate = (
            None if access is None else BindingGate(access, queue, self._explanations.explain, clock)
        )
        if access is not None:
            access.on_change.append(self._woken)
        self._enqueueing.hold = self._gate
        self._carrier.on_not_bound = lambda pod, node, name: self.gangs.not_bound(
            pod, node, self.schedulers.get(name)
        )
        self._waits_since: float | None = None

    @property
    def schedulers(self) -> Mapping[str, ProfileScheduler]:
        """Scheduler by scheduler name; set as a whole when policies change."""
        return self._schedulers

    @schedulers.setter
    def schedulers(self, schedulers: Mapping[str, ProfileScheduler]) -> None:
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
            if self._binding_gate is not None:
                self._binding_gate.forget(pod.uid)
        if is_over:
            self._binding.call_off(pod.uid, "", "removed")

    def _gate(self, pod: PodInfo) -> Status:
        """Why a pod that no plugin holds back is not tried yet; success when it is."""
        status = SUCCESS if self._binding_gate is None else self._binding_gate.gate(pod)
        return status if not status.is_success else self.gangs.gates.gate(pod)

    async def _woken(self) -> None:
        self.wake()

    @property
    def in_flight(self) -> int:
        """Binding cycles and preemptions under way."""
        return len(self._carrier.tasks)

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
            await self._carrier.slots.acquire()
            self._waits_since = None
            now = self._clock.monotonic()
            queued = self._queue.pop(now)
            if queued is None:
                self._carrier.slots.release()
                await self._until_work(now)
                turn = self._clock.monotonic()
                continue
            if not self._contained(queued):
                self._carrier.slots.release()
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
            self._carrier.free(queued.pod, node)
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
            # Others have a say in it, over the network: it goes on beside the loop. What happens until its
            # turn comes need not be kept for it.
            self._queue.settled(pod.uid)
            self._carrier.beside(self._extend(queued, scheduler, self._extending))
            return False
        began = self._clock.monotonic()
        try:
            decision = schedule(scheduler, pod)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            problem = f"{type(exc).__name__}: {exc}"
            self._observer.failed("scheduling", problem)
            self._observer.attempt_ended(name, AttemptOutcome.ERROR.value, self._clock.monotonic() - began)
            self._explanations.explain(pod.pod, "SchedulerError", problem)
            self._queue.failed(pod.uid, self._clock.monotonic(), frozenset())
            return False
        attempt = self._decided(queued, scheduler, decision, began)
        if attempt is None:
            return False
        self._queue.settled(pod.uid)
        self._carrier.beside(self._carrier.bind(queued, attempt)).add_done_callback(
            lambda _: self._carrier.slots.release()
        )
        return True

    async def _extend(self, queued: QueuedPod, scheduler: ProfileScheduler, extending: Extending) -> None:
        """Try one pod with its extenders; what changed about it meanwhile makes the decision void."""
        attempt = None
        try:
            async with extending.turn(scheduler, queued.pod):
                self._queue.resumed(queued.pod.uid)
                pod, began = queued.pod, self._clock.monotonic()
                is_wanted = self._is_as_asked(queued, pod, scheduler)
                decision = await extending.decide(scheduler, pod) if is_wanted else None
                # Nothing is awaited from here until the pod is assumed: the decision holds of this moment.
                if decision is None or not self._is_as_asked(queued, pod, scheduler):
                    self._queue.failed(pod.uid, self._clock.monotonic(), frozenset())
                else:
                    attempt = self._decided(queued, scheduler, decision, began)
                self._work.set()
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._broken(queued, exc)
            return
        if attempt is not None:
            await self._carrier.bind_with_room(queued, attempt)

    def _is_as_asked(self, queued: QueuedPod, pod: PodInfo, scheduler: ProfileScheduler) -> bool:
        """Whether the pod still waits, unchanged, and its policy is still the same."""
        return (
            pod.uid in self._queue
            and queued.pod.template is pod.template
            and not queued.pod.is_terminating
            and not self._cache.node_of(pod.uid)
            and self.schedulers.get(scheduler.profile.scheduler_name) is scheduler
        )

    def _decided(
        self, queued: QueuedPod, scheduler: ProfileScheduler, decision: Decision, began: float
    ) -> Attempt | None:
        """Carry a decision out as far as memory goes; the attempt when it has to be bound now."""
        pod, name = queued.pod, scheduler.profile.scheduler_name
        ended = self._clock.monotonic()
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            self._observer.attempt_ended(name, decision.outcome.value, ended - began)
            self._reject(queued, scheduler, decision, ended)
            return None
        self._observer.cycle_ended(ended - began)
        attempt, status = self._carrier.begun(
            queued, scheduler, decision.node, scheduler.state_of(pod), began
        )
        if status.code is Code.WAIT:
            # Waiting takes no slot: any number of pods may wait for one that needs it.
            self._carrier.beside(self._carrier.bind_when_permitted(queued, attempt))
            return None
        if not status.is_success:
            self._carrier.unbound(queued, attempt, status)
            return None
        return attempt

    def _reject(self, queued: QueuedPod, scheduler: ProfileScheduler, decision: Decision, now: float) -> None:
        pod, name = queued.pod, scheduler.profile.scheduler_name
        told = {"pod": pod.key, "profile": name, "reason": decision.message}
        self._observer.placement_told(pod.uid, "not placed", told)
        unschedulable = decision.outcome is AttemptOutcome.UNSCHEDULABLE and decision.diagnosis is not None
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
            self._book.nominate(queued.pod, nomination.node, scheduler.profile.scheduler_name)
            for outranked in nomination.outranked:
                self._book.release_uid(outranked.uid)
            # The pod stays in flight until its victims are on their way out: it must not preempt twice.
            self._carrier.beside(self._preempt(queued, nomination, plugins))
            return
        if node == "":
            self._book.release_uid(queued.pod.uid)
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
