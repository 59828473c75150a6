"""Writes why pods are not scheduled, at a bounded rate: an event and the ``PodScheduled`` condition.

A pod's newest explanation replaces one that waits to be written; a condition is written only when it
changes, at a bounded rate, and again when none or a busy answer came. One that could not be written all the
same is written again, from every five seconds to every five minutes, until the pod is tried again or waits
no longer: rights may be taken away and given back, and the pods of a gang are not tried meanwhile.
Nominations go first and wait for nothing: they keep room.

Source: kube-scheduler v1.36, ``schedule_one.go`` (``handleSchedulingFailure``, ``updatePod``).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from plimsoll.framework import Pod
from plimsoll.model.kinds.watch_event import PodDeleted, PodUpdated, WatchEvent
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import ConditionUpdate, PodStatusWriter, pod_reference
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.rate_limit import Pace
from plimsoll.timing.retry import OPEN_OR_CONFLICT, RetryPolicy, retry
from plimsoll.timing.signal import Signal

#: Concurrent status writers.
WRITERS = 8

#: Explanations written a second in the long run, and in a burst after a rest.
PER_S, BURST = 100.0, 200

CONDITION_RETRIES = RetryPolicy((0.2, 0.5, 1.0, 2.0), repeats=OPEN_OR_CONFLICT)

#: Seconds between two looks at what could not be written.
REPEAT_S = 5.0

#: When that is written again.
REPEATS = RetryPolicy.doubling(REPEAT_S, 300.0, OPEN_OR_CONFLICT | {WriteOutcome.REFUSED})


@dataclass(frozen=True, slots=True)
class _Said:
    pod: Pod
    condition: ConditionUpdate
    is_news: bool  #: whether the condition has to be written
    failures: int = 0  #: how often it could not be


class Explain(Protocol):
    """Tells why a pod has no node."""

    def __call__(self, pod: Pod, reason: str, message: str, nominated_node: str | None = None) -> None:
        """In its condition and as an event."""


class Explanations:
    """Tells why pods are not scheduled; ``run`` must be running for that.

    Attributes:
        writing: Pods about which a write is under way, by uid.
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
        self._pace = Pace(clock, PER_S, BURST)
        self._due: dict[str, _Said] = {}
        self._urgent: dict[str, _Said] = {}
        self._news = asyncio.Event()
        self._nominated: dict[str, str] = {}  #: what we wrote last; the watch may not have shown it
        self.writing: set[str] = set()
        self._written: dict[str, tuple[int, ConditionUpdate]] = {}
        #: by uid: what could not be written, and when it is written again, in monotonic seconds
        self._unwritten: dict[str, tuple[_Said, float]] = {}
        self._failed = Signal()
        self._ended = Signal()

    def explain(self, pod: Pod, reason: str, message: str, nominated_node: str | None = None) -> None:
        """Tell the user: an event each time (they are aggregated), the condition only when it changes.

        Args:
            pod: As it was tried.
            reason: ``Unschedulable`` or ``SchedulerError``.
            message: Worded as kube-scheduler words it.
            nominated_node: What the nomination becomes, "" for none; None leaves it alone.
        """
        says = pod.status.nominated_node_name
        # What is being written takes effect after what the pod says, and before what is written next.
        is_settled = pod.uid not in self.writing
        if is_settled and nominated_node == says == self._nominated.get(pod.uid, says):
            nominated_node = None  # it says so already, and so did we last
        condition = ConditionUpdate(reason, message, nominated_node)
        written = self._written.get(pod.uid)
        known = is_settled and (
            written == (pod.metadata.generation, condition)
            or (
                nominated_node is None
                and _says_already(pod, condition)
                # The watch may not have shown yet that we wrote something else since.
                and (written is None or _reads_like(written[1], condition))
            )
        )
        failed, _ = self._unwritten.pop(pod.uid, (None, 0.0))
        waits = self._urgent.pop(pod.uid, None) or self._due.pop(pod.uid, None) or failed
        if waits is not None and nominated_node is None:
            # What was to be written of the nomination still holds.
            condition = replace(condition, nominated_node=waits.condition.nominated_node)
        said = _Said(pod, condition, is_news=not known or waits is not None)
        (self._urgent if condition.nominated_node else self._due)[pod.uid] = said
        self._news.set()

    def observe(self, event: WatchEvent) -> None:
        """Of a pod that is gone, has ended or has a node nothing is kept."""
        match event:
            case PodDeleted(pod):
                self.forget(pod.uid)
            case PodUpdated(_, pod) if pod.is_terminal or pod.node_name:
                self.forget(pod.uid)

    def withdraw(self, uid: str) -> None:
        """What was to be said of a pod holds no more."""
        self._due.pop(uid, None)
        self._urgent.pop(uid, None)
        self._unwritten.pop(uid, None)

    async def end_of_write(self, uid: str) -> None:
        """Wait until what is being written about a pod has its answer.

        An API server that carried it out after the binding would say of a pod on a node that it has none.
        """
        await self._ended.until(lambda: uid not in self.writing)

    def forget(self, uid: str) -> None:
        """The pod is gone or has a node: nothing is kept of it."""
        self.withdraw(uid)
        self._written.pop(uid, None)
        self._nominated.pop(uid, None)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_urgent(), name="nomination writer")
            group.create_task(self._repeat(), name="unwritten conditions")
            for _ in range(WRITERS):
                group.create_task(self._write_due(), name="condition writer")

    async def _write_urgent(self) -> None:
        while True:
            await self._write(await self._next(self._urgent), self._urgent)

    async def _write_due(self) -> None:
        while True:
            await self._next(self._due)
            await self._pace.turn()
            await self._write(await self._next(self._due), self._due)

    async def _repeat(self) -> None:
        """Hand what could not be written back to the writers when its time has come."""
        while True:
            await self._failed.until(lambda: bool(self._unwritten))
            await self._clock.sleep(REPEAT_S)
            now = self._clock.monotonic()
            for uid in [uid for uid, (_, due_at) in self._unwritten.items() if due_at <= now]:
                said, _ = self._unwritten.pop(uid)
                (self._urgent if said.condition.nominated_node else self._due)[uid] = said
            self._news.set()

    async def _next(self, waiting: dict[str, _Said]) -> str:
        """The pod to speak of, by uid. Of each pod one writer speaks at a time."""
        while True:
            uid = next((uid for uid in waiting if uid not in self.writing), "")
            if uid:
                return uid
            self._news.clear()
            await self._news.wait()

    async def _write(self, uid: str, waiting: dict[str, _Said]) -> None:
        said = waiting.pop(uid)
        self.writing.add(uid)
        try:
            await self._tell(uid, said)
        except Exception as exc:  # noqa: BLE001 - what is said of one pod harms no other
            self._observer.failed(f"condition of {said.pod.key}", repr(exc))
        finally:
            self.writing.discard(uid)
            self._ended.notify()
            self._news.set()

    async def _tell(self, uid: str, said: _Said) -> None:
        pod = said.pod
        if not said.failures:
            self._recorder.record(_note(said))
        if not said.is_news or not self._is_waiting(uid):
            return

        def is_newest() -> bool:
            return uid not in self._due and uid not in self._urgent and self._is_waiting(uid)

        answer = await retry(
            lambda: self._statuses.write_condition(pod, said.condition),
            CONDITION_RETRIES,
            self._clock,
            is_newest,
        )
        if answer.is_done and self._is_waiting(uid):
            self._written[uid] = (pod.metadata.generation, said.condition)
            if said.condition.nominated_node is not None:
                self._nominated[uid] = said.condition.nominated_node
        elif is_newest():
            self._keep(uid, said, answer)

    def _keep(self, uid: str, said: _Said, answer: WriteResult) -> None:
        """Keep what could not be written for later, if that is of use."""
        failures = said.failures + 1
        pause_s = REPEATS.pause_after(failures, answer)
        if pause_s is not None:
            again = replace(said, is_news=True, failures=failures)
            self._unwritten[uid] = (again, self._clock.monotonic() + pause_s)
            self._failed.notify()


def _note(said: _Said) -> EventNote:
    """What the pod's event says."""
    return EventNote(
        pod_reference(said.pod),
        "FailedScheduling",
        "Scheduling",
        said.condition.message,
        is_warning=True,
        reporter=said.pod.spec.scheduler_name,
    )


def nominated_to(pod: Pod, node: str) -> Pod:
    """The pod as it is after its nomination was written, whether or not the watch has shown it."""
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))


def _reads_like(written: ConditionUpdate, condition: ConditionUpdate) -> bool:
    """Whether two conditions differ by their nominations at most."""
    return (written.reason, written.message) == (condition.reason, condition.message)


def _says_already(pod: Pod, condition: ConditionUpdate) -> bool:
    """Whether the pod's own condition reads like this."""
    return any(
        each.type == "PodScheduled"
        and each.status == "False"
        and each.reason == condition.reason
        and each.message == condition.message
        for each in pod.status.conditions
    )
