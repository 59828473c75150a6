"""Writes why pods are not scheduled, at a bounded rate: an event and the ``PodScheduled`` condition.

A pod's newest explanation replaces one that waits to be written. A condition is written only when it changes,
and retried when the server was busy or did not respond. If the retries fail, the write is repeated at
intervals from five seconds to five minutes, until the pod is tried again or leaves the queue: rights may be
revoked and granted again, and the pods of a gang are not tried meanwhile. Nominations are written first and
wait for nothing, because they reserve room.

Source: kube-scheduler v1.36, ``schedule_one.go`` (``handleSchedulingFailure``, ``updatePod``).
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.cluster.watch_events import PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import Pod
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import ConditionUpdate, PodStatusWriter, pod_reference
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.rate_limit import RateLimiter
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry, until_certain
from plimsoll.timing.signal import Signal

#: Number of concurrent status writers.
WRITERS = 8

#: Explanations written per second in the long run, and in a burst after a rest.
PER_S, BURST = 100.0, 200

#: Most writes without a response that are repeated while the writers go on with other pods.
MOST_LOST = 100

CONDITION_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0), repeats=OPEN_OR_CONFLICT)

#: Seconds between two passes over unwritten explanations.
REPEAT_S = 5.0

#: Intervals at which an unwritten explanation is written again.
REPEATS = RetryPolicy.doubling(REPEAT_S, 300.0, OPEN_OR_CONFLICT | {WriteOutcome.REFUSED})


class _Said(Struct, frozen=True):
    pod: Pod
    condition: ConditionUpdate
    is_news: bool  #: whether the condition has to be written
    failures: int = 0  #: failed writes of it


class Explain(Protocol):
    """Reports why a pod has no node."""

    def __call__(self, pod: Pod, reason: str, message: str, nominated_node: str | None = None) -> None:
        """Report it in the pod's condition and as an event."""


class Explanations:
    """Reports why pods are not scheduled; requires a running ``run``.

    Attributes:
        writing: Uids of pods whose condition is being written.
    """

    def __init__(
        self,
        statuses: PodStatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        observer: Observer,
        is_waiting: Callable[[str], bool],
    ) -> None:
        self._statuses = statuses
        self._recorder = recorder
        self._clock = clock
        self._observer = observer
        self._is_waiting = is_waiting
        self._pace = RateLimiter(clock, PER_S, BURST)
        self._due: dict[str, _Said] = {}
        self._urgent: dict[str, _Said] = {}
        self._news = asyncio.Event()
        self._nominated: dict[str, str] = {}  #: last written nominations; the watch may not have shown them
        self.writing: set[str] = set()
        self._written: dict[str, tuple[int, ConditionUpdate]] = {}
        #: by uid: explanations that were not written, and when to repeat the write, in monotonic seconds
        self._unwritten: dict[str, tuple[_Said, float]] = {}
        self._failed = Signal()
        self._ended = Signal()
        self._lost: set[asyncio.Task[None]] = set()  #: bring writes without a response to their end

    def explain(self, pod: Pod, reason: str, message: str, nominated_node: str | None = None) -> None:
        """Report a reason: an event each time (they are aggregated), the condition only when it changes.

        Args:
            pod: The pod as it was tried.
            reason: ``Unschedulable``, ``NotReadyForScheduling`` or ``SchedulerError``.
            message: In kube-scheduler's words.
            nominated_node: The node to nominate, "" to end the nomination; None leaves it unchanged.
        """
        says = pod.status.nominated_node_name
        # A write under way takes effect after what the pod shows now, and before the next write.
        is_settled = pod.uid not in self.writing
        if is_settled and nominated_node == says == self._nominated.get(pod.uid, says):
            nominated_node = None  # the pod shows it already, and we wrote it last
        condition = ConditionUpdate(reason, message, nominated_node)
        written = self._written.get(pod.uid)
        known = is_settled and (
            written == (pod.metadata.generation, condition)
            or (
                nominated_node is None
                and _says_already(pod, condition)
                # The watch may not yet show our later write.
                and (written is None or _reads_like(written[1], condition))
            )
        )
        failed, _ = self._unwritten.pop(pod.uid, (None, 0.0))
        waits = self._urgent.pop(pod.uid, None) or self._due.pop(pod.uid, None) or failed
        if waits is not None and nominated_node is None:
            # A queued write of the nomination still stands.
            condition = replace(condition, nominated_node=waits.condition.nominated_node)
        said = _Said(pod, condition, is_news=not known or waits is not None)
        (self._urgent if condition.nominated_node else self._due)[pod.uid] = said
        self._news.set()

    def observe(self, event: WatchEvent) -> None:
        """Forget a pod that was deleted, has ended or has a node."""
        match event:
            case PodDeleted(pod):
                self.forget(pod.uid)
            case PodUpdated(_, pod) if pod.is_terminal or pod.node_name:
                self.forget(pod.uid)

    def withdraw(self, uid: str) -> None:
        """Withdraw the explanation of a pod that has not been written yet."""
        self._due.pop(uid, None)
        self._urgent.pop(uid, None)
        self._unwritten.pop(uid, None)

    async def end_of_write(self, uid: str) -> None:
        """Wait for the end of a write about a pod that is under way.

        If the API server carried it out after the binding, a pod on a node would be reported to have none.
        """
        await self._ended.until(lambda: uid not in self.writing)

    def forget(self, uid: str) -> None:
        """Forget a pod that was deleted or has a node."""
        self.withdraw(uid)
        self._written.pop(uid, None)
        self._nominated.pop(uid, None)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_urgent(group), name="nomination writer")
            group.create_task(self._repeat(), name="unwritten conditions")
            for _ in range(WRITERS):
                group.create_task(self._write_due(group), name="condition writer")

    async def _write_urgent(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._write(await self._next(self._urgent), self._urgent, group)

    async def _write_due(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._next(self._due)
            await self._pace.turn()
            await self._write(await self._next(self._due), self._due, group)

    async def _repeat(self) -> None:
        """Return unwritten explanations to the writers when they are due."""
        while True:
            await self._failed.until(lambda: bool(self._unwritten))
            await self._clock.sleep(REPEAT_S)
            now = self._clock.monotonic()
            for uid in [uid for uid, (_, due_at) in self._unwritten.items() if due_at <= now]:
                said, _ = self._unwritten.pop(uid)
                (self._urgent if said.condition.nominated_node else self._due)[uid] = said
            self._news.set()

    async def _next(self, waiting: dict[str, _Said]) -> str:
        """The uid of the next pod to write about. At most one writer writes about a pod at a time."""
        while True:
            uid = next((uid for uid in waiting if uid not in self.writing), "")
            if uid:
                return uid
            self._news.clear()
            await self._news.wait()

    async def _write(self, uid: str, waiting: dict[str, _Said], group: asyncio.TaskGroup) -> None:
        """Write about a pod; no writer waits until a write without a response is certain."""
        said = waiting.pop(uid)
        self.writing.add(uid)
        again: asyncio.Task[None] | None = None
        try:
            with self._contained(said):
                if not said.failures:
                    self._recorder.record(_note(said))
                if said.is_news and self._is_waiting(uid):
                    first = await self._statuses.write_condition(said.pod, said.condition)
                    if first.verdict is WriteOutcome.UNKNOWN and len(self._lost) < MOST_LOST:
                        work = self._tell_contained(uid, said, first)
                        again = group.create_task(work, name=f"condition of {said.pod.key}")
                    else:
                        await self._tell(uid, said, first)
        finally:
            if again is None:
                self._over(uid)
            else:
                self._lost.add(again)
                again.add_done_callback(self._lost.discard)
                again.add_done_callback(lambda _: self._over(uid))

    def _over(self, uid: str) -> None:
        self.writing.discard(uid)
        self._ended.notify()
        self._news.set()

    @contextmanager
    def _contained(self, said: _Said) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - what is said of one pod harms no other
            self._observer.failed(f"condition of {said.pod.key}", repr(exc))

    async def _tell_contained(self, uid: str, said: _Said, first: WriteResult) -> None:
        with self._contained(said):
            await self._tell(uid, said, first)

    async def _tell(self, uid: str, said: _Said, first: WriteResult) -> None:
        """Repeat a write until it is certain; ``first`` is the response to the first one."""
        pod, answers = said.pod, [first]

        def is_newest() -> bool:
            return uid not in self._due and uid not in self._urgent and self._is_waiting(uid)

        async def send() -> WriteResult:
            return answers.pop() if answers else await self._statuses.write_condition(pod, said.condition)

        answer = await retry(
            lambda: until_certain(send, self._clock), CONDITION_RETRIES, self._clock, is_newest
        )
        if answer.is_done and self._is_waiting(uid):
            self._written[uid] = (pod.metadata.generation, said.condition)
            if said.condition.nominated_node is not None:
                self._nominated[uid] = said.condition.nominated_node
        elif is_newest():
            self._keep(uid, said, answer)

    def _keep(self, uid: str, said: _Said, answer: WriteResult) -> None:
        """Keep an explanation that was not written for a later pass, if it may still succeed."""
        failures = said.failures + 1
        pause_s = REPEATS.pause_after(failures, answer)
        if pause_s is not None:
            again = replace(said, is_news=True, failures=failures)
            self._unwritten[uid] = (again, self._clock.monotonic() + pause_s)
            self._failed.notify()


def _note(said: _Said) -> EventNote:
    """The note of the pod's event."""
    return EventNote(
        pod_reference(said.pod),
        "FailedScheduling",
        "Scheduling",
        said.condition.message,
        is_warning=True,
        reporter=said.pod.spec.scheduler_name,
    )


def nominated_to(pod: Pod, node: str) -> Pod:
    """The pod with its nomination as written, whether or not the watch has shown it."""
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))


def _reads_like(written: ConditionUpdate, condition: ConditionUpdate) -> bool:
    """Whether two conditions differ in nothing but their nominations."""
    return (written.reason, written.message) == (condition.reason, condition.message)


def _says_already(pod: Pod, condition: ConditionUpdate) -> bool:
    """Whether the pod's condition reads the same."""
    return any(
        each.type == "PodScheduled"
        and each.status == "False"
        and each.reason == condition.reason
        and each.message == condition.message
        for each in pod.status.conditions
    )
