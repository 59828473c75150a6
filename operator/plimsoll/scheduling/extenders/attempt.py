"""Takes over attempts of pods that an extender is interested in; they continue in a task."""

from dataclasses import dataclass

from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.extender import interested
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.scheduling.failures import AttemptFailures
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queued_pod import QueuedPod


@dataclass(eq=False)
class ExtenderAttempts:
    """Schedules pods with their extenders."""

    _extending: ExtenderClient
    _served: ServedProfiles
    _queue: SchedulingQueue
    _failures: AttemptFailures
    _pipeline: BindingPipeline
    _clock: Clock

    def takes(self, queued: QueuedPod, scheduler: ProfileScheduler) -> bool:
        """Whether an extender is interested in the pod; then its attempt continues in a task."""
        if not interested(scheduler.profile.extenders, queued.pod):
            return False
        # It sees the cluster as of when it resumes; events until then need not be recorded.
        self._queue.settled(queued.pod.uid)
        self._pipeline.start(self._attempt(queued, scheduler))
        return True

    async def _attempt(self, queued: QueuedPod, scheduler: ProfileScheduler) -> None:
        """Try one pod; a change of the pod during the attempt voids the decision."""
        attempt = None
        try:
            async with self._extending.turn(scheduler, queued.pod):
                self._queue.resumed(queued.pod.uid)
                pod, began = queued.pod, self._clock.monotonic()
                is_wanted = self._is_as_asked(queued, pod, scheduler)
                decision = await self._extending.decide(scheduler, pod) if is_wanted else None
                # Nothing is awaited from here until the pod is assumed, so the decision is about this moment.
                if decision is None or not self._is_as_asked(queued, pod, scheduler):
                    self._queue.add_unschedulable_if_not_present(pod.uid, self._clock.monotonic())
                elif decision.outcome is not AttemptOutcome.SCHEDULED:
                    self._failures.reject(queued, scheduler, decision, began)
                else:
                    attempt = self._pipeline.place(queued, scheduler.profile, decision, began)
        except Exception as exc:  # noqa: BLE001 - whatever breaks, the other pods are served
            self._failures.broken(queued, exc)
            return
        if attempt is not None:
            await self._pipeline.bind_in_slot(queued, attempt)

    def _is_as_asked(self, queued: QueuedPod, pod: PodInfo, scheduler: ProfileScheduler) -> bool:
        """Whether the pod still waits, unchanged, and its policy is still the same."""
        return (
            pod.uid in self._queue
            and queued.pod.template is pod.template
            and self._served.to_try(queued.pod) is scheduler
        )
