"""Ports for pods: bindings, evictions, deletions, victims of preemption, conditions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.ports.writes import WriteResult


class PodBinding(Protocol):
    """Binds pods."""

    async def bind(self, pod: Pod, node: str, *, as_seen: bool = False) -> WriteResult:
        """POST the binding, for this very pod (by uid); CONFLICT if it changed and is to be ``as_seen``."""

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """The same for several pods and nodes with fewer system calls; each outcome by itself.

        None where nothing was sent: that pod is to be bound by itself.
        """

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """The node that this very pod has, "" for none; GONE when there is no such pod any more."""


class PodEviction(Protocol):
    """Evicts pods."""

    async def evict(self, pod: Pod) -> WriteResult:
        """Read this very pod (by uid), and POST the eviction if it stands as ``standing`` says."""

    async def standing(self, pod: Pod) -> WriteResult:
        """Whether this very pod has the labels, annotations and owners that it was judged by.

        GONE when it has left or is about to, CONFLICT when they have changed, BUSY when that is not known.
        """


class Preemptor(Protocol):
    """Removes victims of preemption."""

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:
        """Delete this very pod, with the reason in its status."""

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Take away the nominated node of a pod of lower priority."""


@dataclass(frozen=True, slots=True)
class ConditionUpdate:
    """The ``PodScheduled`` condition to be written, together with the nomination.

    Attributes:
        reason: ``Unschedulable`` or ``SchedulerError``.
        message: Worded as kube-scheduler words it.
        nominated_node: What ``status.nominatedNodeName`` becomes; None leaves it alone.
    """

    reason: str
    message: str
    nominated_node: str | None = None


class PodStatusWriter(Protocol):
    """Writes why a pod is not scheduled."""

    async def write_condition(self, pod: Pod, condition: ConditionUpdate) -> WriteResult:
        """Set ``PodScheduled`` to false; the caller knows that it changed."""

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """Set ``status.nominatedNodeName``: the pod will go there, but cannot be bound yet."""


#: The condition by which a replica asks the one that holds a node to bind a pod to it.
BINDING_REQUESTED = "plimsoll.dev/BindingRequested"


class PodRequests(Protocol):
    """Writes the condition by which replicas ask each other to bind a pod."""

    async def request(
        self, pod: Pod, reason: str, message: str, *, is_open: bool, as_seen: bool = False
    ) -> WriteResult:
        """Set the condition of this very pod, true while it is ``is_open``.

        CONFLICT if the pod has changed and is to be ``as_seen``.
        """


class PodReader(Protocol):
    """Reads pods as they are, every field of them."""

    async def read(self, pod: Pod) -> tuple[WriteResult, bytes]:
        """The document of this very pod (by uid); GONE when there is no such pod."""


def pod_reference(pod: Pod) -> dict[str, str]:
    """A reference to a pod, for events."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }


class VictimEvictor(Protocol):
    """Evicts victims of preemption through the Eviction API."""

    async def evict(
        self,
        victims: Sequence[PodInfo],
        pod: PodInfo,
        policy: str,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        """Evict the victims of one pod; whether all of them are on their way.

        Args:
            victims: Pods on one node.
            pod: The pod that needs the room.
            policy: The policy whose profile decided.
            is_wanted: Whether the pod still waits; called before each eviction.
            told: Called with each victim whose eviction was accepted, and the name of its record.
        """
