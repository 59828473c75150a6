"""Fakes of the ports that write to pods: bindings, volumes, conditions, preemption."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.pod_writes import ConditionUpdate
from plimsoll.ports.writes import WriteOutcome, WriteResult

DONE = WriteResult(WriteOutcome.DONE)


class FakeBinder:
    """Accepts every binding unless a test sets another result.

    Attributes:
        bound: Pod key to node, in the order of the bindings.
        answer: The result of a binding.
        before: Awaited before each result.
        answers: Results of the next bindings, one each, before ``answer`` applies.
        deaf: Number of bindings that happen although the result is UNKNOWN.
        sent: Number of bindings sent.
        together: Number of bindings in each batch.
        looks: Results of the next lookups of a pod, one each; then the true ones.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.bound: dict[str, str] = {}
        self.answer = answer
        self.before: Callable[[Pod, str], Awaitable[None]] | None = None
        self.answers: list[WriteResult] = []
        self.looks: list[WriteResult] = []
        self.sent = 0
        self.together: list[int] = []
        self.deaf = 0

    async def bind(self, pod: Pod, node: str, *, as_seen: bool = False) -> WriteResult:  # noqa: ARG002 - no versions
        """Record the binding if it is accepted."""
        self.sent += 1
        if self.before is not None:
            await self.before(pod, node)
        key = f"{pod.namespace}/{pod.name}"
        if key in self.bound:
            return WriteResult(
                WriteOutcome.CONFLICT, f"pod {pod.name} is already assigned to node {self.bound[key]}"
            )
        if self.deaf:
            self.deaf -= 1
            self.bound[key] = node
            return WriteResult(WriteOutcome.UNKNOWN, "no answer")
        answer = self.answers.pop(0) if self.answers else self.answer
        if answer.is_done:
            self.bound[key] = node
        return answer

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """Bind each pod separately, concurrently."""
        self.together.append(len(bindings))
        return await asyncio.gather(*(self.bind(pod, node) for pod, node in bindings))

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """The pod's true node, unless a test sets another result."""
        answer = self.looks.pop(0) if self.looks else DONE
        return answer, self.bound.get(f"{pod.namespace}/{pod.name}", "") if answer.is_done else ""


class FakeVolumes:
    """Records writes to claims and volumes.

    Attributes:
        selected: Claim name to node.
        reserved: Volume name to claim name.
        answer: The result of a write.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.selected: dict[str, str] = {}
        self.reserved: dict[str, str] = {}
        self.answer = answer

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Record the node."""
        if self.answer.is_done:
            self.selected[claim.metadata.name] = node
        return self.answer

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Record the claim's name."""
        if self.answer.is_done:
            self.reserved[volume.name] = claim.metadata.name
        return self.answer


class FakePreemptor:
    """Removes victims immediately.

    Attributes:
        victims: Names of the removed pods.
        cleared: Names of the pods whose nomination was cleared.
        answers: Results of the next removals, one each; then DONE.
        before: Awaited before each removal.
    """

    def __init__(self, *answers: WriteResult) -> None:
        self.answers = list(answers)
        self.before: Callable[[Pod], Awaitable[None]] | None = None
        self.victims: list[str] = []
        self.cleared: list[str] = []

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:  # noqa: ARG002 - the port's signature
        """Record the victim's name."""
        if self.before is not None:
            await self.before(victim)
        answer = self.answers.pop(0) if self.answers else DONE
        if answer.is_done:
            self.victims.append(victim.name)
        return answer

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Record the pod's name."""
        self.cleared.append(pod.name)
        return DONE


class FakeStatuses:
    """Records writes to pods' statuses.

    Attributes:
        conditions: Pod name to its latest ``PodScheduled`` condition.
        nominated: Pod name to nominated node.
    """

    def __init__(self) -> None:
        self.conditions: dict[str, ConditionUpdate] = {}
        self.nominated: dict[str, str] = {}

    async def write_condition(self, pod: Pod, condition: ConditionUpdate) -> WriteResult:
        """Record the condition."""
        self.conditions[pod.name] = condition
        if condition.nominated_node is not None:
            self.nominated[pod.name] = condition.nominated_node
        return DONE

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """Record the nomination."""
        self.nominated[pod.name] = node
        return DONE


class FakePods:
    """Serves pods as an API server would, from their models."""

    def __init__(self) -> None:
        self.answer = DONE

    async def read(self, pod: Pod) -> tuple[WriteResult, bytes]:
        """The model as JSON."""
        return self.answer, msgspec.json.encode(pod)
