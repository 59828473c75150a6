"""Pods that Permit has told to wait, as plugins see them.

A plugin that lets pods go together (a gang) holds the first ones with WAIT, and allows them all when the
last one is here::

    for waiting in state.read(WaitingPodsPort).pods:
        if waiting.pod.labels.get("gang") == pod.labels.get("gang"):
            waiting.allow(self.name)

Source: kube-scheduler v1.36, ``framework/runtime/waiting_pods_map.go``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from plimsoll.model.kinds.pod_info import PodInfo


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
