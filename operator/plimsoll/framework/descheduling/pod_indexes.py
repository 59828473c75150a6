"""Indexes pods by owner and by template, and those without a place, for strategies."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Generic, Self, TypeVar

from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.selector_lookup import LabelLookup
from plimsoll.model.selectors import Selector

#: Instead of a namespace: pods of all of them.
ANYWHERE = ""


class OwnerCounts(PodIndex):
    """Placed pods by owner, whatever their phase: a pod index (see ``Cluster.index``).

    By namespace and uid: owners keep to their namespace, but anybody may name one in a pod's metadata.
    """

    def __init__(self, _cluster: object = None) -> None:
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
            for key in ((pod.namespace, owner.uid), (ANYWHERE, owner.uid)):
                count = self.counts.pop(key, 0) - 1
                if count > 0:  # owners come and go
                    self.counts[key] = count

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


KindT = TypeVar("KindT", bound=Hashable)


class PodGroups(PodIndex, Generic[KindT]):
    """Placed pods by namespace and group, by uid: a pod index (see ``Cluster.index``).

    A fork shares the pods of a group with its origin until one of the two changes them.
    """

    def __init__(self, _cluster: object = None) -> None:
        self.groups: dict[str, dict[KindT, dict[str, PodInfo]]] = {}
        self._own: set[tuple[str, KindT]] = set()

    def groups_of(self, pod: PodInfo) -> Iterable[KindT]:
        """The groups that a pod is in."""
        raise NotImplementedError

    def appeared(self, namespace: str, group: KindT) -> None:
        """A group has its first pod."""

    def vanished(self, namespace: str, group: KindT) -> None:
        """A group has lost its last pod."""

    def add(self, pod: PodInfo, row: int) -> None:
        """A pod was placed."""
        for group in self.groups_of(pod):
            self._writable(pod.namespace, group)[pod.uid] = pod

    def remove(self, pod: PodInfo, row: int) -> None:
        """A pod left."""
        for group in self.groups_of(pod):
            pods = self._writable(pod.namespace, group)
            pods.pop(pod.uid, None)  # a pod may name one owner twice
            if not pods:
                del self.groups[pod.namespace][group]
                self._own.discard((pod.namespace, group))
                if not self.groups[pod.namespace]:
                    del self.groups[pod.namespace]
                self.vanished(pod.namespace, group)

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
    """What a template may require of the places of other pods."""

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
    """By template: siblings match the same selectors, so a strategy asks once for each template.

    The templates with placed pods are filed by label and by rule as well: who looks for broken rules need not
    go through all of them.
    """

    def __init__(self, _cluster: object = None) -> None:
        super().__init__()
        self.labelled: dict[str, LabelLookup[PodTemplate]] = {}
        self.ruled: dict[tuple[str, NeighbourRule], dict[PodTemplate, None]] = {}

    def groups_of(self, pod: PodInfo) -> Iterable[PodTemplate]:
        """Its template."""
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
        """A template has its first pod."""
        lookup = self.labelled.get(namespace)
        if lookup is None:
            lookup = self.labelled[namespace] = LabelLookup()
        lookup.add(group.labels, group)
        for rule in _rules_of(group):
            self.ruled.setdefault((namespace, rule), {})[group] = None

    def vanished(self, namespace: str, group: PodTemplate) -> None:
        """A template has lost its last pod."""
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
    """By kind and name of an owner."""

    def groups_of(self, pod: PodInfo) -> Iterable[tuple[str, str]]:
        """Its owners."""
        return ((owner.kind, owner.name) for owner in pod.pod.metadata.owner_references)


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
            key=by_key,
        )

    def on(self, node: str) -> Iterable[PodInfo]:
        """Those that name the node."""
        return self._by_node.get(node, {}).values()

    def owned_by(self, namespace: str, uid: str) -> int:
        """How many of the namespace name this owner."""
        return self._owners[namespace, uid]


def by_key(pod: PodInfo) -> str:
    """The sort key of a pod: namespace and name."""
    return pod.key


def _owners_of(pod: PodInfo) -> list[tuple[str, str]]:
    return [
        (namespace, owner.uid)
        for owner in pod.pod.metadata.owner_references
        for namespace in (pod.namespace, ANYWHERE)
    ]
