"""Runs one scheduling attempt and carries its decision out, as far as memory goes.

A node: the pod is assumed there and its binding cycle begins. No node: the pod's condition says why, it is
nominated where preemption makes room, and the queue gets it back. The loop runs attempts of its own pods;
gangs and extenders, which decide in their own way, carry their decisions out through here as well.
"""

from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Code, Nomination, PodInfo
from plimsoll.policies.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.binding.attempt import BindingAttempt
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.conditions import Explanations
from plimsoll.scheduling.preemption import Preemption
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod


class SchedulingAttempts:
    """Decides on popped pods.

    Args:
        served: The schedulers.
        queue: Where attempts end that did not place their pod.
        book: Where nominated pods hold room.
        pipeline: Takes placed pods to their nodes.
        preemption: Makes room.
        explanations: Says on a pod why it has no node.
        clock: Time.
        observer: Notified of attempts.
    """

    def __init__(
        self,
        served: ServedProfiles,
        queue: SchedulingQueue,
        book: ReservationBook,
        pipeline: BindingPipeline,
        preemption: Preemption,
        explanations: Explanations,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._served = served
        self._queue = queue
        self._book = book
        self._pipeline = pipeline
        self._preemption = preemption
        self._explanations = explanations
        self._clock = clock
        self._observer = observer

    def scheduler_of(self, pod: PodInfo) -> ProfileScheduler | None:
        """The scheduler of a pod that may be tried; None for one that has a node, goes, or is not ours."""
        if pod.is_terminating or self._book.cache.node_of(pod.uid):
            return None
        return self._served.find(pod.pod.spec.scheduler_name)

    def run(self, queued: QueuedPod, scheduler: ProfileScheduler) -> bool:
        """Try one pod; whether its binding was started, which gives the loop's slot back."""
        pod, began = queued.pod, self._clock.monotonic()
        try:
            decision = schedule(scheduler, pod)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            problem = f"{type(exc).__name__}: {exc}"
            name, now = scheduler.profile.scheduler_name, self._clock.monotonic()
            self._observer.failed("scheduling", problem)
            self._observer.attempt_ended(name, AttemptOutcome.ERROR.value, now - began)
            self._explanations.explain(pod.pod, "SchedulerError", problem)
            self._queue.add_unschedulable_if_not_present(pod.uid, now, frozenset())
            return False
        attempt = self.carry_out(queued, scheduler, decision, began)
        if attempt is None:
            return False
        self._queue.settled(pod.uid)
        self._pipeline.start_bind(queued, attempt)
        return True

    def carry_out(
        self, queued: QueuedPod, scheduler: ProfileScheduler, decision: Decision, began: float
    ) -> BindingAttempt | None:
        """Carry a decision out as far as memory goes; the attempt when it has to be bound now."""
        name, ended = scheduler.profile.scheduler_name, self._clock.monotonic()
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            self._observer.attempt_ended(name, decision.outcome.value, ended - began)
            self._reject(queued, scheduler, decision, ended)
            return None
        self._observer.cycle_ended(ended - began)
        attempt, status = self._pipeline.begin(
            queued, scheduler, decision.node, scheduler.state_of(queued.pod), began
        )
        if status.code is Code.WAIT:
            # Waiting takes no slot: any number of pods may wait for one that needs it.
            self._pipeline.start_bind_when_permitted(queued, attempt)
            return None
        if not status.is_success:
            self._pipeline.unbound(queued, attempt, status)
            return None
        return attempt

    def broken(self, queued: QueuedPod, exc: Exception) -> None:
        """Something of ours broke on the way: the pod is tried again."""
        self._observer.failed("scheduling", f"{queued.pod.key}: {exc!r}")
        self._pipeline.drop_assumed(queued.pod)

    def _reject(self, queued: QueuedPod, scheduler: ProfileScheduler, decision: Decision, now: float) -> None:
        pod, name = queued.pod, scheduler.profile.scheduler_name
        facts = {"pod": pod.key, "profile": name, "reason": decision.message}
        self._observer.placement_told(pod.uid, "not placed", facts)
        unschedulable = decision.outcome is AttemptOutcome.UNSCHEDULABLE and decision.diagnosis is not None
        plugins = decision.diagnosis.plugins if unschedulable and decision.diagnosis else frozenset()
        if decision.error is not None:
            error = decision.error
            self._observer.plugin_failed(error.plugin, error.point, error.problem)
        nomination = decision.nomination
        if unschedulable and nomination is not None:
            plugins |= nomination.waits_for
        # After an error, or without a PostFilter plugin to keep it, a nomination ends.
        node = "" if nomination is None else nomination.node
        self._explanations.explain(
            queued.pod.pod, "Unschedulable" if unschedulable else "SchedulerError", decision.message, node
        )
        if nomination is not None and nomination.status.is_success and nomination.node:
            # Before the next decision: no other pod may count on that room, or preempt the same victims.
            self._book.nominate(queued.pod, nomination.node, name)
            for outranked in nomination.outranked:
                self._book.release_uid(outranked.uid)
            self.start_preemption(queued, nomination, plugins)
            return
        if node == "":
            self._book.release_uid(queued.pod.uid)
        self._queue.add_unschedulable_if_not_present(queued.pod.uid, now, plugins)

    def start_preemption(self, queued: QueuedPod, nomination: Nomination, plugins: frozenset[str]) -> None:
        """Remove the victims of a nominated pod in a task; then it is queued, rejected by these plugins.

        The pod stays in flight until its victims are on their way out: it must not preempt twice.
        """
        self._pipeline.start(self._preempt(queued, nomination, plugins))

    async def _preempt(self, queued: QueuedPod, nomination: Nomination, plugins: frozenset[str]) -> None:
        """Make room, and let the pod wait for its victims to go; what could not be sent is tried again."""
        pod, is_made = queued.pod, False
        scheduler = self._served.find(pod.pod.spec.scheduler_name)
        try:
            if scheduler is not None and pod.uid in self._queue:  # else it is gone since the decision
                is_made = await self._preemption.make_room(
                    pod, nomination, scheduler.profile, lambda: pod.uid in self._queue
                )
        finally:
            self._queue.add_unschedulable_if_not_present(
                pod.uid, self._clock.monotonic(), plugins if is_made else frozenset()
            )
