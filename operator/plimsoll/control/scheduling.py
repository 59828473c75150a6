"""The scheduling loop: pop → cycle → assume → bind, or say why not and requeue.

One cycle at a time, in the event loop, touching nothing but memory; bindings run beside it, many at
once. A pod is assumed before its binding is sent and forgotten when the binding fails, so no two
decisions ever count on the same room.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from plimsoll.control.ports import (
    Answer,
    Binder,
    Clock,
    Note,
    PodCondition,
    PodStatusWriter,
    Preemptor,
    Recorder,
    Verdict,
    pod_reference,
)
from plimsoll.engine.cycle import Decision, Outcome, Scheduler
from plimsoll.framework import Nomination, Pod, PodInfo, Status
from plimsoll.framework.observer import Observer
from plimsoll.state.cache import Cache
from plimsoll.state.queue import QueuedPod, SchedulingQueue

#: Bindings in flight at once.
BINDINGS = 100

#: Status writers at once; a newer condition of a pod replaces one that waits.
STATUS_WRITERS = 8

#: Seconds of cycles after which other tasks of the event loop get their turn.
SLICE_S = 0.01


class SchedulingLoop:
    """Serves the pods of all profiles.

    Args:
        cache: The cluster; this loop assumes and forgets.
        queue: The waiting pods.
        binder: Sends bindings.
        preemptor: Removes victims.
        statuses: Writes conditions.
        recorder: Records events.
        clock: Time.
        observer: Told of attempts and bindings.

    Attributes:
        schedulers: Scheduler by scheduler name; replaced as a whole when policies change.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        *,
        binder: Binder,
        preemptor: Preemptor,
        statuses: PodStatusWriter,
        recorder: Recorder,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.schedulers: Mapping[str, Scheduler] = {}
        self.on_placed: list[Callable[[PodInfo, str], None]] = []
        self._cache = cache
        self._queue = queue
        self._binder = binder
        self._preemptor = preemptor
        self._statuses = statuses
        self._recorder = recorder
        self._clock = clock
        self._observer = observer
        self._work = asyncio.Event()
        self._slots = asyncio.Semaphore(BINDINGS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._conditions: dict[str, tuple[Pod, PodCondition]] = {}
        self._conditions_due = asyncio.Event()
        self._written: dict[str, PodCondition] = {}

    def gate(self, pod: PodInfo) -> Status | None:
        """Whether the pod is served here; None when not, else what its PreEnqueue plugins say."""
        scheduler = self.schedulers.get(pod.pod.spec.scheduler_name)
        if scheduler is None:
            return None
        for plugin in scheduler.profile.pre_enqueue:
            status = plugin.pre_enqueue(pod).by(plugin.name)
            if not status.is_success:
                return status
        return Status()

    def wake(self) -> None:
        """There may be something to do."""
        self._work.set()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(STATUS_WRITERS):
                group.create_task(self._write_conditions())
            group.create_task(self._serve())

    async def _serve(self) -> None:
        turn = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            queued = self._queue.pop(now)
            if queued is None:
                await self._until_work(now)
                turn = self._clock.monotonic()
                continue
            await self._slots.acquire()
            if not self._attempt(queued):
                self._slots.release()
            if self._clock.monotonic() - turn > SLICE_S:
                await asyncio.sleep(0)
                turn = self._clock.monotonic()

    async def _until_work(self, now: float) -> None:
        due = self._queue.next_due()
        depths = self._queue.depths()
        cluster = self._cache.cluster
        self._observer.queues_measured(depths, len(cluster), len(cluster.pods), len(self._cache.assumed))
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

    def _attempt(self, queued: QueuedPod) -> bool:
        """Try one pod; whether a binding was started."""
        pod = queued.pod
        name = pod.pod.spec.scheduler_name
        scheduler = self.schedulers.get(name)
        if scheduler is None or pod.is_terminating or self._cache.node_of(pod.uid):
            self._queue.remove(pod.uid)
            return False
        began = self._clock.monotonic()
        decision = scheduler.schedule(pod)
        ended = self._clock.monotonic()
        self._observer.attempt_ended(name, decision.outcome.value, ended - began)
        if decision.outcome is not Outcome.SCHEDULED:
            self._reject(queued, decision, ended)
            return False
        self._cache.assume(pod, decision.node)
        scheduler.nominations.remove(pod.uid)
        self._beside(self._bind(queued, scheduler, decision.node)).add_done_callback(
            lambda _: self._slots.release()
        )
        return True

    def _reject(self, queued: QueuedPod, decision: Decision, now: float) -> None:
        unschedulable = decision.outcome is Outcome.UNSCHEDULABLE and decision.diagnosis is not None
        plugins = decision.diagnosis.plugins if unschedulable and decision.diagnosis else frozenset()
        if decision.error is not None:
            error = decision.error
            self._observer.plugin_failed(error.plugin, error.point, error.problem)
        nomination = decision.nomination
        self._explain(
            queued.pod.pod,
            "Unschedulable" if unschedulable else "SchedulerError",
            decision.message,
            "" if nomination is None and not unschedulable else nomination.node if nomination else None,
        )
        if nomination is not None and nomination.status.is_success and nomination.node:
            # The pod stays in flight until its victims are on their way out: it must not preempt twice.
            self._beside(self._preempt(queued, nomination, plugins))
        else:
            self._queue.failed(queued.pod.uid, now, plugins)

    async def _preempt(self, queued: QueuedPod, nomination: Nomination, plugins: frozenset[str]) -> None:
        """Make room: clear outranked nominations, remove the victims, let the pod wait for them to go."""
        pod, node = queued.pod, nomination.node or ""
        name = pod.pod.spec.scheduler_name
        scheduler = self.schedulers.get(name)
        try:
            if scheduler is not None:
                scheduler.nominations.add(pod, node)
                for outranked in nomination.outranked:
                    scheduler.nominations.remove(outranked.uid)
                    await self._preemptor.clear_nomination(outranked.pod)
            self._observer.preempted(name, len(nomination.victims))
            for victim in nomination.victims:
                if victim.is_terminating:
                    continue
                answer = await self._preemptor.preempt(victim.pod, name)
                if answer.is_done:
                    self._recorder.record(
                        Note(
                            pod_reference(victim.pod),
                            "Preempted",
                            "Preempting",
                            f"Preempted by pod {pod.uid} on node {node}",
                            reporter=name,
                        )
                    )
        finally:
            self._queue.failed(pod.uid, self._clock.monotonic(), plugins)
            self._work.set()

    def _explain(self, pod: Pod, reason: str, message: str, nominated_node: str | None = None) -> None:
        """Tell the user: an event each time (they are aggregated), the condition only when it changes."""
        self._recorder.record(
            Note(
                pod_reference(pod),
                "FailedScheduling",
                "Scheduling",
                message,
                is_warning=True,
                reporter=pod.spec.scheduler_name,
            )
        )
        if nominated_node == pod.status.nominated_node_name:
            nominated_node = None  # it says so already
        condition = PodCondition(reason, message, nominated_node)
        if self._written.get(pod.uid) == condition or (
            nominated_node is None and _says_already(pod, condition)
        ):
            return
        self._conditions[pod.uid] = (pod, condition)
        self._conditions_due.set()

    async def _write_conditions(self) -> None:
        while True:
            while not self._conditions:
                self._conditions_due.clear()
                await self._conditions_due.wait()
            uid, (pod, condition) = next(iter(self._conditions.items()))
            del self._conditions[uid]
            if self._cache.node_of(uid):
                continue
            answer = await self._statuses.write_condition(pod, condition)
            if answer.is_done and uid in self._queue:
                self._written[uid] = condition

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

    async def _bind(self, queued: QueuedPod, scheduler: Scheduler, node: str) -> None:
        pod = queued.pod
        name = scheduler.profile.scheduler_name
        try:
            answer = await self._binder.bind(pod.pod, node)
        except BaseException:
            # Cancelled or broken: what the server did is unknown; the watch will tell.
            self._cache.forget(pod.uid)
            self._queue.failed(pod.uid, self._clock.monotonic(), frozenset())
            raise
        if answer.is_done:
            self._queue.bound(pod.uid)
            self._written.pop(pod.uid, None)
            self._observer.pod_bound(name, queued.attempts, self._clock.monotonic() - queued.first_seen)
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
            return
        self._unbound(queued, answer, name)

    def _unbound(self, queued: QueuedPod, answer: Answer, profile: str) -> None:
        """Undo a binding that was not taken; what the watch says next decides what becomes of the pod."""
        pod = queued.pod
        self._observer.binding_failed(profile, answer.verdict.value, answer.message)
        self._cache.forget(pod.uid)
        now = self._clock.monotonic()
        if answer.verdict is Verdict.GONE and pod.uid not in self._queue:
            return
        self._queue.failed(pod.uid, now, frozenset())
        # The room it held is free again.
        self._queue.wake(now)
        self._work.set()
        if answer.verdict in (Verdict.REFUSED, Verdict.UNKNOWN, Verdict.BUSY):
            self._explain(pod.pod, "SchedulerError", f"binding rejected: {answer.message}")


def _says_already(pod: Pod, condition: PodCondition) -> bool:
    """Whether the pod's own condition reads like this."""
    return any(
        each.type == "PodScheduled"
        and each.status == "False"
        and each.reason == condition.reason
        and each.message == condition.message
        for each in pod.status.conditions
    )
