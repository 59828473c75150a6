"""Indexes pods by owner and by template, and pods without a place, for strategies."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Generic, Self, TypeVar

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.heavy_objects import fitting
from plimsoll.model.kinds.metadata import OwnerReference
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selector_lookup import LabelLookup
from plimsoll.model.selectors import Selector

#: In place of a namespace: all namespaces.
ANYWHERE = ""


class OwnerCounts(PodIndex):
    """Counts placed pods by each owner that they name, whatever their phase: a pod index.

    For planner Upstream; see ``Cluster.index``.

    Keys are namespace and uid: owners stay in their namespace, but any user may name one in a pod's metadata.
    """

    def __init__(self, _cluster: object = None) -> None:
        self.counts: dict[tuple[str, str], int] = {}

    def of(self, namespace: str, uid: str) -> int:
        """Number of placed pods of the namespace, or ``ANYWHERE``, that name this owner."""
        return self.counts.get((namespace, uid), 0)

    def owners(self, pod: PodInfo) -> Iterable[OwnerReference]:
        """The owners under which a pod is counted."""
        return pod.pod.metadata.owner_references

    def add(self, pod: PodInfo, row: int) -> None:
        """Count a placed pod."""
        for owner in self.owners(pod):
            for key in ((pod.namespace, owner.uid), (ANYWHERE, owner.uid)):
                self.counts[key] = self.counts.get(key, 0) + 1

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Count placed pods."""
        owners, found = self.owners, dict[tuple[str, str], int]()
        for pod, _ in placed:
            for owner in owners(pod):
                key = pod.namespace, owner.uid
                found[key] = found.get(key, 0) + 1
        for (namespace, uid), count in found.items():
            for key in ((namespace, uid), (ANYWHERE, uid)):
                self.counts[key] = self.counts.get(key, 0) + count

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod."""
        for owner in self.owners(pod):
            for key in ((pod.namespace, owner.uid), (ANYWHERE, owner.uid)):
                count = self.counts.pop(key, 0) - 1
                if count > 0:  # drop owners without pods
                    self.counts[key] = count
        self.counts = fitting(self.counts)

    def renew(self, before: PodInfo, pod: PodInfo, row: int) -> None:
        """Count the pod by what it is now."""
        self.remove(before, row)
        self.add(pod, row)

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.counts = dict(self.counts)
        return twin


class MemberCounts(OwnerCounts):
    """Counts placed pods by the owners whose pods they are (``ObjectMeta.owners``): a pod index."""

    def owners(self, pod: PodInfo) -> Iterable[OwnerReference]:
        """The controller; without one, all owners."""
        return pod.pod.metadata.owners


class ReadyCounts(MemberCounts):
    """Counts those that are ready and not terminating: a pod index (see ``Cluster.index``)."""

    def add(self, pod: PodInfo, row: int) -> None:
        """Count a pod that was placed, or changed."""
        if is_serving(pod):
            super().add(pod, row)

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Count placed pods."""
        super().add_all(each for each in placed if is_serving(each[0]))

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod, also before it changes."""
        if is_serving(pod):
            super().remove(pod, row)


def is_serving(pod: PodInfo) -> bool:
    """Whether the pod is ready and not terminating."""
    return pod.pod.is_ready and not pod.is_terminating


KindT = TypeVar("KindT", bound=Hashable)


class PodGroups(PodIndex, Generic[KindT]):
    """Groups placed pods by namespace and group, by uid: a pod index (see ``Cluster.index``).

    A fork shares the pods of a group with its origin until one of the two changes them.
    """

    def __init__(self, _cluster: object = None) -> None:
        self.groups: dict[str, dict[KindT, dict[str, PodInfo]]] = {}
        self._own: set[tuple[str, KindT]] = set()

    def groups_of(self, pod: PodInfo) -> Iterable[KindT]:
        """The groups that a pod is in."""
        raise NotImplementedError

    def appeared(self, namespace: str, group: KindT) -> None:
        """Called when a group has its first pod."""

    def vanished(self, namespace: str, group: KindT) -> None:
        """Called when a group has lost its last pod."""

    def add(self, pod: PodInfo, row: int) -> None:
        """Add a placed pod."""
        for group in self.groups_of(pod):
            self._writable(pod.namespace, group)[pod.uid] = pod

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Add placed pods."""
        found: dict[tuple[str, KindT], dict[str, PodInfo]] = {}
        for pod, _ in placed:
            for group in self.groups_of(pod):
                key = pod.namespace, group
                pods = found.get(key)
                if pods is None:
                    pods = found[key] = self._writable(*key)
                pods[pod.uid] = pod

    def remove(self, pod: PodInfo, row: int) -> None:
        """Remove a pod."""
        for group in self.groups_of(pod):
            pods = self._writable(pod.namespace, group)
            pods.pop(pod.uid, None)  # a pod may name one owner twice
            if not pods:
                del self.groups[pod.namespace][group]
                self._own.discard((pod.namespace, group))
                if not self.groups[pod.namespace]:
                    del self.groups[pod.namespace]
                self.vanished(pod.namespace, group)

    def renew(self, before: PodInfo, pod: PodInfo, row: int) -> None:
        """Keep the pod's new state, in the groups that it is in now."""
        if tuple(self.groups_of(before)) != tuple(self.groups_of(pod)):
            self.remove(before, row)
        self.add(pod, row)

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.groups = {namespace: dict(groups) for namespace, groups in self.groups.items()}
        self._own.clear()  # from now on both share them
        return twin

    def _writable(self, namespace: str, group: KindT) -> dict[str, PodInfo]:
        groups = self.groups.setdefault(namespace, {})
        if (namespace, group) not in self._own:
            pods = groups.get(group)
            if pods is None:
                self.appeared(namespace, group)
            groups[group] = dict(pods or {})
            self._own.add((namespace, group))
        return groups[group]


class NeighbourRule(Enum):
    """A placement rule about other pods that a template may have."""

    SPREAD = "topologySpreadConstraints"
    ANTI_AFFINITY = "required podAntiAffinity"


def _rules_of(template: PodTemplate) -> Iterator[NeighbourRule]:
    spec = template.sample.spec
    if spec.topology_spread_constraints:
        yield NeighbourRule.SPREAD
    if spec.affinity is not None and spec.required_anti_affinity:
        yield NeighbourRule.ANTI_AFFINITY


_NO_TEMPLATES: Mapping[PodTemplate, None] = {}


class PodsByTemplate(PodGroups[PodTemplate]):
    """Groups pods by template: siblings match the same selectors, so a strategy evaluates each template once.

    Templates with placed pods are also indexed by label and by rule, so that searches for violated rules need
    not read all of them.
    """

    def __init__(self, _cluster: object = None) -> None:
        super().__init__()
        self.labelled: dict[str, LabelLookup[PodTemplate]] = {}
        self.ruled: dict[tuple[str, NeighbourRule], dict[PodTemplate, None]] = {}

    def groups_of(self, pod: PodInfo) -> Iterable[PodTemplate]:
        """The pod's template."""
        return (pod.template,)

    def ruling(self, namespace: str, rule: NeighbourRule) -> Iterable[PodTemplate]:
        """The namespace's templates that have such rules."""
        return self.ruled.get((namespace, rule), _NO_TEMPLATES)

    def matching(self, namespace: str, selector: Selector) -> Iterator[PodTemplate]:
        """The namespace's templates whose labels the selector matches."""
        lookup = self.labelled.get(namespace)
        some = () if lookup is None else lookup.candidates(selector)
        return (template for template in some if selector.matches(template.labels))

    def appeared(self, namespace: str, group: PodTemplate) -> None:
        """Index a template that has its first pod."""
        lookup = self.labelled.get(namespace)
        if lookup is None:
            lookup = self.labelled[namespace] = LabelLookup()
        lookup.add(group.labels, group)
        for rule in _rules_of(group):
            self.ruled.setdefault((namespace, rule), {})[group] = None

    def vanished(self, namespace: str, group: PodTemplate) -> None:
        """Remove a template that has lost its last pod."""
        self.labelled[namespace].discard(group.labels, group)
        if namespace not in self.groups:
            del self.labelled[namespace]
        for rule in _rules_of(group):
            ruling = self.ruled[namespace, rule]
            del ruling[group]
            if not ruling:
                del self.ruled[namespace, rule]

    def fork(self) -> Self:
        """An independent copy."""
        twin = super().fork()
        twin.labelled = {namespace: lookup.copy() for namespace, lookup in self.labelled.items()}
        twin.ruled = {key: dict(templates) for key, templates in self.ruled.items()}
        return twin


class PodsByOwner(PodGroups[tuple[str, str]]):
    """Groups pods by kind and name of an owner."""

    def groups_of(self, pod: PodInfo) -> Iterable[tuple[str, str]]:
        """The pod's owners."""
        return [(owner.kind, owner.name) for owner in pod.pod.metadata.owner_references]


class UnplacedPods:
    """Pods without a place: pending pods, and ended pods (with the node they ran on).

    Attributes:
        changes: The number of changes so far.
    """

    def __init__(self, pods: Iterable[PodInfo] = ()) -> None:
        self.changes = 0
        self._pods: dict[str, PodInfo] = {}
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._owners: Counter[tuple[str, str]] = Counter()
        self._members: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            self.set(pod)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[PodInfo]:
        return iter(self._pods.values())

    def set(self, pod: PodInfo) -> None:
        """Add a pod or replace its object."""
        self.discard(pod.uid)
        self.changes += 1
        self._pods[pod.uid] = pod
        self._by_node.setdefault(pod.pod.node_name, {})[pod.uid] = pod
        self._owners.update(_keys(pod, pod.pod.metadata.owner_references))
        self._members.update(_keys(pod, pod.pod.metadata.owners))

    def discard(self, uid: str) -> None:
        """Remove a pod, if it is present."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self.changes += 1
            del self._by_node[pod.pod.node_name][uid]
            self._owners.subtract(_keys(pod, pod.pod.metadata.owner_references))
            self._members.subtract(_keys(pod, pod.pod.metadata.owners))

    def pending(self) -> list[PodInfo]:
        """Pods that wait for a node and may get one, by namespace and name."""
        waiting = self._by_node.get("", {}).values()
        return sorted(
            (
                pod
                for pod in waiting
                if not pod.pod.is_terminal and not pod.is_terminating and not pod.pod.spec.scheduling_gates
            ),
            key=by_key,
        )

    def on(self, node: str) -> Iterable[PodInfo]:
        """Pods that name the node."""
        return self._by_node.get(node, {}).values()

    def owned_by(self, namespace: str, uid: str) -> int:
        """The number of pods of the namespace that name this owner."""
        return self._owners.get((namespace, uid), 0)

    def members_of(self, namespace: str, uid: str) -> int:
        """The number of pods of the namespace whose owner it is (``ObjectMeta.owners``)."""
        return self._members.get((namespace, uid), 0)


def by_key(pod: PodInfo) -> str:
    """The sort key of a pod: namespace and name."""
    return pod.key


def _keys(pod: PodInfo, owners: Iterable[OwnerReference]) -> list[tuple[str, str]]:
    return [(namespace, owner.uid) for owner in owners for namespace in (pod.namespace, ANYWHERE)]
