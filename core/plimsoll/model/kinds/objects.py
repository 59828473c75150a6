"""Keeps objects other than pods and nodes that decisions read, by kind; caches values derived from them."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.metadata import OwnerReference
from plimsoll.model.kinds.owned_group import OWNERS
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import CorePodGroup, PodGroup
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plimsoll.model.kinds.watched_object import WatchedObjects, WatchedT
from plimsoll.model.kinds.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

T = TypeVar("T")


class Ledger(Protocol):
    """Objects in another form, with values derived from them."""

    def __init__(self) -> None:
        """Create it without any object."""

    def copied(self) -> Self:
        """An independent copy, as lazily as possible."""


class Weighty(Hashable, Protocol):
    """A pod template, as far as it matters here."""

    @property
    def size(self) -> int:
        """Bytes of its deciding fields."""

    @property
    def signature(self) -> bytes:
        """Equal for equal templates."""


LedgerT = TypeVar("LedgerT", bound=Ledger)

#: Maximum number of derived values; all are dropped when there are more.
LARGEST_SHELF = 16_384

#: Bytes of the deciding fields of a template whose values are kept for a while when its pods have gone.
SMALL = 2_048


#: The shelf of ClusterObjects for each kind.
SHELVES: Mapping[type, str] = {
    Namespace: "namespaces",
    Service: "services",
    ReplicationController: "replication_controllers",
    ReplicaSet: "replica_sets",
    StatefulSet: "stateful_sets",
    PodDisruptionBudget: "budgets",
    PodGroup: "pod_groups",
    CorePodGroup: "pod_groups",
    **dict.fromkeys(OWNERS, "pod_groups"),
    CompositePodGroup: "composites",
    RebalancingRule: "rules",
    PriorityClass: "priority_classes",
    PersistentVolume: "volumes",
    PersistentVolumeClaim: "claims",
    StorageClass: "storage_classes",
    CSINode: "csi_nodes",
    CSIDriver: "csi_drivers",
    CSIStorageCapacity: "csi_capacities",
    VolumeAttachment: "attachments",
}


@dataclass(slots=True)
class ClusterObjects:
    """Objects by key: ``name``, or ``namespace/name`` for namespaced kinds; groups by ``group_key``.

    ``version`` increases with each change, except for budgets, rules, pod groups and autoscalers, which are
    read only for evictions: they have ``budget_version``.
    ``derived`` keeps values computed from the objects until ``version`` increases. ``read_only`` has the same
    objects for plugins: maps that cannot be changed, and no count of versions to set.
    """

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    replication_controllers: dict[str, ReplicationController] = field(default_factory=dict)
    replica_sets: dict[str, ReplicaSet] = field(default_factory=dict)
    stateful_sets: dict[str, StatefulSet] = field(default_factory=dict)
    budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    pod_groups: dict[str, PodGroup] = field(default_factory=dict)
    composites: dict[str, CompositePodGroup] = field(default_factory=dict)
    rules: dict[str, RebalancingRule] = field(default_factory=dict)
    priority_classes: dict[str, PriorityClass] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)
    csi_drivers: dict[str, CSIDriver] = field(default_factory=dict)
    csi_capacities: dict[str, CSIStorageCapacity] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    version: int = 0
    budget_version: int = 0
    _derived: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    _ledgers: dict[type[Any], Any] = field(default_factory=dict, repr=False, compare=False)
    _derived_version: int = field(default=0, repr=False, compare=False)
    _of_large: WeakKeyDictionary[Weighty, tuple[int, dict[Hashable, Any]]] = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )
    read_only: "ClusterObjects" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the view for plugins once: every attempt reads it several times."""
        self.read_only = ReadOnlyObjects(self)

    def above(self, pod: Pod) -> OwnerReference | None:
        """The controller of the pod's ReplicaSet; None while it is unknown."""
        found = self.controller_of(pod)
        return found.metadata.controller if isinstance(found, ReplicaSet) else None

    def controller_of(self, pod: Pod) -> ReplicaSet | StatefulSet | ReplicationController | None:
        """The pod's controller; None while it is unknown, and if it is of another kind."""
        metadata = pod.metadata
        owner = metadata.controller
        if owner is None:
            return None
        key = f"{metadata.namespace}/{owner.name}"
        found: ReplicaSet | StatefulSet | ReplicationController | None = None
        match owner.kind:
            case "ReplicaSet":
                found = self.replica_sets.get(key)
            case "StatefulSet":
                found = self.stateful_sets.get(key)
            case "ReplicationController":
                found = self.replication_controllers.get(key)
        return found if found is not None and found.metadata.uid == owner.uid else None

    def changed(self) -> None:
        """Increase the version, and drop derived values: they may refer to what has gone."""
        self.version += 1
        self._derived, self._derived_version = {}, self.version

    def derived(self, key: Hashable, build: Callable[[], T]) -> T:
        """The value computed from these objects under ``key``, computed again after any change of them."""
        kept = self._derived
        if self._derived_version != self.version or len(kept) >= LARGEST_SHELF:
            kept = self._derived = {}
            self._derived_version = self.version
        found = kept.get(key)
        if found is None:
            found = kept[key] = build()
        value: T = found
        return value

    def derived_of(self, template: Weighty, key: Hashable, build: Callable[[], T]) -> T:
        """The same for one pod template; the value for a large one ends with the template."""
        if template.size <= SMALL:
            return self.derived((key, template.signature), build)
        known = self._of_large.get(template)
        if known is None or known[0] != self.version:
            known = self._of_large[template] = self.version, {}
        if key not in known[1]:
            known[1][key] = build()
        value: T = known[1][key]
        return value

    def of(self, kind: type[WatchedT]) -> Mapping[str, WatchedT]:
        """The objects of a kind that a plugin declares (``Declares.objects``), by the same keys.

        Raises:
            LookupError: They have not been listed; says what is needed for that.
        """
        return self.ledger(WatchedObjects).of(kind)

    def ledger(self, kind: type[LedgerT]) -> LedgerT:
        """The ledger of that class, created at its first use; forked with the objects."""
        found = self._ledgers.get(kind)
        if found is None:
            found = self._ledgers[kind] = kind()
        ledger: LedgerT = found
        return ledger

    def known_ledger(self, kind: type[LedgerT]) -> LedgerT | None:
        """The same; None before its first use."""
        return self._ledgers.get(kind)

    def fork(self) -> "ClusterObjects":
        """An independent shelf of the same objects."""
        copies: dict[str, Any] = {name: dict(getattr(self, name)) for name in SHELVES.values()}
        return ClusterObjects(
            **copies,
            version=self.version,
            budget_version=self.budget_version,
            _derived=dict(self._derived),
            _ledgers={kind: each.copied() for kind, each in self._ledgers.items()},
            _derived_version=self._derived_version,
        )


class ReadOnlyObjects(ClusterObjects):
    """What plugins see of the objects of a cluster: always as they are now."""

    __slots__ = ("_source",)
    _source: ClusterObjects

    def __init__(self, source: ClusterObjects) -> None:
        for name in SHELVES.values():
            object.__setattr__(self, name, MappingProxyType(getattr(source, name)))
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_ledgers", source._ledgers)  # noqa: SLF001 - our own
        object.__setattr__(self, "read_only", self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"the objects of the cluster are read-only: {name} cannot be set")

    @property
    def version(self) -> int:  # type: ignore[override]  # a count that only the mirror increases
        """Increases with each change."""
        return self._source.version

    @property
    def budget_version(self) -> int:  # type: ignore[override]  # likewise
        """Increases with each change of a budget, rule or autoscaler, or of a pod group's wanted state."""
        return self._source.budget_version

    def derived(self, key: Hashable, build: Callable[[], T]) -> T:
        """As there."""
        return self._source.derived(key, build)

    def derived_of(self, template: Weighty, key: Hashable, build: Callable[[], T]) -> T:
        """As there."""
        if template.size <= SMALL:
            return self._source.derived((key, template.signature), build)
        return self._source.derived_of(template, key, build)

    def fork(self) -> ClusterObjects:
        """As there."""
        return self._source.fork()
