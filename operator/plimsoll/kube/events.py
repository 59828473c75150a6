"""Events (events.k8s.io/v1): queued, aggregated into series, written in the background.

A storm of unschedulable pods must not become a storm of writes: an event equal to a recent one (same
object, reason, action and text) raises the count of the first, at most once in SERIES_S and at a bounded
rate; and when the queue is full new events are dropped and counted, never waited for.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from plimsoll.kube.session.errors import NotFound
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote
from plimsoll.timing.rate_limit import Pace

#: Bytes of an event's note.
NOTE_BYTES = 1024

#: Seconds between two writes of one series, and after which an event starts a new one.
SERIES_S, FORGET_S = 60.0, 360.0

#: Series written per second in the long run, and in a burst; the counts of further series wait.
SERIES_PER_S, SERIES_BURST = 20.0, 50

#: Events waiting to be written, and events remembered.
QUEUED, REMEMBERED = 10_000, 20_000

#: Concurrent writers.
WRITERS = 4


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    first: float
    written: float


class EventPoster:
    """Writes events; ``run`` must be running for that.

    Attributes:
        dropped: Events that were dropped because the queue was full.
    """

    def __init__(self, session: Session, clock: Clock, instance: str) -> None:
        self._session = session
        self._clock = clock
        self._instance = instance
        self._queue: asyncio.Queue[EventNote] = asyncio.Queue(QUEUED)
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._series_pace = Pace(clock, SERIES_PER_S, SERIES_BURST)
        self._made = 0
        self.dropped = 0

    def record(self, note: EventNote) -> None:
        """Queue an event."""
        try:
            self._queue.put_nowait(note)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write queued events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write_all(), name="event writer")

    async def _write_all(self) -> None:
        while True:
            note = await self._queue.get()
            try:
                await self._write(note)
            except Exception:  # noqa: BLE001 - an event that cannot be written (a plugin's broken text) is dropped
                self.dropped += 1
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until everything queued so far is written or dropped."""
        await self._queue.join()

    async def _write(self, note: EventNote) -> None:
        now = self._clock.now()
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
        if series is not None and now - series.written < FORGET_S:
            series.count += 1
            if now - series.written < SERIES_S or not self._series_pace.try_accept():
                return  # counted; written with a later one
            series.written = now
            body = {"series": {"count": series.count, "lastObservedTime": micro_time(now)}}
            path = f"/apis/events.k8s.io/v1/namespaces/{series.namespace}/events/{series.name}"
            try:
                await self._session.request("PATCH", path, body, content_type=MERGE_PATCH)
            except NotFound:
                self._series.pop(key, None)  # it may be forgotten by now
            return
        namespace = regarding.get("namespace") or "default"
        self._made += 1
        name = f"{regarding.get('name', '')[:200]}.{int(now * 1e6):x}{self._made:x}"
        self._series[key] = _Series(name, namespace, 1, now, now)
        while len(self._series) > REMEMBERED:
            self._series.popitem(last=False)
        try:
            await self._session.request(
                "POST",
                f"/apis/events.k8s.io/v1/namespaces/{namespace}/events",
                self._document(note, name, namespace, now),
            )
        except Exception:
            self._series.pop(key, None)  # there is nothing that a later one could add to
            raise

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
    """RFC 3339 with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def shortened(text: str) -> str:
    """At most NOTE_BYTES bytes, cut as kube-scheduler cuts: 1020 bytes and " ..."."""
    encoded = text.encode()
    if len(encoded) <= NOTE_BYTES:
        return text
    return encoded[: NOTE_BYTES - 4].decode(errors="ignore") + " ..."
