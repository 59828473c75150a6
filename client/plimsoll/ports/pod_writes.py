"""Ports for pods: bindings, evictions, deletions, victims of preemption, conditions."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.names import PolicyName
from plimsoll.ports.writes import WriteResult

#: Reasons of ``PodScheduled=False``. Autoscalers act on the first one and on no other; the second one is for
#: pods that no new node would help, as upstream's KEP-5501 uses it for pods that are not tried.
UNSCHEDULABLE, NOT_READY = "Unschedulable", "NotReadyForScheduling"


class PodBinding(Protocol):
    """Binds pods."""

    async def bind(self, pod: Pod, node: str) -> WriteResult:
        """POST the binding of this very pod (by uid)."""

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """POST the bindings of several pods with fewer system calls; returns one outcome each.

        None means that nothing was sent: bind that pod individually.
        """

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """The node of this very pod, "" for none; GONE when the pod does not exist any more."""


class PodEviction(Protocol):
    """Evicts pods."""

    async def evict(self, pod: Pod) -> WriteResult:
        """Read this very pod (by uid), and POST the eviction if ``standing`` is DONE."""

    async def standing(self, pod: Pod) -> WriteResult:
        """Whether this very pod still has the labels, annotations and owners by which it was judged.

        GONE when it has left or is terminating, CONFLICT when they have changed, BUSY when that is unknown.
        """


class Preemptor(Protocol):
    """Removes victims of preemption."""

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:
        """Delete this very pod, after writing the reason to its status."""

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Clear the nominated node of a pod of lower priority."""


class ConditionUpdate(Struct, frozen=True):
    """The ``PodScheduled`` condition to write, together with the nomination.

    Attributes:
        reason: ``Unschedulable`` or ``SchedulerError``.
        message: In kube-scheduler's words.
        nominated_node: The new ``status.nominatedNodeName``; None leaves it unchanged.
    """

    reason: str
    message: str
    nominated_node: str | None = None


class PodStatusWriter(Protocol):
    """Writes the reason why a pod is not scheduled."""

    async def write_condition(self, pod: Pod, condition: ConditionUpdate) -> WriteResult:
        """Set ``PodScheduled`` to false; the caller has checked that the condition changed."""

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """Set ``status.nominatedNodeName``: the pod is to be bound there, but cannot be bound yet."""


class PodReader(Protocol):
    """Reads the complete documents of pods."""

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
        policy: PolicyName,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        """Evict the victims of one pod; returns whether all of them are terminating.

        Args:
            victims: Pods on one node.
            pod: The preemptor.
            policy: The policy whose profile made the decision.
            is_wanted: Whether the preemptor still waits; called before each eviction.
            told: Called with each victim whose eviction was accepted, and the name of its record.
        """
