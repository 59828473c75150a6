"""Holds the served profiles: one scheduler for each scheduler name; one writer, many readers."""

from collections.abc import Collection, Mapping

from plimsoll.cluster.node_shares import NodeShares
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod


class ServedProfiles:
    """The schedulers of the served profiles.

    Attributes:
        schedulers: The schedulers by scheduler name; replaced as a whole when policies change.
        elsewhere: Scheduler names of policies that other replicas currently serve.
        shares: The nodes that this replica binds to; None for all.
    """

    def __init__(self, shares: NodeShares | None = None) -> None:
        self.schedulers: Mapping[str, ProfileScheduler] = {}
        self.elsewhere: Mapping[str, ProfileScheduler] = {}
        self.shares = shares

    def replace(
        self, schedulers: Mapping[str, ProfileScheduler], others: Collection[str] = frozenset()
    ) -> None:
        """Serve these schedulers from now on, except those that other replicas serve."""
        self.schedulers = {name: each for name, each in schedulers.items() if name not in others}
        self.elsewhere = {name: each for name, each in schedulers.items() if name in others}

    def find(self, scheduler_name: str) -> ProfileScheduler | None:
        """The scheduler of a name; None when the name is not served."""
        return self.schedulers.get(scheduler_name)

    def is_elsewhere(self, pod: Pod) -> bool:
        """Whether another replica places a pod according to a policy."""
        return pod.spec.scheduler_name in self.elsewhere

    def serves(self, pod: Pod) -> bool:
        """Whether this replica places a pod."""
        return pod.spec.scheduler_name in self.schedulers
