"""Writes events (events.k8s.io/v1) in the background: queued, and aggregated into series.

Many unschedulable pods must not cause as many writes. An event equal to a recent one (same object, reason,
action and text) raises the count of the first, at most once in SERIES_S and at a bounded rate. While the
queue is full, new events are dropped and counted; callers never wait.

New events are sent in groups over one connection, because most of a request's cost is its system calls. A
busy server responds to the requests of a connection one by one. The longer events wait, the more connections
are used, so that events stay only seconds behind the bindings that they report.
"""

import asyncio
import math
from collections import OrderedDict, defaultdict
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from msgspec import Struct

from plimsoll.kube.session.errors import NotFound
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome
from plimsoll.timing.rate_limit import RateLimiter
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: Bytes of an event's note.
NOTE_BYTES = 1024

#: Seconds between two writes of one series, and seconds without an event after which a series ends.
SERIES_S, FORGET_S = 60.0, 360.0

#: Series written per second in the long run, and in a burst; the counts of further series wait.
SERIES_PER_S, SERIES_BURST = 20.0, 50

#: Maximum number of events that wait to be written, and of series that are remembered.
QUEUED, REMEMBERED = 20_000, 20_000

#: Maximum number of events per group, and seconds to wait for further events of a group.
TOGETHER, LINGER_S = 16, 0.05

#: Concurrent groups; further groups per second that the oldest event has waited; maximum of concurrent
#: groups, because bindings need connections as well.
WRITERS, WRITERS_PER_S, MOST_WRITERS = 8, 16, 48


class _Series(Struct):
    name: str
    namespace: str
    count: int
    first: float
    written: float


def patience_s(writing: int) -> float:
    """Seconds that an event waits for its group to be written while ``writing`` others are being written."""
    if writing >= MOST_WRITERS:
        return math.inf
    return max(0.0, (writing + 1 - WRITERS) / WRITERS_PER_S)


class EventPoster:
    """Writes events; requires a running ``run``.

    Attributes:
        dropped: Events that were dropped because the queue was full.
        writing: Number of groups that are being written.
    """

    def __init__(
        self, session: Session, clock: Clock, instance: str, observer: Observer | None = None
    ) -> None:
        self._observer = observer or Observer()
        self._session = session
        self._clock = clock
        self._instance = instance
        #: with the wall clock's time of each, and that of a clock which does not go back
        self._queue: asyncio.Queue[tuple[EventNote, float, float]] = asyncio.Queue(QUEUED)
        self._written = Signal()
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()  #: the last written is last
        self._series_pace = RateLimiter(clock, SERIES_PER_S, SERIES_BURST)
        self._made = 0
        self.dropped = 0
        self.writing = 0

    def record(self, note: EventNote) -> None:
        """Queue an event."""
        about = note.regarding
        self._observer.object_noted(
            about["kind"], about["name"], note.reason, note.text, is_warning=note.is_warning
        )
        try:
            self._queue.put_nowait((note, self._clock.now(), self._clock.monotonic()))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write queued events until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                first = await self._queue.get()
                await self._turn(first[2])
                if self._queue.qsize() < TOGETHER:
                    await asyncio.sleep(LINGER_S)
                notes = [first[:2]]
                while len(notes) < TOGETHER and not self._queue.empty():
                    notes.append(self._queue.get_nowait()[:2])
                self.writing += 1
                group.create_task(self._write_group(notes))

    async def _turn(self, since: float) -> None:
        """Wait until an event that was queued at ``since`` (steady seconds) may be written."""
        while (left_s := patience_s(self.writing) - (self._clock.monotonic() - since)) > 0:
            waits: list[Coroutine[Any, Any, object]] = [self._written.wait(self._written.count)]
            if left_s < math.inf:
                waits.append(self._clock.sleep(left_s))
            await first_of(*waits)

    async def _write_group(self, notes: Sequence[tuple[EventNote, float]]) -> None:
        try:
            await self._write(notes)
        except Exception:  # noqa: BLE001 - an internal error must not end the writer
            self.dropped += len(notes)
        finally:
            self.writing -= 1
            self._written.notify()
            for _ in notes:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until everything queued so far is written or dropped."""
        await self._queue.join()

    async def _write(self, notes: Sequence[tuple[EventNote, float]]) -> None:
        now, new = self._clock.now(), defaultdict[str, list[tuple[tuple[str, ...], bytes]]](list)
        for note, moment in notes:
            regarding = note.regarding
            key = (
                regarding.get("uid", ""),
                regarding.get("name", ""),
                note.reason,
                note.action,
                note.text,
                note.reporter,
                (note.related or {}).get("uid", ""),
            )
            series = self._series.get(key)
            try:
                if series is not None and now - series.written < FORGET_S:
                    await self._count(key, series, now)
                else:
                    namespace = regarding.get("namespace") or "default"
                    document = self._begun(key, note, namespace, now, moment)
                    new[namespace].append((key, document))
            except Exception:  # noqa: BLE001 - an event that cannot be written (a plugin's broken text) is dropped
                self.dropped += 1
        for namespace, begun in new.items():
            await self._post(namespace, begun)

    async def _count(self, key: tuple[str, ...], series: _Series, now: float) -> None:
        """Count one more event of a series; write the count now or with a later event."""
        series.count += 1
        if now - series.written < SERIES_S or not self._series_pace.try_accept():
            return
        series.written = now
        self._series.move_to_end(key)
        body = {"series": {"count": series.count, "lastObservedTime": micro_time(now)}}
        path = f"/apis/events.k8s.io/v1/namespaces/{series.namespace}/events/{series.name}"
        try:
            await self._session.request("PATCH", path, body, content_type=MERGE_PATCH)
        except NotFound:
            self._series.pop(key, None)  # it may have been forgotten

    def _begun(
        self, key: tuple[str, ...], note: EventNote, namespace: str, now: float, moment: float
    ) -> bytes:
        """Begin a series; returns the JSON of its first event, which bears the given time."""
        self._made += 1
        name = f"{note.regarding.get('name', '')[:200]}.{int(now * 1e6):x}{self._made:x}"
        document = orjson.dumps(self._document(note, name, namespace, moment))
        self._series[key] = _Series(name, namespace, 1, now, now)
        self._series.move_to_end(key)
        self._forget(now)
        return document

    def _forget(self, now: float) -> None:
        """Forget series that have ended, and the oldest ones above the limit: each takes a kilobyte."""
        while self._series:
            oldest = next(iter(self._series.values()))
            if len(self._series) <= REMEMBERED and now - oldest.written < FORGET_S:
                return
            self._series.popitem(last=False)

    async def _post(self, namespace: str, begun: Sequence[tuple[tuple[str, ...], bytes]]) -> None:
        """Write new events of a namespace in one group; repeat those without a response once.

        An event that already exists was created by a request whose response was lost.
        """
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        results = await self._session.write_all("POST", [(path, body) for _, body in begun])
        is_reached = results[0].verdict is not WriteOutcome.UNKNOWN
        for (key, body), first in zip(begun, results, strict=True):
            result = first
            if is_reached and first.verdict is WriteOutcome.UNKNOWN:
                [result] = await self._session.write_all("POST", [(path, body)])
                is_reached = result.verdict is not WriteOutcome.UNKNOWN
                if result.verdict is WriteOutcome.CONFLICT:
                    continue
            if not result.is_done:
                self.dropped += 1
                self._series.pop(key, None)  # there is no event whose count could be raised

    def _document(self, note: EventNote, name: str, namespace: str, now: float) -> dict[str, Any]:
        document: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time(now),
            "reportingController": note.reporter,
            "reportingInstance": self._instance,
            "action": note.action,
            "reason": note.reason,
            "regarding": dict(note.regarding),
            "note": shortened(note.text),
            "type": "Warning" if note.is_warning else "Normal",
        }
        if note.related is not None:
            document["related"] = dict(note.related)
        return document


def micro_time(seconds: float) -> str:
    """The time in RFC 3339 with microseconds."""
    whole, micro = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_second(whole)}.{micro:06}Z"


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def shortened(text: str) -> str:
    """The text cut to NOTE_BYTES bytes as in kube-scheduler: 1020 bytes and " ..."."""
    encoded = text.encode()
    if len(encoded) <= NOTE_BYTES:
        return text
    return encoded[: NOTE_BYTES - 4].decode(errors="ignore") + " ..."
