"""OfflineCluster is a fork of the cluster in which pods wait, are placed, preempt others and leave.

The engine decides. Pods are tried in the order of the scheduling queue, then in the order of their arrival;
the members of a PodGroup are placed together or not at all. Nominations and targets of open moves keep their
room. HTTP extenders are not called. Equal input gives equal output.

Time is set from outside. A pod that is placed runs and is ready immediately, and a pod that leaves frees its
room immediately. While time stands still (``now`` is None), placed pods stay as they are.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from math import inf

import msgspec
from msgspec import Struct

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.gangs.composite import Leaf, branch_of, place_unit
from plimsoll.engine.gangs.joint_decision import GangDecision
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import Choose, ProfileScheduler
from plimsoll.framework import Pod, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.queue_usage import ReclaimTimes, WaitingDemand, asks_for_room
from plimsoll.model.group_trees import GroupTrees, KeptTrees
from plimsoll.model.kinds.owned_group import NOT_YET, key_of, owner_key, title_of, without_object
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER, PodStatus
from plimsoll.model.kinds.pod_group import PodGroup, resource_of
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.fork_schedulers import placing
from plimsoll.toolkit.scheduling.fair_shares import fair_queues

#: kube-scheduler's message for pods with scheduling gates.
GATED = "Scheduling is blocked due to non-empty scheduling gates"

#: Maximum number of rounds over all waiting pods at one moment; preemption may start another round.
_MOST_ROUNDS = 100

#: What pods that are refused for the same reason have in common: scheduler and template, or PodGroup.
_Shape = tuple[object, ...]


class OfflinePlacement(Struct, frozen=True):
    """A pod on its node.

    Attributes:
        pod: As it is on the node.
        ties: Number of nodes with the same score.
        victims: Pods that it preempted.
        waited: Seconds from its arrival to its placement, in virtual time.
    """

    pod: PodInfo
    node: str
    ties: int = 1
    victims: tuple[PodInfo, ...] = ()
    waited: float = 0.0


class Schedulers(Struct, frozen=True):
    """The schedulers that place pods.

    Attributes:
        profiles: By scheduler name.
        forecasts: The profiles assumed for schedulers that no policy serves, with a default.
        groups: The PodGroups by key.
    """

    profiles: Mapping[str, Profile]
    forecasts: Forecasts
    groups: Mapping[str, PodGroup]

    def profile_of(self, name: str) -> Profile:
        """The profile that places the pods of a scheduler name."""
        found = self.forecasts.profile_of(name, self.profiles)
        assert found is not None, "there is a default"
        return found


class OfflineCluster:
    """The fork, its waiting pods and its clock.

    Args:
        fork: The fork; only this object changes it while time is set.
        schedulers: The schedulers that place pods.
        nominated: Pods with their nominated nodes.
        preempting: Whether pods may preempt pods of lower priority.
        now: Seconds since the epoch; None while time stands still.
        ties: By scheduler name, the choice among the best nodes; None for the first of them.
        left: Called with each victim of preemption, after it has left.

    Attributes:
        waiting: Pods without a node, by uid, in order of arrival.
        refusals: The result of each waiting pod's latest attempt, by uid.
        ended: Pods that ended without being deleted, by uid.
    """

    def __init__(
        self,
        fork: Cluster,
        schedulers: Schedulers,
        nominated: Iterable[tuple[PodInfo, str]],
        *,
        preempting: bool = False,
        now: float | None = None,
        ties: Callable[[str], Choose] | None = None,
        left: Callable[[PodInfo], None] | None = None,
    ) -> None:
        self.fork, self.now = fork, now
        self.waiting: dict[str, PodInfo] = {}
        self.refusals: dict[str, Decision] = {}
        self.ended: dict[str, PodInfo] = {}
        self.nominator = Nominator()
        for pod, node in nominated:
            self.nominator.add(pod, node)
        self._schedulers, self._preempting, self._ties, self._left = schedulers, preempting, ties, left
        self._known: dict[tuple[str, bool], ProfileScheduler] = {}
        sorting = next(iter(schedulers.profiles.values()), schedulers.profile_of(DEFAULT_SCHEDULER))
        self._sort_key = sorting.queue_sort.sort_key
        #: when each waiting pod began to wait, in seconds since the epoch, and its number among all that did
        self._arrivals: dict[str, tuple[float, int]] = {}
        self._arrived = self._freed = 0
        self._within: dict[str, str] = {}  #: by group, a label that its members share, whatever it says
        self._pods_matter = False  #: whether a pod of this round may fit when another one is placed
        self._victims: dict[str, tuple[PodInfo, ...]] = {}
        #: what was refused, with the state of the cluster at that time
        self._refused: dict[_Shape, tuple[_Shape, Decision]] = {}
        self._kept_trees = KeptTrees()
        divides = any(fair_queues(each.plugins) is not None for each in schedulers.profiles.values())
        self._demand = fork.index(WaitingDemand) if divides else None  #: what queues deserve depends on it

    # -- pods come and go ------------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """Add a waiting pod; it waits since now, or since its creation while time stands still."""
        self._arrived += 1
        self._arrivals[pod.uid] = (_created(pod) if self.now is None else self.now, self._arrived)
        self.waiting[pod.uid] = pod
        if self._demand is not None and asks_for_room(pod.pod):
            self._demand.set(pod, is_placed=False)

    def remove(self, uid: str) -> PodInfo | None:
        """Remove a pod; returns it as it was, None if it is not present."""
        self.nominator.remove(uid)
        self.refusals.pop(uid, None)
        placed = self.fork.displace(uid)
        self._freed += placed is not None
        if self._demand is not None:
            self._demand.drop(uid)
        return placed or self.waiting.pop(uid, None) or self.ended.pop(uid, None)

    def since(self, uid: str) -> float:
        """When a waiting pod began to wait, in seconds since the epoch; the earliest if that is unknown."""
        return self._arrivals[uid][0]

    # -- scheduling ------------------------------------------------------------------------------------------

    def in_order(self) -> list[PodInfo]:
        """The waiting pods in queue order; of equal order, in order of arrival."""
        return sorted(
            self.waiting.values(),
            key=lambda pod: (self._sort_key(pod, self.since(pod.uid)), self._arrivals[pod.uid][1]),
        )

    def precedes(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether a pod precedes another one in the queue, by their creation."""
        return bool(self._sort_key(pod, _created(pod)) <= self._sort_key(other, _created(other)))

    def settle(self) -> list[OfflinePlacement]:
        """Place every pod that fits, until no further one does; returns them in order of placement."""
        if self.now is None:
            self._refused.clear()  # the fork may have been changed from outside
        placed: list[OfflinePlacement] = []
        for _ in range(_MOST_ROUNDS):
            freed, self._pods_matter = self._freed, False
            found = self._round()
            placed += found
            if self._freed == freed and not (found and self._pods_matter):
                break
        return placed

    def place(self, pod: PodInfo) -> OfflinePlacement | Decision:
        """Place one pod, waiting or not; returns the rejecting decision if it does not fit."""
        found = self._try(pod)
        if isinstance(found, Decision) and pod.uid in self._victims:
            found = self._try(pod)
        return found

    def scheduler_of(self, pod: PodInfo, *, preempting: bool = False) -> ProfileScheduler:
        """The scheduler of the pod on this fork."""
        name = pod.pod.spec.scheduler_name if self.is_served(pod) else ""
        found = self._known.get((name, preempting))
        if found is None:
            profile = self._profile_of(pod)
            used = profile if preempting else profile.without_preemption
            choose = _first if self._ties is None else self._ties(name)
            found = ProfileScheduler(used, self.fork, choose, self.nominator)
            self._known[name, preempting] = found
        return found

    def attempt(self, pod: PodInfo) -> Decision:
        """The scheduler's decision about the pod, preemption included; places nothing."""
        return schedule(self.scheduler_of(pod, preempting=True), pod)

    def extender_of(self, pod: PodInfo) -> str:
        """The URL of an extender that is interested in the pod, or ""."""
        found = placing(self._profile_of(pod), pod)
        return "" if found is None else found.name

    def policy_of(self, pod: PodInfo) -> str:
        """The policy whose profile schedules the pod, "" for a forecast."""
        return self._profile_of(pod).policy if self.is_served(pod) else ""

    def is_served(self, pod: PodInfo) -> bool:
        """Whether a policy serves the pod's scheduler; otherwise its placement is a forecast."""
        return pod.pod.spec.scheduler_name in self._schedulers.profiles

    def group_of(self, pod: PodInfo) -> tuple[str, PodGroup | None]:
        """The key of the pod's group, "" for none, and the group, None if it is not known."""
        key = self._key(pod)
        return key, self._group(key) if key else None

    def keep_within(self, key: str, label: str) -> None:
        """Place the members of a group on nodes that share the value of a label, whatever the group says."""
        self._within[key] = label

    def required_label_of(self, pod: PodInfo) -> str:
        """The node label whose value the members of the pod's group share, "" for none."""
        key, group = self.group_of(pod)
        return "" if group is None else self._domain_of(key, group)

    def labels_of(self, pod: PodInfo) -> tuple[str, ...]:
        """The node labels whose value the members of the pod's group share, or should: the required first."""
        group = self.group_of(pod)[1]
        if group is None:
            return ()
        labels = (self.required_label_of(pod), *self._profile_of(pod).groups.near(group))
        return tuple(dict.fromkeys(filter(None, labels)))

    def victims_for(self, key: str) -> list[PodInfo]:
        """The pods whose room the waiting members of a group would take by preemption; they stay."""
        group = self._group(key)
        members = self._members(self._parts(key))
        if group is None or not members:
            return []
        joint = self._decided(key, group, members, preempting=True)
        return [victim for each in joint.placements for victim in each.victims] if joint.is_feasible else []

    # -- what planners read ----------------------------------------------------------------------------------

    def unplaced(self) -> tuple[PodInfo, ...]:
        """Pods without a place: those that wait, and those that have ended."""
        return (*self.waiting.values(), *self.ended.values())

    def gang_needs(self) -> dict[str, int]:
        """By PodGroup, the number of members that must get a node together; 0 when it has started.

        ``NOT_YET`` for groups that have too few members, or some in the topology domain that all share.
        """
        waiting = Counter(self._key(pod) for pod in self.waiting.values() if not pod.is_terminating)
        placed = Counter(self._key(pod) for pod in self.fork.pods.values())
        placed.update(self._key(pod) for pod in self.ended.values() if _has_succeeded(pod))
        needs: dict[str, int] = {}
        for key in {*waiting, *placed} - {""}:
            group = self._group(key)
            if group is not None:
                least = group.spec.min_member
                is_bound = bool(group.spec.topology_key) and placed[key] > 0
                can_start = waiting[key] + placed[key] >= least and not (is_bound or group.spec.parent)
                needs[key] = max(least - placed[key], 0) if can_start else NOT_YET
        return needs

    # --------------------------------------------------------------------------------------------------------

    def _profile_of(self, pod: PodInfo) -> Profile:
        return self._schedulers.profile_of(pod.pod.spec.scheduler_name)

    def _key(self, pod: PodInfo) -> str:
        return key_of(pod.pod, derives=self._profile_of(pod).groups.derives)

    def _group(self, key: str) -> PodGroup | None:
        groups = self._schedulers.groups
        return groups.get(key) or groups.get(owner_key(key)) or without_object(key)

    def _gate(self, pod: PodInfo) -> str:
        """Why the pod is not tried, "" if it is."""
        group = self._key(pod)
        if pod.pod.spec.scheduling_gates:
            return GATED
        if pod.is_terminating:
            return "the pod is terminating"
        if group and self._group(group) is None and self.is_served(pod):
            return f"waiting for {title_of(group)}: there is no such {resource_of(owner_key(group))}"
        found = self._group(group) if group else None
        return self._trees().above(found).fault if found is not None and found.spec.parent else ""

    def _round(self) -> list[OfflinePlacement]:
        """Try each waiting pod once."""
        placed: list[OfflinePlacement] = []
        groups: set[str] = set()
        for pod in self.in_order():
            group = self._key(pod)
            if group and self._group(group) is not None and not self._gate(pod):
                if group not in groups:
                    groups.update(self._parts(group))
                    placed += self._start(group)
                continue
            found = self._try(pod)
            if isinstance(found, OfflinePlacement):
                placed.append(found)
            else:
                self.refusals[pod.uid] = found
        return placed

    def _try(self, pod: PodInfo) -> OfflinePlacement | Decision:
        """Try one pod; if it preempts, the victims leave, and it is tried again later."""
        obstacle = self._gate(pod)
        if obstacle:
            return Decision(pod, AttemptOutcome.UNSCHEDULABLE, message=obstacle)
        shape = (pod.pod.spec.scheduler_name, pod.template.signature, pod.priority)
        state, times = self._state(pod), self.fork.index(ReclaimTimes)
        times.now = times.now if self.now is None else self.now
        may_reclaim = times.until.get(pod.uid, inf) <= (times.now or 0.0)
        if not may_reclaim and not (pod.pod.nominated_node_name or self.nominator.node_of(pod.uid)):
            known, decision = self._refused.get(shape, (None, None))
            if decision is not None and known == state:
                return decision
        decision = schedule(self.scheduler_of(pod, preempting=self._preempting), pod)
        if decision.outcome is AttemptOutcome.SCHEDULED:
            return self._put(pod, decision.node, decision.ties)
        nomination = decision.nomination
        if nomination is None or not nomination.node or not nomination.victims:
            self._refused[shape] = state, decision
            return decision
        self._victims[pod.uid] = nomination.victims
        self._leave(nomination.victims)
        self.nominator.add(self.fork.templates.at_priority(pod, nomination.priority), nomination.node)
        return decision

    def _start(self, group: str) -> list[OfflinePlacement]:
        """Place the members of a PodGroup together, or none of them."""
        members = self._members(self._parts(group))
        shape = ("PodGroup", group)
        state = (*map(self._state, members), *(pod.uid for pod in members))
        if self._refused.get(shape, (None, None))[0] == state:
            return []
        found = self._group(group)
        assert found is not None
        joint = self._decided(group, found, members, preempting=self._preempting)
        for each in joint.refused:
            self.refusals[each.pod.uid] = each
        if not joint.is_feasible:
            message = joint.message(len(self._placed(group)))
            for pod in members:
                self.refusals[pod.uid] = Decision(pod, AttemptOutcome.UNSCHEDULABLE, message=message)
        if not joint.is_feasible or not joint.placements:
            self._refused[shape] = state, self.refusals[members[0].uid]
            return []
        for one in joint.placements:
            self._victims[one.decision.pod.uid] = one.victims
            self._leave(one.victims)
        return [self._put(one.decision.pod, one.node, one.decision.ties or 1) for one in joint.placements]

    def _trees(self) -> GroupTrees:
        """The trees of groups on the fork."""
        return self._kept_trees.of(self.fork.objects, self._schedulers.groups)

    def _parts(self, key: str) -> list[str]:
        """The keys of the groups that start together with this one, and its own."""
        group = self._group(key)
        if group is None or not group.spec.parent:
            return [key]
        trees = self._trees()
        path = trees.above(group).path
        return trees.leaves(path[-1].group_key) if path else [key]

    def _members(self, keys: Collection[str]) -> list[PodInfo]:
        """The waiting members of these groups that are tried."""
        return [pod for pod in self.in_order() if self._key(pod) in keys and not self._gate(pod)]

    def _placed(self, key: str) -> list[str]:
        """The members of a group that have a node or have succeeded, by uid."""
        there = (*self.fork.pods.values(), *filter(_has_succeeded, self.ended.values()))
        return [pod.uid for pod in there if self._key(pod) == key]

    def _domain_of(self, key: str, group: PodGroup) -> str:
        """The node label whose value the members share, "" for none."""
        return self._within.get(key, group.spec.topology_key)

    def _decided(
        self, key: str, group: PodGroup, members: list[PodInfo], *, preempting: bool
    ) -> GangDecision:
        """The decision about waiting members; victims are the last resort, as in the operator."""
        joint = self._together(key, group, members, preempting=False)
        if joint.is_feasible or not preempting:
            return joint
        rescue = self._together(key, group, members, preempting=True)
        return rescue if rescue.is_feasible else joint

    def _together(
        self, key: str, group: PodGroup, members: list[PodInfo], *, preempting: bool
    ) -> GangDecision:
        """Places for the waiting members of a group and of those that start with it, or for none."""
        of_group: dict[str, list[tuple[PodInfo, ProfileScheduler]]] = {}
        for pod in members:
            scheduler = self.scheduler_of(pod, preempting=preempting)
            of_group.setdefault(self._key(pod), []).append((pod, scheduler))

        def leaf(part: str) -> Leaf:
            found, waiting = self._group(part), of_group.get(part, [])
            assert found is not None, "trees are made of these groups"
            near = self._profile_of(waiting[0][0]).groups.near(found) if waiting else ()
            return Leaf(
                part,
                found.spec.min_member,
                tuple(waiting),
                tuple(self._placed(part)),
                self._domain_of(part, found),
                near,
            )

        trees = self._trees() if group.spec.parent else None
        unit = leaf(key) if trees is None else branch_of(trees, trees.above(group).path[-1].group_key, leaf)
        return place_unit(unit, self.fork, is_preempting=preempting)

    def _state(self, pod: PodInfo) -> _Shape:
        """What a refused pod waits for to change: rooms that become free, or any pod that is placed."""
        spec = pod.pod.spec
        depends_on_pods = bool(spec.topology_spread_constraints) or (
            spec.affinity is not None and spec.affinity.pod_affinity is not None
        )
        self._pods_matter |= depends_on_pods
        return (self._freed, self.fork.tick if depends_on_pods else 0)

    def _leave(self, victims: Iterable[PodInfo]) -> None:
        for victim in victims:
            found = self.remove(victim.uid)
            if found is not None and self._left is not None:
                self._left(found)

    def _put(self, pod: PodInfo, node: str, ties: int) -> OfflinePlacement:
        waited, victims = 0.0, self._victims.pop(pod.uid, ())
        if self.now is not None:
            waited = self.now - self.since(pod.uid)
            pod = self.fork.templates.info(_running(pod.pod, node, self.now))
        self.waiting.pop(pod.uid, None)
        self.refusals.pop(pod.uid, None)
        self.nominator.remove(pod.uid)
        self.fork.place(pod, node)
        return OfflinePlacement(pod, node, ties, victims, waited)


def _first(_best: int) -> int:
    """The first of the best nodes."""
    return 0


def _created(pod: PodInfo) -> float:
    """When the pod was created, in seconds since the epoch; the earliest if that is unknown."""
    created: datetime | None = pod.pod.metadata.creation_timestamp
    return float("-inf") if created is None else created.timestamp()


def _has_succeeded(pod: PodInfo) -> bool:
    return pod.pod.status.phase == "Succeeded"


def _running(pod: Pod, node: str, now: float) -> Pod:
    """The pod as its kubelet reports it."""
    ready = {"type": "Ready", "status": "True"}
    status = msgspec.convert(
        {"phase": "Running", "conditions": [ready], "qosClass": pod.status.qos_class}, PodStatus
    )
    started = msgspec.structs.replace(status, start_time=datetime.fromtimestamp(now, UTC))
    spec = msgspec.structs.replace(pod.spec, node_name=node)
    return msgspec.structs.replace(pod, spec=spec, status=started)
