"""Cluster events and queueing hints, declared by the plugins that reject pods.

A pod that was rejected sleeps until something happens that may change the answer of one of the plugins that
rejected it. A plugin says what that is, and may look closer at each such change with a *hint*::

    class SameRack(FilterPlugin, EnqueueExtensions):
        def events_to_register(self):
            changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
            return (EventWithHint(EventResource.NODE, changes, self._racked),)

        def _racked(self, pod, change):
            return QueueingHint.QUEUE if "rack" in change.new.labels else QueueingHint.SKIP

Three rules keep pods from waiting forever: pods rejected by a plugin without declarations are requeued by
every event, a hint that raises counts as QUEUE, and after five minutes a pod is retried anyway.

Source: kube-scheduler v1.36, ``framework/interface.go`` (EnqueueExtensions), ``framework/types.go``
(ClusterEvent); KEP 4247.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntFlag, StrEnum, auto
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo

T = TypeVar("T")


class EventResource(StrEnum):
    """What an event is about. Kinds that are not listed go by their own name, such as ``Namespace``."""

    ANY = "*"
    POD = "Pod"  #: in a registration: both of the next two
    ASSIGNED_POD = "AssignedPod"  #: a pod with a node; or one that gave up a node it was promised
    UNSCHEDULABLE_POD = "UnschedulablePod"  #: a pod without a node; updates concern only the pod itself
    NODE = "Node"
    NODE_LOAD = "NodeLoad"  #: what nodes use, as measured: it has fallen; ``new`` is a LoadFall
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"


class ActionType(IntFlag):
    """What happened: one bit an event; in a registration any union of them."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()  #: also: no longer cordoned
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE_POD_OTHER = auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_POD_OTHER
    )  #: any update; objects that are neither pods nor nodes know no finer one
    ALL = ADD | DELETE | UPDATE

    @property
    def label(self) -> str:
        """The bits as metrics and tables name them: ``Add``, ``UpdateNodeLabel``, ``Add/Update``."""
        return _label(self._value_)


@cache
def _label(value: int) -> str:
    """Found once for each value: an event that helps no pod is named as well."""
    if value == ActionType.ALL.value:
        return "All"
    some = value & ~ActionType.UPDATE.value
    every_update = value - some == ActionType.UPDATE.value
    bits = [bit for bit in ActionType if bit.value & (some if every_update else value)]
    return "/".join([*map(_word, bits), *(["Update"] if every_update else [])])


def _word(bit: ActionType) -> str:
    """One bit in camel case."""
    if bit is ActionType.UPDATE_POD_OTHER:
        return "Update"
    return "".join(word.capitalize() for word in str(bit.name).split("_"))


class QueueingHint(Enum):
    """What a hint says of one pod and one change."""

    SKIP = "QueueSkip"  #: it cannot help the pod
    QUEUE = "Queue"  #: the pod may fit now

    @classmethod
    def of(cls, helps: bool) -> "QueueingHint":
        """QUEUE if it may help."""
        return cls.QUEUE if helps else cls.SKIP


@dataclass(frozen=True, slots=True, eq=False)
class ClusterEvent:
    """One event of the cluster, after it was applied.

    Attributes:
        resource: What it is about; a kind that EventResource does not list by its own name.
        action: One bit, or UPDATE.
        old: The state before, None of an Add. A PodInfo of pods, else the object.
        new: The state after, None of a Delete.
        objects: Everything that is neither pod nor node, as it is now.
    """

    resource: str
    action: ActionType
    old: Any = None
    new: Any = None
    objects: ClusterObjects = field(default_factory=ClusterObjects, repr=False)
    _memo: dict[Hashable, object] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """The event in one word, as upstream's metrics have it: ``AssignedPodDelete``."""
        return f"{self.resource}{self.action.label}"

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        """What follows from the change alone, built on first use: many pods are asked about one change."""
        if key not in self._memo:
            self._memo[key] = build()
        return cast("T", self._memo[key])


Hint: TypeAlias = Callable[[PodInfo, ClusterEvent], QueueingHint]
"""Whether a change may help a pod; what it raises is counted and taken for QUEUE."""


@dataclass(frozen=True, slots=True)
class EventWithHint:
    """Changes that may help pods which the plugin rejected.

    Attributes:
        resource: What they are about; EventResource or the name of a kind.
        actions: Which of them.
        hint: Looks closer; None: each of them may help.
        by_template: Whether the hint reads nothing of the pod but its template. It is asked once then for all
            sleeping pods of a shape that were rejected alike, ten thousand or one.
    """

    resource: str
    actions: ActionType
    hint: Hint | None = None
    by_template: bool = False

    def covers(self, resource: str, action: ActionType) -> bool:
        """Whether an event is one of these."""
        if action & ~self.actions:
            return False
        if self.resource == EventResource.POD:
            return resource in (
                EventResource.POD,
                EventResource.ASSIGNED_POD,
                EventResource.UNSCHEDULABLE_POD,
            )
        return self.resource in (EventResource.ANY, resource)


@runtime_checkable
class EnqueueExtensions(Protocol):
    """Declares which events may help the pods that a plugin rejects, in addition to an extension point."""

    def events_to_register(self) -> Sequence[EventWithHint]:
        """Asked once, when a profile is made. Nothing at all: no event helps, only time does."""


@dataclass(slots=True)
class PodsToActivate:
    """Pods that a plugin wants to activate immediately; in the cycle state from Reserve on.

    They leave their back-off, or the unschedulable pods, when this pod's scheduling cycle, or its binding,
    has succeeded. A gate holds them all the same.
    """

    uids: set[str] = field(default_factory=set)

    def add(self, pod: PodInfo) -> None:
        """Have a pod tried."""
        self.uids.add(pod.uid)
