"""Indexes pods by group: members, counts and progress.

A policy may say that the pods of one owner form a group; then the owner stands in the place of a PodGroup.

Observes every event before the other subscribers, so a pod's own arrival counts when its gate is evaluated.
It holds objects as watched; only the cache knows which pods are assumed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field

from plimsoll.cluster.cache import Cache
from plimsoll.cluster.ingestion import PlacedPodsSubscriber
from plimsoll.cluster.watch_events import (
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.framework import Pod
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.group_trees import GroupTrees
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup, is_composite
from plimsoll.model.kinds.owned_group import (
    NOT_YET,
    OwnedGroup,
    is_owned,
    key_of,
    owner_key,
    title_of,
    without_object,
)
from plimsoll.model.kinds.pod_group import CORE, PodGroup, is_core, resource_of
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.quantity import QuantityError, milli, units
from plimsoll.timing.signal import Signal
from plimsoll.toolkit.scheduling.topology_levels import GroupRules


class Group(Struct):
    """One gang.

    Attributes:
        key: As :func:`plimsoll.model.kinds.owned_group.key_of` has it.
        object: The PodGroup, or the owner in its form; None while it does not exist.
        members: Pods that name the group, by uid, including ended ones.
        refusal: Why the last start failed, "" if it succeeded or was not tried.
        started_at: When this process last decided to start it, in seconds since the epoch; None if never.
        overdue: Whether a start has exceeded its time limit.
        present: Members that count towards minMember.
        others: All groups, of which some may be in one tree with this one; None for a group by itself.
    """

    key: str
    object: PodGroup | None = None
    members: dict[str, Pod] = field(default_factory=dict)
    refusal: str = ""
    started_at: float | None = None
    overdue: bool = False
    present: int = 0
    others: "Groups | None" = None

    @property
    def title(self) -> str:
        """The group in words: ``PodGroup default/train``, ``Job default/train``."""
        return title_of(self.key)

    @property
    def min_member(self) -> int:
        """Number of members that a start needs."""
        return 1 if self.object is None else max(1, self.object.spec.min_member)

    @property
    def has_enough_pods(self) -> bool:
        """Whether as many pods exist as a start needs."""
        return self.object is not None and self.present >= self.min_member

    @property
    def topology_key(self) -> str:
        """The node label whose value all members share, "" for none."""
        return "" if self.object is None else self.object.spec.topology_key

    @property
    def is_part(self) -> bool:
        """Whether it starts with the other groups of a composite group."""
        return self.object is not None and bool(self.object.spec.parent)

    def near(self, rules: GroupRules) -> tuple[str, ...]:
        """The node labels whose values all members should share, the narrowest first."""
        return rules.near(self.object)

    @property
    def may_preempt(self) -> bool:
        """Whether members may preempt: a group of the core API does so as a whole or not at all."""
        if self.object is None or self.object.spec.never_preempts:
            return False
        return not is_core(self.key) or all(
            pod.spec.preemption_policy != "Never" for pod in self.members.values()
        )

    def counting(self) -> list[Pod]:
        """Members that count towards minMember: they wait, run or have succeeded, and are not terminating."""
        return [pod for pod in self.members.values() if counts(pod)]

    def waiting(self) -> list[Pod]:
        """Members without a node, according to the watch."""
        return [pod for pod in self.counting() if not pod.node_name and not pod.is_terminal]

    def obstacle(self) -> str:
        """Why no start can be tried yet, as one sentence for all members; "" if one can."""
        if self.object is None and is_owned(self.key):
            return f"waiting for {self.title}: the operator has not read it, or has not the right to"
        if self.object is None:
            seen = " that the operator may read" if is_core(self.key) else ""
            return f"waiting for PodGroup {self.key}: there is no such {resource_of(self.key)}{seen}"
        above = self.others.obstacle_above(self.object) if self.is_part and self.others else ""
        if above:
            return above
        if not self.has_enough_pods:
            return (
                f"cannot find enough sibling pods of {self.title}, whose "
                f"{self.object.spec.least_name} is {self.min_member}"
            )
        return ""

    def phase(self, census: "Census") -> str:
        """The phase with these counts of its members."""
        is_refused = bool(self.refusal or self.obstacle())
        return census.phase(self.min_member, is_refused=is_refused, is_overdue=self.overdue)

    def census(self) -> "Census":
        """Counts of the members."""
        counts = Census(present=self.present)
        for pod in self.members.values():
            match pod.status.phase:
                case "Succeeded":
                    counts.succeeded += 1
                case "Failed":
                    counts.failed += 1
                case phase if pod.node_name and not pod.is_terminating:
                    counts.scheduled += 1
                    counts.running += phase == "Running"
        return counts


class Composite(Struct):
    """One composite group.

    Attributes:
        key: As its object has it.
        object: The CompositePodGroup.
        refusal: Why the last start failed, "" if it succeeded or was not tried.
    """

    key: str
    object: CompositePodGroup
    refusal: str = ""

    @property
    def title(self) -> str:
        """The group in words."""
        return title_of(self.key)


class Census(Struct):
    """Counts of a group's members, or of those of several groups."""

    present: int = 0
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    def phase(self, min_member: int, *, is_refused: bool, is_overdue: bool) -> str:
        """The phase of the PodGroup.

        Source: scheduler-plugins, ``pkg/controllers/podgroup_controller.go``, including the phases that its
        API names and its controller no longer distinguishes.
        """
        placed = self.scheduled + self.succeeded
        if self.succeeded >= min_member:
            return "Finished"
        if self.failed and self.failed + self.running + self.succeeded >= min_member:
            return "Failed"
        if self.running + self.succeeded >= min_member:
            return "Running"
        if placed >= min_member:
            return "Scheduled"
        if placed:
            return "Unknown" if is_overdue else "Scheduling"
        return "Pending" if is_refused or self.present < min_member else "PreScheduling"


def counts(pod: Pod) -> bool:
    """Whether a member counts towards minMember: it waits, runs or has succeeded, and is not terminating."""
    phase = pod.status.phase
    return phase != "Failed" and (not pod.is_terminating or phase == "Succeeded")


class Groups(PlacedPodsSubscriber):
    """All gangs by key.

    Attributes:
        core_version: The version in which the core API's groups are watched, "" for none.
        composite_version: The same of its composite groups.
        composites: The composite groups by key.
        deriving: The schedulers whose pods form groups by their owners.
        derived: Notified when that has been set.
    """

    def __init__(self) -> None:
        self.core_version = self.composite_version = ""
        self.composites: dict[str, Composite] = {}
        self._trees: GroupTrees | None = None
        self._enough: dict[str, bool] = {}  #: whether enough groups have enough pods, by composite group
        self.deriving: frozenset[str] = frozenset()
        self.derived = Signal()
        self._groups: dict[str, Group] = {}
        self._owners: dict[str, PodGroup] = {}
        self._of_owner: dict[str, set[str]] = {}
        self._key_of: dict[str, str] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    @property
    def owners(self) -> Iterable[PodGroup]:
        """The owners that stand in the place of PodGroups, where a policy says so."""
        return self._owners.values()

    def watch_core(self, resource: WatchedResource) -> None:
        """Note the version in which the core API's groups are watched."""
        self.core_version = resource.path.split("/")[-2]

    def watch_composites(self, resource: WatchedResource) -> None:
        """Note the version in which the core API's composite groups are watched."""
        self.composite_version = resource.path.split("/")[-2]

    def api_version_of(self, key: str) -> str:
        """The ``apiVersion`` of the object of the group with this key."""
        if is_composite(key):
            return f"{CORE}/{self.composite_version}"
        found = self._groups[key].object if key in self._groups else None
        if isinstance(found, OwnedGroup):
            return found.api_version
        return f"{CORE}/{self.core_version}" if is_core(key) else "plimsoll.dev/v1alpha1"

    def find(self, key: str) -> Group | None:
        """The gang with this key, if it has a PodGroup or a pod that names one."""
        return self._groups.get(key)

    def of(self, pod: Pod) -> Group | None:
        """The gang of a pod, None if the pod has none."""
        key = self.key_of(pod)
        return self._groups.get(key) if key else None

    def key_of(self, pod: Pod) -> str:
        """The key of the gang of a pod, "" for none."""
        return key_of(pod, derives=pod.spec.scheduler_name in self.deriving)

    # -- trees of groups -------------------------------------------------------------------------------------

    @property
    def trees(self) -> GroupTrees:
        """The trees that composite groups and their groups form."""
        if self._trees is None:
            known = {each.key: each.object for each in self._groups.values() if each.object is not None}
            parts = {key: each for key, each in known.items() if each.spec.parent}
            self._trees = GroupTrees(parts, {each.key: each.object for each in self.composites.values()})
            self._enough.clear()
        return self._trees

    def above(self, key: str) -> list[Composite]:
        """The composite groups above a group, from its parent to the root; those that are known."""
        group = self._groups.get(key)
        if group is None or group.object is None or not group.object.spec.parent:
            return []
        return [self.composites[each.group_key] for each in self.trees.above(group.object).path]

    def parts(self, key: str) -> list[Group]:
        """The groups that start together with the one with this key, with itself; below a composite all."""
        if is_composite(key):
            return [self._groups[each] for each in self.trees.leaves(key)]
        above = self.above(key)
        found = [self._groups[each] for each in self.trees.leaves(above[-1].key)] if above else []
        return found or [self._groups[key]]

    def obstacle_above(self, group: PodGroup) -> str:
        """Why no start of the composite groups above a group can be tried yet, "" if one can."""
        ancestry = self.trees.above(group)
        if ancestry.fault:
            return ancestry.fault
        for each in reversed(ancestry.path):
            if not self._has_enough(each.group_key):
                return (
                    f"cannot find enough groups with enough pods in {title_of(each.group_key)}, whose"
                    f" minGroupCount is {each.least}"
                )
        return ""

    def _has_enough(self, key: str) -> bool:
        """Found once while no group has more or fewer than it needs: each member of the tree asks."""
        trees = self.trees
        if key not in self._enough:
            self._enough[key] = trees.is_met(key, lambda each: self._groups[each].has_enough_pods)
        return self._enough[key]

    def invalid(self, group: Group) -> str:
        """Why the composite groups above a group can never start as they are, "" if they may."""
        ancestry = None if group.object is None else self.trees.above(group.object)
        return ancestry.fault if ancestry is not None and ancestry.is_invalid else ""

    def is_met(self, key: str, is_met: Callable[[Group], bool]) -> bool:
        """Whether enough groups below a composite group meet a condition; no if it is part of no tree."""
        parts = self.parts(key)
        if not parts or parts[0].object is None or self.trees.above(parts[0].object).fault:
            return False
        return self.trees.is_met(key, lambda each: is_met(self._groups[each]))

    def keys_of(self, found: PodGroup) -> set[str]:
        """The keys of the gangs that an object is about: an owner may have several, or none."""
        key = found.group_key
        return self._of_owner.get(key, set()) if is_owned(key) else {key}

    def derive_for(self, schedulers: frozenset[str], pods: Iterable[Pod]) -> None:
        """Let the pods of these schedulers form groups by their owners; ``pods`` are all that exist."""
        changed, self.deriving = self.deriving ^ schedulers, schedulers
        self.derived.notify()
        for pod in pods if changed else ():  # there may be hundreds of thousands
            if pod.spec.scheduler_name in changed:
                self._set_member(pod)

    def observe(self, event: WatchEvent) -> None:
        """Update the groups after an event."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                self._set_member(pod)
            case PodDeleted(pod):
                self._leave(pod.uid)
            case ObjectAdded(OwnedGroup() as owner) | ObjectUpdated(_, OwnedGroup() as owner):
                self._owners[owner.group_key] = owner
                for key in self.keys_of(owner):
                    self._groups[key].object = owner
            case ObjectDeleted(OwnedGroup() as owner):
                self._owners.pop(owner.group_key, None)
                for key in self.keys_of(owner):
                    self._groups[key].object = None
            case ObjectAdded(PodGroup() as group) | ObjectUpdated(_, PodGroup() as group):
                known = self._groups.setdefault(group.group_key, Group(group.group_key, others=self))
                self._set_object(known, group)
            case ObjectAdded(CompositePodGroup() as composite) | ObjectUpdated(
                _, CompositePodGroup() as composite
            ):
                self._set_composite(composite)
            case ObjectDeleted(CompositePodGroup() as composite):
                self._trees = None
                self.composites.pop(composite.group_key, None)
            case ObjectDeleted(PodGroup() as group):
                found = self._groups.get(group.group_key)
                if found is not None:
                    self._set_object(found, None)
                    self._drop_if_empty(found)

    def observe_placed(self, pods: Sequence[Pod]) -> None:
        """Add pods that have nodes."""
        for pod in pods:
            if pod.uid in self._key_of or self.key_of(pod):
                self._set_member(pod)

    def _set_composite(self, found: CompositePodGroup) -> None:
        before = self.composites.get(found.group_key)
        same = before if before is not None and before.object.uid == found.uid else None
        if same is None or same.object.spec != found.spec:
            self._trees = None
        refusal = "" if same is None else same.refusal
        self.composites[found.group_key] = Composite(found.group_key, found, refusal)

    def _set_object(self, group: Group, found: PodGroup | None) -> None:
        before, group.object = group.object, found
        if not any(each is not None and each.spec.parent for each in (before, found)):
            return
        if before is None or found is None or before.uid != found.uid or before.spec != found.spec:
            self._trees = None

    def _count(self, group: Group, change: int) -> None:
        had_enough = group.has_enough_pods
        group.present += change
        if group.is_part and group.has_enough_pods != had_enough:
            self._enough.clear()

    def _set_member(self, pod: Pod) -> None:
        key = self.key_of(pod)
        if self._key_of.get(pod.uid, "") != key:
            self._leave(pod.uid)
        if key:
            self._key_of[pod.uid] = key
            group = self._groups.get(key) or self._begin(key)
            old = group.members.get(pod.uid)
            self._count(group, counts(pod) - (old is not None and counts(old)))
            group.members[pod.uid] = pod

    def _leave(self, uid: str) -> None:
        key = self._key_of.pop(uid, "")
        if key:
            group = self._groups[key]
            self._count(group, -counts(group.members.pop(uid)))
            self._drop_if_empty(group)

    def _begin(self, key: str) -> Group:
        found = self._groups[key] = Group(key, others=self)
        if is_owned(key):
            found.object = self._owners.get(owner_key(key)) or without_object(key)
            self._of_owner.setdefault(owner_key(key), set()).add(key)
        return found

    def _drop_if_empty(self, group: Group) -> None:
        if group.members or (group.object is not None and not is_owned(group.key)):
            return
        del self._groups[group.key]
        owner = owner_key(group.key)
        if is_owned(group.key):
            self._of_owner[owner].discard(group.key)
            if not self._of_owner[owner]:
                del self._of_owner[owner]


def placed_members(group: Group, cache: Cache) -> list[Pod]:
    """Members that have a node, bound or assumed, and members that have succeeded."""
    return [
        pod
        for pod in group.counting()
        if pod.status.phase == "Succeeded" or cache.node_of(pod.uid) or pod.node_name
    ]


def shortage(group: Group, cluster: Cluster) -> str:
    """A sentence about the part of a group's minResources that the cluster lacks; "" if none."""
    assert group.object is not None
    try:
        wanted = {
            name: milli(amount) if name == "cpu" else units(amount)
            for name, amount in group.object.spec.min_resources.items()
        }
    except QuantityError as exc:
        return f"minResources of {group.title} cannot be read: {exc}"
    own = [cluster.pods[pod.uid] for pod in group.counting() if pod.uid in cluster.pods]
    lacking = lacking_resources(cluster, wanted, own) if wanted else {}
    if not lacking:
        return ""
    amounts = ", ".join(
        f"{amount}m of cpu" if name == "cpu" else f"{amount} of {name}"
        for name, amount in sorted(lacking.items())
    )
    return f"minResources of {group.title} are not free: the cluster lacks {amounts}"


def gang_needs(groups: Groups, cache: Cache) -> dict[str, int]:
    """By PodGroup, the number of members that must get a node together; 0 when it has started.

    ``NOT_YET`` for groups that cannot start for a reason other than room for their members, and for those
    that have members in a topology domain which they must share: room elsewhere is of no use to the others.
    """
    needs = {}
    for group in groups:
        if group.object is None or group.is_part or group.obstacle() or shortage(group, cache.cluster):
            needs[group.key] = NOT_YET  # of a composite group, a part alone could not start either
            continue
        placed = len(placed_members(group, cache))
        is_bound = bool(group.topology_key) and placed > 0
        needs[group.key] = NOT_YET if is_bound else max(group.min_member - placed, 0)
    return needs


def lacking_resources(cluster: Cluster, wanted: dict[str, int], own: Iterable[PodInfo]) -> dict[str, int]:
    """The part of these amounts that the cluster as a whole lacks; a gang is rejected early by it.

    Formula: wanted - sum over nodes of max(0, allocatable - requested) - what the gang holds already.

    Args:
        cluster: The present cluster.
        wanted: Amounts by resource; cpu in milli.
        own: The gang's placed pods.
    """
    held: Counter[str] = Counter()
    for pod in own:
        held.update(pod.requests)
    lacking = {}
    for name, amount in wanted.items():
        axis = cluster.axis_of(name)
        free = 0
        if axis is not None:
            n = len(cluster)
            free = int((cluster.allocatable[:n, axis] - cluster.requested[:n, axis]).clip(0).sum())
        if amount > free + held[name]:
            lacking[name] = amount - free - held[name]
    return lacking
