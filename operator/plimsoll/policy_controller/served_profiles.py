"""Holds the served profiles: one scheduler for each scheduler name; one writer, many readers."""

from collections.abc import Mapping

from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod, PodInfo


class ServedProfiles:
    """The schedulers of the served profiles.

    Attributes:
        schedulers: The schedulers by scheduler name; replaced as a whole when policies change.
    """

    def __init__(self) -> None:
        self.schedulers: Mapping[str, ProfileScheduler] = {}

    def replace(self, schedulers: Mapping[str, ProfileScheduler]) -> None:
        """Serve these schedulers from now on."""
        self.schedulers = dict(schedulers)

    def find(self, scheduler_name: str) -> ProfileScheduler | None:
        """The scheduler of a name; None when the name is not served."""
        return self.schedulers.get(scheduler_name)

    def to_try(self, pod: PodInfo) -> ProfileScheduler | None:
        """The scheduler of a pod to try; None if it is terminating, has a node, or is not served."""
        scheduler = self.find(pod.pod.spec.scheduler_name)
        if scheduler is None or pod.is_terminating or pod.uid in scheduler.cluster.pods:
            return None
        return scheduler

    def serves(self, pod: Pod) -> bool:
        """Whether a policy's scheduler places a pod."""
        return pod.spec.scheduler_name in self.schedulers
