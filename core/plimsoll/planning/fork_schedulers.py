"""Schedules replacements and pending pods on the fork of a plan."""

from collections.abc import Mapping

from plimsoll.engine.decision import Ranking
from plimsoll.engine.extender import Extender, interested
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import replacement_of


class ForkSchedulers:
    """One scheduler for each profile, all on one fork."""

    def __init__(self, profiles: Mapping[str, Profile], fork: Cluster) -> None:
        self._profiles = profiles
        self._fork = fork
        self._known: dict[int, ProfileScheduler] = {}

    def of(self, profile: Profile) -> ProfileScheduler:
        """The scheduler of a profile."""
        known = self._known.get(id(profile))
        if known is None:
            known = self._known[id(profile)] = ProfileScheduler(profile, self._fork)
        return known

    def serving(self, pod: PodInfo) -> ProfileScheduler | None:
        """The scheduler that places the pod; None when no policy serves it."""
        profile = self._profiles.get(pod.pod.spec.scheduler_name)
        return None if profile is None else self.of(profile)

    def deciding(self, pod: PodInfo) -> ProfileScheduler | None:
        """The same; None also if an extender takes part."""
        scheduler = self.serving(pod)
        return None if scheduler is None or placing(scheduler.profile, pod) else scheduler

    def ranked(self, pod: PodInfo) -> Ranking | None:
        """Rank the nodes for the pod's replacement; None if no profile can."""
        scheduler = self.serving(pod)
        if scheduler is None or pod.uid not in self._fork.pods:
            return None
        try:
            return self.rank_without(pod, scheduler.profile)
        except PluginError:
            return None

    def rank_without(self, pod: PodInfo, profile: Profile) -> Ranking:
        """Rank the nodes for the pod's replacement, as if the pod had left; the fork stays the same."""
        row = self._fork.row_of_pod(pod.uid)
        node = pod.pod.node_name if row is None else self._fork.nodes[row].name
        standing = self._fork.displace(pod.uid)
        try:
            return self.of(profile).rank(replacement_of(pod, self._fork))
        finally:
            if standing is not None:
                self._fork.place(standing, node)


def placing(profile: Profile, pod: PodInfo) -> Extender | None:
    """The first extender that takes part in the choice of the pod's node."""
    if not profile.extenders:
        return None
    return next((each for each in interested(profile.extenders, pod) if each.places), None)
