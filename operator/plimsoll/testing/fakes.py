"""The ports of :mod:`plimsoll.control.ports`, faked: time that a test moves, an API server that obeys.

A fake does what a well-behaved world would do and keeps what it was asked; a test sets the answer it wants.
"""

import asyncio
from collections.abc import Awaitable, Callable

from plimsoll.control.ports import Answer, Note, PodCondition, Verdict
from plimsoll.model.pod import Pod

DONE = Answer(Verdict.DONE)


class FakeClock:
    """Time that stands still until it is moved."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.time = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time

    def monotonic(self) -> float:
        """The same seconds."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Wait until somebody moves the time that far."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.time + seconds, over))
        await over

    async def advance(self, seconds: float) -> None:
        """Move the time, wake who slept until then, and let everybody come to rest."""
        await settled()
        until = self.time + seconds
        while due := sorted(each for each, over in self._sleepers if each <= until and not over.done()):
            self.time = max(self.time, due[0])
            for each, over in self._sleepers:
                if each <= self.time and not over.done():
                    over.set_result(None)
            await settled()
        self.time = until
        await settled()


async def settled() -> None:
    """Let every task run until it waits for something that only the test can do."""
    for _ in range(50):
        await asyncio.sleep(0)


class FakeBinder:
    """Takes every binding unless told otherwise.

    Attributes:
        bound: Pod key to node, in the order of the bindings.
        answer: What the next bindings are told.
        before: Awaited before each answer.
    """

    def __init__(self, answer: Answer = DONE) -> None:
        self.bound: dict[str, str] = {}
        self.answer = answer
        self.before: Callable[[Pod, str], Awaitable[None]] | None = None

    async def bind(self, pod: Pod, node: str) -> Answer:
        """Keep the binding when it is taken."""
        if self.before is not None:
            await self.before(pod, node)
        if self.answer.is_done:
            self.bound[f"{pod.namespace}/{pod.name}"] = node
        return self.answer


class FakePreemptor:
    """Removes victims at once.

    Attributes:
        victims: Names of the pods that were removed.
        cleared: Names of the pods whose nomination was taken away.
    """

    def __init__(self) -> None:
        self.victims: list[str] = []
        self.cleared: list[str] = []

    async def preempt(self, victim: Pod, scheduler: str) -> Answer:  # noqa: ARG002 - the port's signature
        """Keep the victim's name."""
        self.victims.append(victim.name)
        return DONE

    async def clear_nomination(self, pod: Pod) -> Answer:
        """Keep the pod's name."""
        self.cleared.append(pod.name)
        return DONE


class FakeStatuses:
    """Keeps what is written about pods.

    Attributes:
        conditions: Pod name to its latest ``PodScheduled`` condition.
        nominated: Pod name to nominated node.
    """

    def __init__(self) -> None:
        self.conditions: dict[str, PodCondition] = {}
        self.nominated: dict[str, str] = {}

    async def write_condition(self, pod: Pod, condition: PodCondition) -> Answer:
        """Keep the condition."""
        self.conditions[pod.name] = condition
        if condition.nominated_node is not None:
            self.nominated[pod.name] = condition.nominated_node
        return DONE

    async def nominate(self, pod: Pod, node: str) -> Answer:
        """Keep the nomination."""
        self.nominated[pod.name] = node
        return DONE


class FakeRecorder:
    """Keeps events, oldest first, in ``notes``."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def record(self, note: Note) -> None:
        """Keep the event."""
        self.notes.append(note)

    def said(self, reason: str) -> list[str]:
        """The sentences of one reason."""
        return [note.text for note in self.notes if note.reason == reason]
