"""Ports that a plugin finds in the cycle state: binding, volumes, pods that wait on Permit."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from plimsoll.framework.status import Status
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo


class Binder(Protocol):
    """Writes bindings."""

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """Bind the pod to the node; success, or an error with the API's message."""


class BinderPort(Struct, frozen=True):
    """The binder of this attempt, stored in the cycle state."""

    binder: Binder


#: The choice for delayed claims: ``namespace/name`` of the claim to a volume's name, "" to provision one.
VolumeChoices = Mapping[str, str]


class VolumeBinder(Protocol):
    """Books volumes in memory, and writes the bookings."""

    def assume(self, choices: VolumeChoices, node: str) -> None:
        """Book the volumes: the next decision sees them as taken, and claims as provisioned for the node."""

    def forget(self, choices: VolumeChoices) -> None:
        """Undo the bookings that are not written."""

    async def bind(self, choices: VolumeChoices, node: str, timeout_s: float) -> Status:
        """Write the bookings and wait until every claim has its volume; an error has the cause."""


class VolumesPort(Struct, frozen=True):
    """The cluster as of Reserve, and the volume binder; stored in the cycle state from Reserve on."""

    snapshot: Snapshot
    binder: VolumeBinder


class WaitingPod(Protocol):
    """A pod that is assumed on a node, and is bound when every plugin that holds it has allowed it."""

    @property
    def pod(self) -> PodInfo:
        """The pod."""

    @property
    def node(self) -> str:
        """The node to which it will be bound."""

    @property
    def holders(self) -> Mapping[str, float]:
        """The plugins that hold it, with their timeouts in seconds."""

    def allow(self, plugin: str) -> None:
        """Remove the plugin from the holders; no effect if it is not a holder."""

    def reject(self, plugin: str, reason: str) -> None:
        """Reject the pod; the first verdict counts, later ones have no effect."""


class WaitingPods(Protocol):
    """All waiting pods."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """The waiting pods, in the order in which they began to wait."""

    def find(self, uid: str) -> WaitingPod | None:
        """The waiting pod with this uid, or None."""


class WaitingPodsPort(Struct, frozen=True):
    """The waiting pods; stored in the cycle state from Reserve on."""

    pods: WaitingPods
