"""Ports that a plugin finds in the cycle state: binding, volumes, pods that wait in Permit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from plimsoll.framework.status import Status
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo


class Binder(Protocol):
    """Writes bindings."""

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """Assign the pod to the node; success, or an error with the API's sentence."""


@dataclass(frozen=True, slots=True)
class BinderPort:
    """The binder of this attempt, as kept in the cycle state."""

    binder: Binder


#: What delayed claims get: ``namespace/name`` of the claim to the name of a volume, "" to be provisioned.
VolumeChoices = Mapping[str, str]


class VolumeBinder(Protocol):
    """Books volumes in memory, and writes the bookings."""

    def assume(self, choices: VolumeChoices, node: str) -> None:
        """The next decision sees the volumes as taken, and the claims as provisioned for the node."""

    def forget(self, choices: VolumeChoices) -> None:
        """Take that back, as far as it is not written."""

    async def bind(self, choices: VolumeChoices, node: str, timeout_s: float) -> Status:
        """Write the bookings and wait until every claim has its volume; an error says what went wrong."""


@dataclass(frozen=True, slots=True)
class VolumesPort:
    """The cluster when Reserve runs, and the volume binder, as kept in the cycle state from Reserve on."""

    snapshot: Snapshot
    binder: VolumeBinder


class WaitingPod(Protocol):
    """A pod that is assumed on a node, and binds when every plugin that holds it has allowed it."""

    @property
    def pod(self) -> PodInfo:
        """The pod."""

    @property
    def node(self) -> str:
        """Where it will be bound."""

    @property
    def holders(self) -> Mapping[str, float]:
        """The plugins that hold it, with the seconds that each agreed to wait at most."""

    def allow(self, plugin: str) -> None:
        """The plugin holds it no longer; of a plugin that does not hold it, without effect."""

    def reject(self, plugin: str, reason: str) -> None:
        """It shall not bind; the first word counts, later ones are without effect."""


class WaitingPods(Protocol):
    """All of them."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Those that wait now, in the order in which they began."""

    def find(self, uid: str) -> WaitingPod | None:
        """The waiting pod with this uid, or None."""


@dataclass(frozen=True, slots=True)
class WaitingPodsPort:
    """The waiting pods, as kept in the cycle state from Reserve on."""

    pods: WaitingPods
