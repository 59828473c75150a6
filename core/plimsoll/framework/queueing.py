"""Defines cluster events and queueing hints, which plugins that reject pods register.

A rejected pod waits until an event may change the result of one of the plugins that rejected it. A plugin
registers such events, and may examine each one with a *hint*::

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

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntFlag, StrEnum, auto
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import msgspec

from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.model.structural import Structural

T = TypeVar("T")


class EventResource(StrEnum):
    """The kind of object of an event. Kinds that are not listed use their own name, such as ``Namespace``."""

    ANY = "*"
    POD = "Pod"  #: in a registration: both of the next two
    ASSIGNED_POD = "AssignedPod"  #: a pod with a node, or one whose nomination or assumed binding has ended
    UNSCHEDULABLE_POD = "UnschedulablePod"  #: a pod without a node; updates concern only the pod itself
    NODE = "Node"
    NODE_LOAD = "NodeLoad"  #: the measured load of nodes has fallen; ``new`` is a LoadFall
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
    """The change: one bit per event; in a registration any union of bits."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()  #: includes uncordoning
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
    )  #: any update; the only one for objects other than pods and nodes
    ALL = ADD | DELETE | UPDATE

    @property
    def label(self) -> str:
        """The bits as in metrics and tables: ``Add``, ``UpdateNodeLabel``, ``Add/Update``."""
        return _label(self._value_)


@cache
def _label(value: int) -> str:
    """Cached for each value: events that help no pod have labels too."""
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
    """A hint's result for one pod and one change."""

    SKIP = "QueueSkip"  #: the change cannot help the pod
    QUEUE = "Queue"  #: the pod may fit now

    @classmethod
    def of(cls, helps: bool) -> "QueueingHint":
        """QUEUE if it may help."""
        return cls.QUEUE if helps else cls.SKIP


@dataclass(frozen=True, slots=True, eq=False)
class ClusterEvent:
    """One event of the cluster; the cache has it already.

    Attributes:
        resource: The kind of object; the name of a kind that EventResource does not list.
        action: One bit, or UPDATE.
        old: The state before, None for an Add. A PodInfo for pods, else the object.
        new: The state after, None for a Delete.
        objects: All objects other than pods and nodes, as they are now.
    """

    resource: str
    action: ActionType
    old: Any = None
    new: Any = None
    objects: ClusterObjects = field(default_factory=ClusterObjects, repr=False)
    _memo: dict[Hashable, object] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """The event in one word, as in upstream's metrics: ``AssignedPodDelete``."""
        return f"{self.resource}{self.action.label}"

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        """A value that depends on the change alone, computed once: many pods are evaluated for one change."""
        if key not in self._memo:
            self._memo[key] = build()
        return cast("T", self._memo[key])


Hint: TypeAlias = Callable[[PodInfo, ClusterEvent], QueueingHint]
"""Whether a change may help a pod; what it raises is counted and taken for QUEUE."""


class HintByValue(msgspec.Struct, frozen=True):
    """A hint that reads one value of a pod's template.

    It runs once for an event, with the values of all waiting pods, however many pods and templates have each.

    Attributes:
        reads: The value.
        helps: Which of some values the change helps.
    """

    reads: Callable[[PodTemplate], Hashable]
    helps: Callable[[Collection[Any], ClusterEvent], Collection[Any]]

    def __call__(self, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        """The answer for one pod."""
        value = self.reads(pod.template)
        return QueueingHint.of(value in self.helps((value,), change))


class EventWithHint(msgspec.Struct, frozen=True):
    """Changes that may help pods that the plugin rejected.

    Attributes:
        resource: The kind of object: an EventResource, or the name of the class of a watched object.
        actions: The registered changes.
        hint: Examines a change; None: each of them may help.
        by_template: Whether the hint reads nothing of the pod but its template. It then runs once for all
            waiting pods of a template that were rejected alike, however many they are, as does a HintByValue.
    """

    resource: str
    actions: ActionType
    hint: Hint | None = None
    by_template: bool = False

    def covers(self, resource: str, action: ActionType) -> bool:
        """Whether the registration matches an event."""
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
class EnqueueExtensions(Protocol, metaclass=Structural):
    """Registers the events that may help pods that a plugin rejects, in addition to an extension point."""

    def events_to_register(self) -> Sequence[EventWithHint]:
        """Called once, when a profile is built. An empty result: no event helps, only time does."""


class PodsToActivate(msgspec.Struct):
    """Pods that a plugin wants to activate; in the cycle state from Reserve on.

    They leave back-off, or the unschedulable pods, when this pod's scheduling cycle or binding has succeeded.
    Gates still hold them.
    """

    uids: set[str] = msgspec.field(default_factory=set)

    def add(self, pod: PodInfo) -> None:
        """Request an attempt of a pod."""
        self.uids.add(pod.uid)
