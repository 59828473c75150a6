"""The cluster as strategies and evictors read it: live, read-only, in a fixed order.

Nodes are ordered by name and the pods of a node by namespace and name. Upstream iterates over both in the
random order of its maps, so this is one of its possible results, always the same one.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol, runtime_checkable

from msgspec import Struct, field

from plimsoll.framework.args import NoArgs, PluginArgs
from plimsoll.framework.descheduling.measurements import Measurements, NodeClasses, Planner, Protected
from plimsoll.framework.descheduling.pod_indexes import (
    ANYWHERE,
    MemberCounts,
    NeighbourRule,
    OwnerCounts,
    PodsByOwner,
    PodsByTemplate,
    ReadyCounts,
    UnplacedPods,
    by_key,
)
from plimsoll.framework.descheduling.proposals import NoSurges, Refusal, SurgePermission
from plimsoll.framework.descheduling.prospects import Nowhere, Prospects
from plimsoll.framework.errors import PluginError
from plimsoll.framework.plugin_answers import judged, of_kind
from plimsoll.load.load_book import LoadBook
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.counted import counted
from plimsoll.model.gang_members import GangMembers, GangUnit, GangUnits
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selectors import EVERYTHING, Selector
from plimsoll.model.structural import Structural

#: Bound here, as a member of an enumeration takes longer to look up than to compare.
_UPSTREAM = Planner.UPSTREAM

BREAKS_GANG = "BreaksGroup"
"""The reason of refusals of pods that others of their group need."""


@runtime_checkable
class Evictor(Protocol, metaclass=Structural):
    """Decides which pods may be evicted at all, for every strategy."""

    name: ClassVar[str]
    args_model: ClassVar[type[PluginArgs]] = NoArgs

    def __init__(self, args: PluginArgs) -> None:
        """Take the arguments, an instance of ``args_model``."""
        return

    def filter(self, pod: PodInfo, context: "StrategyContext") -> Refusal | None:
        """Why the pod is protected, None if it is not; called while strategies search.

        Both answers depend on pod and context alone: until the next move, a pod that passes is not asked
        about again.
        """

    def pre_eviction_filter(self, pod: PodInfo, context: "StrategyContext") -> Refusal | None:
        """The same, called for pods about to be proposed: checks that read the rest of the cluster."""


class PresentFindings(Struct, frozen=True):
    """What evictors have found, for as long as nothing that they read changes: until the next move.

    Attributes:
        placed: Changes of placed pods by then.
        others: Changes of other pods by then.
        evictors: Who was asked.
        measurements: What they could read.
        evictable: Uids of pods that pass ``filter`` as they are: no surge lifted a refusal.
        movable: The same of ``preEvictionFilter``.
    """

    placed: int
    others: int
    evictors: tuple[Evictor, ...]
    measurements: Measurements
    evictable: set[str] = field(default_factory=set)
    movable: set[str] = field(default_factory=set)


class StrategyContext(Struct):
    """What strategies may read in one run.

    Attributes:
        cluster: The placed pods after all accepted moves. Only the planner writes.
        nodes: Names of the nodes under consideration, ascending.
        now: The time of the run, with a time zone.
        evictors: The evictors, in calling order.
        planner: The planner that runs the strategies.
        unplaced: Pods without a place, such as pending and ended ones.
        measurements: Actual usage.
        gangs: By PodGroup (``namespace/name``), the number of members that must still get a node together; 0
            when it has started. Groups that cannot start for another reason than room are missing.
        prospects: Feasible nodes of pods, for strategies that search targets themselves.
        surges: Lifts refusals that apply to evictions only.
        protected: Pods that strategies wanted to move and evictors protect; the planner collects them.
        classes: Node classes of utilization strategies; the planner collects them.
        remarks: Strategies' remarks about the run as a whole, such as why they propose nothing; the planner
            collects them, and the policy's status shows them.
        failures: Plugins of schedulers that failed when strategies asked them; the planner collects them.
        filled: When a strategy that empties nodes by itself has last moved a pod to each node within a day,
            in seconds since the epoch.
        kept: Data that strategies keep during the run, by keys of their own.
        selector: Selects the nodes under consideration, of which those that are not ready are left out.
    """

    cluster: Cluster
    nodes: tuple[str, ...]
    now: datetime
    evictors: tuple[Evictor, ...] = ()
    planner: Planner = Planner.PROVEN
    unplaced: UnplacedPods = field(default_factory=UnplacedPods)
    measurements: Measurements = field(default_factory=Measurements)
    gangs: Mapping[str, int] = field(default_factory=dict)
    prospects: Prospects = field(default_factory=Nowhere)
    surges: SurgePermission = field(default_factory=NoSurges)
    protected: list[Protected] = field(default_factory=list)
    classes: list[NodeClasses] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    failures: list[PluginError] = field(default_factory=list)
    filled: Mapping[str, float] = field(default_factory=dict)
    kept: dict[object, Any] = field(default_factory=dict)
    selector: Selector = EVERYTHING
    _considered: tuple[tuple[str, ...], frozenset[str]] = ((), frozenset())
    _present: PresentFindings | None = None

    @property
    def considered(self) -> frozenset[str]:
        """The nodes under consideration as a set."""
        if self._considered[0] is not self.nodes:
            self._considered = self.nodes, frozenset(self.nodes)
        return self._considered[1]

    @property
    def snapshot(self) -> Snapshot:
        """Columns over all nodes, valid until the next verdict."""
        return Snapshot(self.cluster)

    @property
    def load_book(self) -> LoadBook | None:
        """The load of nodes and pods, if readings are collected; upstream's decisions do not use it."""
        is_kept = not self.is_exact and self.cluster.has_index(LoadBook)
        return self.cluster.index(LoadBook) if is_kept else None

    @property
    def objects(self) -> ClusterObjects:
        """Namespaces, claims, budgets, priority classes; read-only."""
        return self.cluster.objects.read_only

    @property
    def is_exact(self) -> bool:
        """Whether upstream's decisions are to be reproduced exactly."""
        return self.planner is _UPSTREAM

    def node(self, name: str) -> Node:
        """A node under consideration."""
        return self.cluster.nodes[self.cluster.rows[name]]

    def pods(self, node: str) -> list[PodInfo]:
        """The pods placed on the node, including terminating ones, by namespace and name."""
        return sorted((pod for pod in self.placed(node) if not pod.pod.is_terminal), key=by_key)

    def siblings(
        self, namespace: str | None = None, among: Container[PodTemplate] | None = None
    ) -> Iterator[tuple[PodTemplate, list[PodInfo]]]:
        """The placed pods of considered nodes, grouped by template, of one or all namespaces.

        In a fixed order: by the first pod's key, and within a template by node and key. Only templates in
        ``among``, if given.
        """
        considered = self.considered
        found = []
        for template, pods in self.templates_of(namespace):
            if among is not None and template not in among:
                continue
            counted = [
                (node, pod.key, pod)
                for pod in pods.values()
                if (node := self.node_of(pod)) in considered and not pod.pod.is_terminal
            ]
            if counted:
                counted.sort(key=lambda item: item[:2])
                found.append((counted[0][:2], template, [pod for _, _, pod in counted]))
        found.sort(key=lambda item: item[0])
        return ((template, pods) for _, template, pods in found)

    def templates_of(self, namespace: str | None) -> Iterator[tuple[PodTemplate, Mapping[str, PodInfo]]]:
        """Placed pods by uid, grouped by template, in no particular order: for counting only.

        Includes pods of nodes that are not under consideration, and pods that have ended.
        """
        groups = self.cluster.index(PodsByTemplate).groups
        for each in groups if namespace is None else (namespace,):
            for template, pods in groups.get(each, {}).items():
                if pods:
                    yield template, pods

    def templates_with(
        self, namespace: str, rule: NeighbourRule
    ) -> Iterator[tuple[PodTemplate, Mapping[str, PodInfo]]]:
        """The same for a namespace's templates that have such rules."""
        index = self.cluster.index(PodsByTemplate)
        groups = index.groups.get(namespace, {})
        return ((template, groups[template]) for template in index.ruling(namespace, rule))

    def templates_matching(
        self, namespace: str, selector: Selector
    ) -> Iterator[tuple[PodTemplate, Mapping[str, PodInfo]]]:
        """The same for a namespace's templates whose labels a selector matches."""
        index = self.cluster.index(PodsByTemplate)
        groups = index.groups.get(namespace, {})
        return ((template, groups[template]) for template in index.matching(namespace, selector))

    def pods_of(self, namespace: str, template: PodTemplate) -> Mapping[str, PodInfo]:
        """Placed pods of one template by uid, with the same restrictions."""
        return self.cluster.index(PodsByTemplate).groups.get(namespace, {}).get(template, {})

    def owned_by(self, namespace: str, kind: str, name: str) -> Mapping[str, PodInfo]:
        """Placed pods that name this owner, by uid, with the same restrictions."""
        return self.cluster.index(PodsByOwner).groups.get(namespace, {}).get((kind, name), {})

    def owners(self) -> Mapping[str, Iterable[tuple[str, str]]]:
        """Kinds and names of the owners of placed pods, by namespace, with the same restrictions."""
        return self.cluster.index(PodsByOwner).groups

    def node_of(self, pod: PodInfo) -> str:
        """The name of the node on which the pod is placed, "" without one."""
        row = self.cluster.row_of_pod(pod.uid)
        return "" if row is None else self.cluster.nodes[row].name

    def with_nodes(self, pods: Iterable[PodInfo]) -> list[tuple[str, PodInfo]]:
        """Those of the pods that are placed on considered nodes, with the names of these."""
        row_of, nodes, considered = self.cluster.row_of_pod, self.cluster.nodes, self.considered
        return [
            (node, pod)
            for pod in pods
            if (row := row_of(pod.uid)) is not None and (node := nodes[row].metadata.name) in considered
        ]

    def namespaces(self) -> list[str]:
        """Namespaces with placed pods, ascending."""
        groups = self.cluster.index(PodsByTemplate).groups
        return sorted(namespace for namespace, templates in groups.items() if templates)

    def all_pods(self, node: str, only: Callable[[PodInfo], bool] | None = None) -> list[PodInfo]:
        """The pods on the node, including ended ones; all, or those for which ``only`` is true."""
        pods: Iterable[PodInfo] = (*self.placed(node), *self.unplaced.on(node))
        return sorted(pods if only is None else filter(only, pods), key=by_key)

    def placed(self, node: str) -> Iterable[PodInfo]:
        """The pods placed on the node, in no particular order: for counting only."""
        row = self.cluster.rows.get(node)
        return () if row is None else self.cluster.pods_on(row)

    def replicas(self, namespace: str, owner_uid: str) -> int:
        """Pods of a namespace, of any phase and on any node, whose owner it is.

        If ``is_exact``, of all namespaces, and all that name it: descheduler compares only the uid.
        """
        if not self.is_exact:
            counted = self.cluster.index(MemberCounts).of(namespace, owner_uid)
            return self.unplaced.members_of(namespace, owner_uid) + counted
        counted = self.cluster.index(OwnerCounts).of(ANYWHERE, owner_uid)
        return self.unplaced.owned_by(ANYWHERE, owner_uid) + counted

    def ready_replicas(self, namespace: str, owner_uid: str) -> int:
        """The number of an owner's placed pods that are ready and not terminating."""
        return self.cluster.index(ReadyCounts).of(namespace, owner_uid)

    def is_evictable(self, pod: PodInfo, wanted: str = "") -> bool:
        """Whether no evictor protects the pod as such, and no other member of its group needs it.

        A refusal is reported to the user with ``wanted``: why the strategy wants to move the pod, empty if it
        is only counting.
        """
        known = self.present.evictable
        return pod.uid in known or self._passes(pod, wanted, self._filtered(pod), known)

    def is_movable(self, pod: PodInfo, wanted: str = "") -> bool:
        """Whether the evictors' last checks before an eviction pass; the same arguments."""
        known = self.present.movable
        return pod.uid in known or self._passes(pod, wanted, self._filtered_last(pod), known)

    @property
    def present(self) -> PresentFindings:
        """What evictors need not be asked again."""
        known, placed, others = self._present, self.cluster.tick, self.unplaced.changes
        if (
            known is None
            or known.placed != placed
            or known.others != others
            or known.evictors is not self.evictors
            or known.measurements is not self.measurements
        ):
            known = self._present = PresentFindings(placed, others, self.evictors, self.measurements)
        return known

    def _filtered(self, pod: PodInfo) -> Iterator[Refusal]:
        for each in self.evictors:
            refusal = _answer(each, "filter", each.filter, pod, self)
            if refusal is not None:
                yield refusal
        bound = self.bound_to_gang(pod)
        if bound is not None:
            yield bound

    def _filtered_last(self, pod: PodInfo) -> Iterator[Refusal]:
        for each in self.evictors:
            refusal = _answer(each, "preEvictionFilter", each.pre_eviction_filter, pod, self)
            if refusal is not None:
                yield refusal

    def bound_to_gang(self, pod: PodInfo, whole: Container[str] = ()) -> Refusal | None:
        """Why a pod stays because other members of its group need it; None if they do not.

        Args:
            pod: The pod.
            whole: Uids of pods that leave together with it.
        """
        if pod.uid not in self.cluster.index(GangMembers):
            return None
        return bound_to_gang(pod, self._units, whole=whole)

    @property
    def _units(self) -> GangUnits:
        members = self.cluster.index(GangMembers)
        units: GangUnits | None = self.kept.get(GangUnits)
        if units is None:
            units = self.kept[GangUnits] = GangUnits(members, self.cluster.pods.get, self.objects)
        return units

    def groups(self) -> list[GangUnit]:
        """The placed pods that need one another, each group once, by the key of its first member."""
        found = dict[str, GangUnit]()
        for uid in self.cluster.index(GangMembers).gangs:
            unit = self._units.of(self.cluster.pods[uid])
            if unit is not None:
                found.setdefault(min(each.key for each in unit.members.values()), unit)
        return [found[key] for key in sorted(found)]

    def group_of(self, pod: PodInfo) -> GangUnit | None:
        """The placed pods that a placed pod needs, or that need it; None if there are no others."""
        return self._units.of(pod)

    def may_go_whole(self, pods: Sequence[PodInfo], wanted: str = "") -> bool:
        """Whether no evictor protects one of these members of a group, and no other pod needs them."""
        whole = {pod.uid for pod in pods}

        def answers(pod: PodInfo) -> Iterator[Refusal | None]:
            for evictor in self.evictors:
                yield from answers_of(evictor, pod, self)
            yield self.bound_to_gang(pod, whole)

        # Each member that must stay is reported.
        return all([self._passes(pod, wanted, answers(pod)) for pod in pods])  # noqa: C419

    def must_stay(self, pod: PodInfo, wanted: str, refusal: Refusal) -> None:
        """Note that a pod which should move stays, and why: a reason that the strategy itself found."""
        self.protected.append(Protected(pod, wanted, refusal))

    def may_go(self, pod: PodInfo, wanted: str = "") -> bool:
        """Whether no evictor protects the pod, by either check."""
        return self.is_evictable(pod, wanted) and self.is_movable(pod, wanted)

    def _passes(
        self,
        pod: PodInfo,
        wanted: str,
        answers: Iterable[Refusal | None],
        unprotected: set[str] | None = None,
    ) -> bool:
        """Whether nothing in the answers keeps the pod; one that nothing even would is added to the set.

        Without a set the pod leaves with others, and no surge lifts a refusal.
        """
        is_lifted = False
        for refusal in answers:
            if refusal is None:
                continue
            if unprotected is not None and refusal.yields_to_surge:
                refusal = self.surges.lift(pod, refusal)  # noqa: PLW2901 - what is left of it
                is_lifted = True
            if refusal is not None:
                if wanted:
                    self.protected.append(Protected(pod, wanted, refusal))
                return False
        if unprotected is not None and not is_lifted:
            unprotected.add(pod.uid)
        return True


def answers_of(evictor: Evictor, pod: PodInfo, context: StrategyContext) -> Iterator[Refusal | None]:
    """Both of an evictor's answers about a pod.

    Raises:
        PluginError: It raised, or returned something else.
    """
    yield _answer(evictor, "filter", evictor.filter, pod, context)
    yield _answer(evictor, "preEvictionFilter", evictor.pre_eviction_filter, pod, context)


def _answer(
    evictor: Evictor,
    point: str,
    function: Callable[[PodInfo, StrategyContext], Refusal | None],
    pod: PodInfo,
    context: StrategyContext,
) -> Refusal | None:
    answer = judged(evictor.name, point, function, pod, context)
    return None if answer is None else of_kind(answer, Refusal, evictor.name, point)


def bound_to_gang(
    pod: PodInfo, units: GangUnits, leaving: Container[str] = (), whole: Container[str] = ()
) -> Refusal | None:
    """Why a pod stays because other members of its group need it; None if they do not.

    Args:
        pod: The pod.
        units: The groups of its cluster.
        leaving: Uids of pods whose evictions are under way.
        whole: Uids of pods that leave together with it: a group may leave whole.
    """
    unit = units.of(pod)
    if unit is None or all(uid in whole for uid in unit.members):
        return None
    if unit.topology:
        return Refusal(
            BREAKS_GANG,
            f"{unit.gangs[0]} keeps its members in one domain of label {unit.topology}: none moves by itself",
        )
    if unit.spare >= sum(uid == pod.uid or uid in leaving or uid in whole for uid in unit.members):
        return None
    needs = "all of its members" if unit.least is None else counted(unit.least, "running member")
    return Refusal(
        BREAKS_GANG,
        f"{unit.gangs[0]} needs {needs}, and {len(unit.members)} are placed: no more of them may leave",
    )


def considered_nodes(cluster: Cluster, selector: Selector = EVERYTHING) -> tuple[str, ...]:
    """Names of the nodes that strategies consider: those selected and not known to be unready.

    A node without a Ready condition counts as ready, and so does a cordoned one.
    Source: descheduler v0.36, ``pkg/descheduler/node/node.go``.
    """
    return tuple(
        sorted(node.name for node in cluster.nodes if selector.matches(node.labels) and not is_unready(node))
    )


def is_unready(node: Node) -> bool:
    """Whether the node reports that it is not ready."""
    return any(each.type == "Ready" and each.status != "True" for each in node.status.conditions)
