"""The cluster as strategies and evictors see it: live, read-only, in an order that never varies.

Nodes are walked by name and the pods of a node by namespace and name: upstream walks both in the random
order of its maps, so this is one of its legal outcomes, always the same one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from plimsoll.framework.descheduling.prospects import Nowhere, Prospects
from plimsoll.framework.descheduling.strategy import Evictor, Refusal
from plimsoll.framework.descheduling.surging import NoSurges, SurgePermission
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selectors import EVERYTHING, Selector


class Planner(StrEnum):
    """Who drives the strategies."""

    UPSTREAM = "Upstream"  #: descheduler's decisions, exactly
    PROVEN = "Proven"  #: only moves that the scheduler's own code proves
    OPTIMAL = "Optimal"  #: the cheapest such moves to the best placement


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of the instant vector that a Prometheus query returned."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """Actual usage, as far as somebody measured it; None where there is no such source.

    Attributes:
        nodes: From the metrics API: amounts by node and resource, in billionths.
        pods: Likewise by pod key (``namespace/name``), the sum of its containers.
        samples: What the strategy's Prometheus query returned.
        problem: Why something of it is missing, or "".
    """

    nodes: Mapping[str, Mapping[str, int]] | None = None
    pods: Mapping[str, Mapping[str, int]] | None = None
    samples: Sequence[Sample] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeClasses:
    """How a utilisation strategy sorted the nodes, by name."""

    underutilized: tuple[str, ...]
    overutilized: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Protected:
    """A pod that a strategy wanted to move and an evictor protects."""

    pod: PodInfo
    wanted: str
    refusal: Refusal


#: Instead of a namespace: pods of all of them.
ANYWHERE = ""


class OwnerCounts:
    """Placed pods by owner, whatever their phase: a pod index (see ``Cluster.index``).

    By namespace and uid: owners keep to their namespace, but anybody may name one in a pod's metadata.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.counts: dict[tuple[str, str], int] = {}

    def of(self, namespace: str, uid: str) -> int:
        """How many placed pods of the namespace, or ``ANYWHERE``, name this owner."""
        return self.counts.get((namespace, uid), 0)

    def add(self, pod: PodInfo, row: int) -> None:
        """A pod was placed."""
        for owner in pod.pod.metadata.owner_references:
            for key in ((pod.namespace, owner.uid), (ANYWHERE, owner.uid)):
                self.counts[key] = self.counts.get(key, 0) + 1

    def remove(self, pod: PodInfo, row: int) -> None:
        """A pod left."""
        for owner in pod.pod.metadata.owner_references:
            for namespace in (pod.namespace, ANYWHERE):
                self.counts[namespace, owner.uid] -= 1

    def move_row(self, source: int, target: int) -> None:
        """Rows do not matter."""

    def grow(self, capacity: int) -> None:
        """Rows do not matter."""

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.counts = dict(self.counts)
        return twin


class ReadyCounts(OwnerCounts):
    """Placed pods that are ready and stay, by owner: a pod index (see ``Cluster.index``)."""

    def add(self, pod: PodInfo, row: int) -> None:
        """A pod was placed, or changed."""
        if is_serving(pod):
            super().add(pod, row)

    def remove(self, pod: PodInfo, row: int) -> None:
        """A pod left, or will change."""
        if is_serving(pod):
            super().remove(pod, row)


def is_serving(pod: PodInfo) -> bool:
    """Whether the pod is ready and not on its way out."""
    return pod.pod.is_ready and not pod.is_terminating


class PodsByTemplate:
    """Placed pods by namespace and template, by uid: a pod index (see ``Cluster.index``).

    Siblings match the same selectors, so a strategy asks a question once for each template. A fork shares the
    pods of a template with its origin until one of the two changes them.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.groups: dict[str, dict[PodTemplate, dict[str, PodInfo]]] = {}
        self._own: set[tuple[str, PodTemplate]] = set()

    def add(self, pod: PodInfo, row: int) -> None:
        """A pod was placed."""
        self._of(pod)[pod.uid] = pod

    def remove(self, pod: PodInfo, row: int) -> None:
        """A pod left."""
        pods = self._of(pod)
        del pods[pod.uid]
        if not pods:
            del self.groups[pod.namespace][pod.template]
            self._own.discard((pod.namespace, pod.template))

    def move_row(self, source: int, target: int) -> None:
        """Rows do not matter."""

    def grow(self, capacity: int) -> None:
        """Rows do not matter."""

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.groups = {namespace: dict(templates) for namespace, templates in self.groups.items()}
        self._own.clear()  # from now on both share them
        return twin

    def _of(self, pod: PodInfo) -> dict[str, PodInfo]:
        """The pods of the template, to be changed."""
        templates, key = self.groups.setdefault(pod.namespace, {}), (pod.namespace, pod.template)
        if key not in self._own:
            templates[pod.template] = dict(templates.get(pod.template, {}))
            self._own.add(key)
        return templates[pod.template]


class PodsByOwner:
    """Placed pods by owner (namespace, kind, name), by uid: a pod index, shared with forks likewise."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.groups: dict[tuple[str, str, str], dict[str, PodInfo]] = {}
        self._own: set[tuple[str, str, str]] = set()

    def add(self, pod: PodInfo, row: int) -> None:
        """A pod was placed."""
        for owner in pod.pod.metadata.owner_references:
            self._of((pod.namespace, owner.kind, owner.name))[pod.uid] = pod

    def remove(self, pod: PodInfo, row: int) -> None:
        """A pod left."""
        for owner in pod.pod.metadata.owner_references:
            key = (pod.namespace, owner.kind, owner.name)
            pods = self._of(key)
            pods.pop(pod.uid, None)
            if not pods:
                del self.groups[key]
                self._own.discard(key)

    def move_row(self, source: int, target: int) -> None:
        """Rows do not matter."""

    def grow(self, capacity: int) -> None:
        """Rows do not matter."""

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.groups = dict(self.groups)
        self._own.clear()
        return twin

    def _of(self, key: tuple[str, str, str]) -> dict[str, PodInfo]:
        """The pods of the owner, to be changed."""
        if key not in self._own:
            self.groups[key] = dict(self.groups.get(key, {}))
            self._own.add(key)
        return self.groups[key]


class UnplacedPods:
    """Pods that hold no place: pending ones, and those that ended (with the node they ran on)."""

    def __init__(self, pods: Iterable[PodInfo] = ()) -> None:
        self._pods: dict[str, PodInfo] = {}
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._owners: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            self.set(pod)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[PodInfo]:
        return iter(self._pods.values())

    def set(self, pod: PodInfo) -> None:
        """Add a pod or replace its object."""
        self.discard(pod.uid)
        self._pods[pod.uid] = pod
        self._by_node.setdefault(pod.pod.node_name, {})[pod.uid] = pod
        self._owners.update(_owners_of(pod))

    def discard(self, uid: str) -> None:
        """Forget a pod, if it is here."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            del self._by_node[pod.pod.node_name][uid]
            self._owners.subtract(_owners_of(pod))

    def pending(self) -> list[PodInfo]:
        """Those that wait for a node and may be given one, by namespace and name."""
        waiting = self._by_node.get("", {}).values()
        return sorted(
            (
                pod
                for pod in waiting
                if not pod.pod.is_terminal and not pod.is_terminating and not pod.pod.spec.scheduling_gates
            ),
            key=_by_key,
        )

    def on(self, node: str) -> Iterable[PodInfo]:
        """Those that name the node."""
        return self._by_node.get(node, {}).values()

    def owned_by(self, namespace: str, uid: str) -> int:
        """How many of the namespace name this owner."""
        return self._owners[namespace, uid]


@dataclass(slots=True)
class StrategyContext:
    """What one run may look at.

    Attributes:
        cluster: The placed pods, as they are after all moves accepted so far. Only the planner writes.
        nodes: Names of the nodes under consideration, ascending.
        now: The time of the run, with a time zone.
        evictors: Who protects pods, in the order asked.
        planner: Who drives.
        unplaced: Pods that hold no place, as pending and ended ones.
        measurements: Actual usage.
        gangs: How many members of a PodGroup (``namespace/name``) must yet get a node together; 0 when it has
            started. One that cannot be started yet, whatever room there is, is missing.
        prospects: Where pods could go, for strategies that look for places themselves.
        surges: Who lifts refusals that hold for evictions only.
        protected: Refusals by evictors of pods that a strategy wanted; the planner collects them.
        classes: What utilisation strategies found; the planner collects them.
        remarks: What a strategy has to say of the run as a whole, such as why it proposes nothing; the
            planner collects them, and the policy's status shows them.
        kept: What strategies keep for the length of the run, by keys of their own.
    """

    cluster: Cluster
    nodes: tuple[str, ...]
    now: datetime
    evictors: tuple[Evictor, ...] = ()
    planner: Planner = Planner.PROVEN
    unplaced: UnplacedPods = field(default_factory=UnplacedPods)
    measurements: Measurements = Measurements()
    gangs: Mapping[str, int] = field(default_factory=dict)
    prospects: Prospects = field(default_factory=Nowhere)
    surges: SurgePermission = field(default_factory=NoSurges)
    protected: list[Protected] = field(default_factory=list)
    classes: list[NodeClasses] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    kept: dict[object, Any] = field(default_factory=dict)
    _considered: tuple[tuple[str, ...], frozenset[str]] = ((), frozenset())

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
    def objects(self) -> ClusterObjects:
        """Namespaces, claims, budgets, priority classes."""
        return self.cluster.objects

    @property
    def is_exact(self) -> bool:
        """Whether upstream's decisions are to be reproduced, oddities included."""
        return self.planner is Planner.UPSTREAM

    def node(self, name: str) -> Node:
        """A node under consideration."""
        return self.cluster.nodes[self.cluster.rows[name]]

    def pods(self, node: str) -> list[PodInfo]:
        """The pods that hold a place on the node, terminating ones included, by namespace and name."""
        return sorted((pod for pod in self.placed(node) if not pod.pod.is_terminal), key=_by_key)

    def siblings(self, namespace: str | None = None) -> Iterator[tuple[PodTemplate, list[PodInfo]]]:
        """The pods of nodes under consideration that hold a place, template by template.

        In a fixed order: by the first pod's key, and within a template by node and key.

        Args:
            namespace: Only pods of this one; None means all.
        """
        groups = self.cluster.index(PodsByTemplate).groups
        chosen = groups if namespace is None else [namespace]
        considered = self.considered
        found = []
        for each in chosen:
            for template, pods in groups.get(each, {}).items():
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
        """Placed pods by uid, template by template, in no particular order: for taking stock only.

        Pods of nodes that are not under consideration, and pods that ended, are among them.

        Args:
            namespace: Only pods of this one; None means all.
        """
        groups = self.cluster.index(PodsByTemplate).groups
        for each in groups if namespace is None else (namespace,):
            for template, pods in groups.get(each, {}).items():
                if pods:
                    yield template, pods

    def pods_of(self, namespace: str, template: PodTemplate) -> Mapping[str, PodInfo]:
        """Placed pods of one template by uid; likewise."""
        return self.cluster.index(PodsByTemplate).groups.get(namespace, {}).get(template, {})

    def owned_by(self, namespace: str, kind: str, name: str) -> Mapping[str, PodInfo]:
        """Placed pods that name this owner, by uid; likewise."""
        return self.cluster.index(PodsByOwner).groups.get((namespace, kind, name), {})

    def node_of(self, pod: PodInfo) -> str:
        """The name of the node that the pod holds a place on, "" when it holds none."""
        row = self.cluster.row_of_pod(pod.uid)
        return "" if row is None else self.cluster.nodes[row].name

    def namespaces(self) -> list[str]:
        """Namespaces with placed pods, ascending."""
        groups = self.cluster.index(PodsByTemplate).groups
        return sorted(namespace for namespace, templates in groups.items() if templates)

    def all_pods(self, node: str) -> list[PodInfo]:
        """The same and those that have ended there."""
        return sorted([*self.placed(node), *self.unplaced.on(node)], key=_by_key)

    def placed(self, node: str) -> Iterable[PodInfo]:
        """The pods placed on the node, in no particular order: for taking stock only."""
        row = self.cluster.rows.get(node)
        return () if row is None else self.cluster.pods_on(row)

    def replicas(self, namespace: str, owner_uid: str) -> int:
        """Pods of a namespace, of any phase and on any node, that name this owner.

        Exactly: of all namespaces; descheduler goes by the uid alone.
        """
        if self.is_exact:
            namespace = ANYWHERE
        counted = self.cluster.index(OwnerCounts).of(namespace, owner_uid)
        return self.unplaced.owned_by(namespace, owner_uid) + counted

    def ready_replicas(self, namespace: str, owner_uid: str) -> int:
        """How many placed pods of an owner are ready and stay."""
        return self.cluster.index(ReadyCounts).of(namespace, owner_uid)

    def is_evictable(self, pod: PodInfo, wanted: str = "") -> bool:
        """Whether no evictor protects the pod as such.

        Args:
            pod: The pod.
            wanted: Why the strategy wants it moved; a refusal is then reported to the user. Empty when
                the strategy only takes stock.
        """
        return self._passes(pod, wanted, (evictor.filter(pod, self) for evictor in self.evictors))

    def is_movable(self, pod: PodInfo, wanted: str = "") -> bool:
        """Whether the evictors' last checks before an eviction pass; arguments as above."""
        return self._passes(
            pod, wanted, (evictor.pre_eviction_filter(pod, self) for evictor in self.evictors)
        )

    def _passes(self, pod: PodInfo, wanted: str, answers: Iterable[Refusal | None]) -> bool:
        for refusal in answers:
            if refusal is not None and refusal.yields_to_surge:
                refusal = self.surges.lift(pod, refusal)  # noqa: PLW2901 - what is left of it
            if refusal is not None:
                if wanted:
                    self.protected.append(Protected(pod, wanted, refusal))
                return False
        return True


def considered_nodes(cluster: Cluster, selector: Selector = EVERYTHING) -> tuple[str, ...]:
    """Names of the nodes that strategies look at: those selected and not known to be unready.

    A node without a Ready condition counts as ready, and so does a cordoned one.
    Source: descheduler v0.36, ``pkg/descheduler/node/node.go``.
    """
    return tuple(
        sorted(node.name for node in cluster.nodes if selector.matches(node.labels) and not is_unready(node))
    )


def is_unready(node: Node) -> bool:
    """Whether the node says that it is not ready."""
    return any(each.type == "Ready" and each.status != "True" for each in node.status.conditions)


def _by_key(pod: PodInfo) -> str:
    return pod.key


def _owners_of(pod: PodInfo) -> list[tuple[str, str]]:
    return [
        (namespace, owner.uid)
        for owner in pod.pod.metadata.owner_references
        for namespace in (pod.namespace, ANYWHERE)
    ]
