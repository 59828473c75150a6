"""Places pods on a fork of the cluster, in the order of the scheduling queue.

The engine decides. Ties go to the first of the best nodes, in the order of the cluster's rows, so that equal
input gives equal output. Nominations and targets of open moves keep their room. HTTP extenders are not
called; if one is interested in the pod, the placement is reported as uncertain.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gang import place_together
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_group import group_key
from plimsoll.planning.fork_schedulers import placing

#: kube-scheduler's message for pods with scheduling gates.
GATED = "Scheduling is blocked due to non-empty scheduling gates"


class ForkPlacement(Struct, frozen=True):
    """A pod on its node.

    Attributes:
        ties: Number of nodes with the same score.
        victims: Pods to preempt first.
    """

    pod: PodInfo
    node: str
    ties: int = 1
    victims: tuple[PodInfo, ...] = ()


class Schedulers(Struct, frozen=True):
    """The schedulers that place pods.

    Attributes:
        profiles: By scheduler name.
        forecast: Profile for schedulers that no policy serves.
        minimums: ``minMember`` by PodGroup.
    """

    profiles: Mapping[str, Profile]
    forecast: Profile
    nominator: Nominator
    minimums: Mapping[str, int]

    def profile_of(self, pod: PodInfo) -> Profile:
        """The profile that schedules the pod."""
        return self.profiles.get(pod.pod.spec.scheduler_name, self.forecast)


class ForkQueue:
    """Pods that wait for a node of a fork.

    Args:
        fork: The fork; every placement changes it.
        preempting: Whether pods may preempt pods of lower priority.

    Attributes:
        waiting: Pods without a node, by uid.
        refusals: The result of each waiting pod's latest attempt, by uid.
    """

    def __init__(self, fork: Cluster, schedulers: Schedulers, *, preempting: bool = False) -> None:
        self.fork = fork
        self.waiting: dict[str, PodInfo] = {}
        self.refusals: dict[str, Decision] = {}
        self._schedulers = schedulers
        self._preempting = preempting
        self._by_profile: dict[tuple[int, bool], ProfileScheduler] = {}
        sorting = next(iter(schedulers.profiles.values()), schedulers.forecast)
        self._sort_key = sorting.queue_sort.sort_key

    def add(self, pod: PodInfo) -> None:
        """Add a waiting pod."""
        self.waiting[pod.uid] = pod

    def drop(self, uid: str) -> PodInfo | None:
        """Remove a waiting pod."""
        self.refusals.pop(uid, None)
        return self.waiting.pop(uid, None)

    def in_order(self) -> list[PodInfo]:
        """The waiting pods in queue order; pods of equal order and waiting time are sorted by name."""
        return sorted(self.waiting.values(), key=lambda pod: (self._sort_key(pod, _since(pod)), pod.key))

    def precedes(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether a pod precedes another one in the queue."""
        return bool(self._sort_key(pod, _since(pod)) <= self._sort_key(other, _since(other)))

    def settle(self) -> list[ForkPlacement]:
        """Place every pod that fits, until no further one does; returns them in order of placement."""
        placed: list[ForkPlacement] = []
        while True:
            found = self._round()
            placed += found
            if not found or not self.waiting:
                return placed

    def place(self, pod: PodInfo) -> ForkPlacement | Decision:
        """Place one pod, waiting or not; returns the rejecting decision if it does not fit."""
        obstacle = self._gate(pod)
        if obstacle:
            return Decision(pod, AttemptOutcome.UNSCHEDULABLE, message=obstacle)
        decision = schedule(self.scheduler_of(pod, preempting=self._preempting), pod)
        nomination = decision.nomination
        if decision.outcome is AttemptOutcome.SCHEDULED:
            return self._put(ForkPlacement(pod, decision.node, decision.ties))
        if nomination is not None and nomination.status.is_success and nomination.node:
            return self._put(ForkPlacement(pod, nomination.node, victims=nomination.victims))
        return decision

    def scheduler_of(self, pod: PodInfo, *, preempting: bool = False) -> ProfileScheduler:
        """The scheduler of the pod on this fork."""
        profile = self._schedulers.profile_of(pod)
        found = self._by_profile.get((id(profile), preempting))
        if found is None:
            used = profile if preempting else profile.without_preemption
            found = ProfileScheduler(used, self.fork, nominator=self._schedulers.nominator)
            self._by_profile[id(profile), preempting] = found
        return found

    def attempt(self, pod: PodInfo) -> Decision:
        """The scheduler's decision about the pod, preemption included; places nothing."""
        return schedule(self.scheduler_of(pod, preempting=True), pod)

    def extender_of(self, pod: PodInfo) -> str:
        """The URL of an extender that is interested in the pod, or ""."""
        found = placing(self._schedulers.profile_of(pod), pod)
        return "" if found is None else found.name

    def _gate(self, pod: PodInfo) -> str:
        """Why the pod is gated, "" if it is not."""
        group = group_key(pod.pod)
        if pod.pod.spec.scheduling_gates:
            return GATED
        if group and group not in self._schedulers.minimums and self.is_served(pod):
            return f"waiting for PodGroup {group}: there is no such podgroups.plimsoll.dev"
        return ""

    def policy_of(self, pod: PodInfo) -> str:
        """The policy whose profile schedules the pod, "" for a forecast."""
        return self._schedulers.profile_of(pod).policy if self.is_served(pod) else ""

    def is_served(self, pod: PodInfo) -> bool:
        """Whether a policy serves the pod's scheduler; otherwise its placement is a forecast."""
        return pod.pod.spec.scheduler_name in self._schedulers.profiles

    def _round(self) -> list[ForkPlacement]:
        """Try each waiting pod once."""
        placed: list[ForkPlacement] = []
        refused: dict[int, Decision] = {}
        groups: set[str] = set()
        for pod in self.in_order():
            group = group_key(pod.pod)
            if group in self._schedulers.minimums and not pod.pod.spec.scheduling_gates:
                if group not in groups:
                    groups.add(group)
                    placed += self._start(group)
                continue
            known = refused.get(id(pod.template)) if not pod.pod.nominated_node_name else None
            if known is not None:
                self.refusals[pod.uid] = known
                continue
            found = self.place(pod)
            if isinstance(found, ForkPlacement):
                placed.append(found)
            else:
                self.refusals[pod.uid] = found
                refused[id(pod.template)] = found
        return placed

    def _start(self, group: str) -> list[ForkPlacement]:
        """Place the members of a PodGroup together, or none of them."""
        members = [pod for pod in self.in_order() if group_key(pod.pod) == group and not self._gate(pod)]
        placed = [pod.uid for pod in self.fork.pods.values() if group_key(pod.pod) == group]
        needed = max(0, self._schedulers.minimums[group] - len(placed))
        pairs = [(pod, self.scheduler_of(pod, preempting=self._preempting)) for pod in members]
        joint = place_together(pairs, self.fork, needed, is_preempting=self._preempting, placed=placed)
        for each in joint.refused:
            self.refusals[each.pod.uid] = each
        if joint.is_feasible:
            return [
                self._put(ForkPlacement(each.decision.pod, each.node, each.decision.ties or 1, each.victims))
                for each in joint.placements
            ]
        for pod in members:
            message = joint.message(len(placed))
            self.refusals[pod.uid] = Decision(pod, AttemptOutcome.UNSCHEDULABLE, message=message)
        return []

    def _put(self, placement: ForkPlacement) -> ForkPlacement:
        for victim in placement.victims:
            self.fork.displace(victim.uid)
        self.fork.place(placement.pod, placement.node)
        self.drop(placement.pod.uid)
        return placement


def _since(pod: PodInfo) -> float:
    """Start of the pod's wait, in seconds since the epoch; the earliest if its creation is unknown."""
    created: datetime | None = pod.pod.metadata.creation_timestamp
    return float("-inf") if created is None else created.timestamp()
