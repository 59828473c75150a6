"""Reflectors list and watch resources, and pass on batches of events.

Called by ``app`` for each hot resource. A reflector survives everything the server does: 410 and long
silence mean listing again, refusals back off with jitter, an object that cannot be decoded is named,
counted and skipped. Bookmarks keep the resource version fresh, so that a resume rarely lists.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from plimsoll.cluster.listed_objects import NAMED, event_of, read_object
from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.errors import APIError, Gone, NotFound
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import DecodeError
from plimsoll.model.kinds.watch_event import (
    Synced,
    WatchEvent,
)
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal

#: Objects a page when listing, as client-go's pager.
PAGE = 500

#: Objects that are decoded and handed over before other tasks get their turn: some ten milliseconds.
SLICE = 100

#: Seconds after which the server ends a watch by itself, and without a byte after which we do.
WATCH_S, SILENCE_S = 290, 320.0

#: Back-off after a failure, in seconds: doubled from the first to the last, with jitter.
FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.2, 30.0

#: Seconds after which a resource that the server does not have is requested again.
ABSENT_S = 60.0

#: A watch that ends within so many seconds without an event counts as a failure.
SHORT_S = 1.0

#: Failures after which a watch goes on where it was: no answer, a server that is busy, or credentials and
#: rights that it refuses.
RESUMABLE = (0, 401, 403, 429, 503)


class _Listed(msgspec.Struct, rename="camel"):
    class Meta(msgspec.Struct, rename="camel"):
        resource_version: str = ""
        continue_: str = msgspec.field(default="", name="continue")

    metadata: Meta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Failure(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


_LISTED = msgspec.json.Decoder(_Listed)
_EVENT = msgspec.json.Decoder(_Event)
_FAILURE = msgspec.json.Decoder(_Failure)

T = TypeVar("T")

Sink = Callable[[list[WatchEvent]], None]


class Reflector:
    """Mirrors one collection.

    Args:
        sink: Takes batches of events, in order; must not fail.
        observer: Receives lists, failures and skipped objects.

    Attributes:
        listed_from: The monotonic time at which the last complete list was begun; -inf before.
    """

    def __init__(
        self,
        session: Session,
        resource: WatchedResource,
        sink: Sink,
        *,
        clock: Clock,
        randomness: Randomness,
        observer: Observer,
    ) -> None:
        self._session = session
        self._resource = resource
        self._sink = sink
        self._clock = clock
        self._randomness = randomness
        self._observer = observer
        self._objects: dict[str, Any] = {}
        self._version = ""
        self._heard = False  #: whether the present watch has received anything
        self.listed_from = -math.inf
        self._listed = Signal()
        self._needed_from = -math.inf
        self._watching: asyncio.Timeout | None = None

    @property
    def resource(self) -> WatchedResource:
        """What is mirrored."""
        return self._resource

    def list_since(self, moment: float) -> None:
        """List again unless that was begun after ``moment``: a watch may lag behind, a list does not."""
        self._needed_from = moment
        if self.listed_from < moment and self._watching is not None and not self._watching.expired():
            self._watching.reschedule(0)

    async def until_listed(self, moment: float) -> None:
        """Wait for a complete list that was begun at this monotonic time or later."""
        await self._listed.until(lambda: self.listed_from >= moment)

    async def run(self) -> None:
        """Mirror until cancelled."""
        backoff_s = FIRST_BACKOFF_S
        too_old = 0
        while True:
            self._heard = False
            status = 0
            began = self._clock.monotonic()
            try:
                while not self._version or self.listed_from < self._needed_from:
                    await self._list()
                try:
                    async with asyncio.timeout(None) as self._watching:
                        await self._watch()
                except TimeoutError:
                    continue  # a list was requested
                finally:
                    self._watching = None
                if self._heard or self._clock.monotonic() - began >= SHORT_S:
                    backoff_s, too_old = FIRST_BACKOFF_S, 0
                    continue
                problem, status = "the watch ended immediately", 200
            except Gone as exc:
                self._version, problem, status = "", str(exc), exc.status
                too_old += 1
                if self._heard or too_old == 1:
                    continue
            except NotFound as exc:
                # A server without this API: nothing to wait for, but it may be installed one day.
                self._answered()
                self._observer.watch_failed(self._resource.name, str(exc), exc.status)
                if not self._version:
                    self._sink([Synced(self._resource.name)])
                self._version = ""
                await self._clock.sleep(ABSENT_S)
                continue
            except (APIError, DecodeError, msgspec.MsgspecError) as exc:
                problem, status = str(exc), exc.status if isinstance(exc, APIError) else 200
                if self._heard:
                    backoff_s = FIRST_BACKOFF_S
                elif not (isinstance(exc, APIError) and exc.status in RESUMABLE):
                    # The same version would bring the same answer, or the same line, for ever.
                    self._version = ""
            self._observer.watch_failed(self._resource.name, problem, status)
            await self._clock.sleep(backoff_s * (0.5 + self._randomness.fraction()))
            backoff_s = min(2 * backoff_s, LAST_BACKOFF_S)

    # ------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Read a complete list, slice by slice; deletions are emitted at the end."""
        began = self._clock.monotonic()
        found: set[str] = set()
        params = {"limit": str(PAGE), **self._selected()}
        while True:
            page = _LISTED.decode(
                await self._session.request("GET", self._resource.path, params=params, timeout_s=120)
            )
            for items in _slices(page.items or ()):
                events: list[WatchEvent] = []
                for item in items:
                    read = self._read(item)
                    if read is not None:
                        found.add(read[0])
                        events += self._stored(*read)
                await self._hand_over(events)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        for keys in _slices([key for key in self._objects if key not in found]):
            await self._hand_over([event_of(self._objects.pop(key), None) for key in keys])
        self._version, self.listed_from = page.metadata.resource_version, began
        self._observer.watch_listed(self._resource.name, len(found))
        self._answered()
        self._sink([Synced(self._resource.name)])
        self._listed.notify()

    def _selected(self) -> dict[str, str]:
        return {"labelSelector": self._resource.selector} if self._resource.selector else {}

    async def _hand_over(self, events: list[WatchEvent]) -> None:
        """Emit a slice, then let other tasks run."""
        if events:
            self._sink(events)
        await asyncio.sleep(0)

    async def _watch(self) -> None:
        params = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            **self._selected(),
        }
        async with self._session.stream(self._resource.path, params, SILENCE_S) as batches:
            self._answered()
            async for lines in batches:
                self._answered()
                for some in _slices(lines):
                    events: list[WatchEvent] = []
                    try:
                        events.extend(self._decoded(some))
                    finally:
                        # What came before a line that breaks the stream is stored, so it must be emitted.
                        if events:
                            self._sink(events)
                    if len(lines) > SLICE:
                        await asyncio.sleep(0)

    def _answered(self) -> None:
        self._observer.watch_heard(self._resource.name, self._clock.now())

    def _decoded(self, lines: Iterable[bytes]) -> Iterable[WatchEvent]:
        for line in lines:
            event = _EVENT.decode(line)
            if event.type == "ERROR":
                failure = _FAILURE.decode(event.object)
                kind = Gone if failure.code == 410 else APIError
                raise kind(f"WATCH {self._resource.path}", failure.code, failure.reason, failure.message)
            named = NAMED.decode(event.object).metadata
            key = f"{named.namespace}/{named.name}"
            if event.type == "DELETED":
                old = self._objects.pop(key, None)
                if old is not None:
                    read = self._read(event.object)
                    yield event_of(read[1] if read else old, None)
            elif event.type in ("ADDED", "MODIFIED"):
                read = self._read(event.object)
                if read is not None:
                    yield from self._stored(key, read[1])
                elif key in self._objects:
                    yield event_of(self._objects.pop(key), None)
            self._version = named.resource_version or self._version
            self._heard = True

    def _read(self, document: msgspec.Raw) -> tuple[str, Any] | None:
        """Key and model value; None for an object that cannot be read."""
        value, key, problems = read_object(self._resource.kind, document)
        for problem in problems:
            self._observer.object_skipped(self._resource.name, key, problem)
        return None if value is None else (key, value)

    def _stored(self, key: str, new: Any) -> tuple[WatchEvent, ...]:
        """The event of a new state; an object recreated under its name in the meantime is another one."""
        old = self._objects.get(key)
        self._objects[key] = new
        if old is None:
            return (event_of(None, new),)
        if old.metadata.uid != new.metadata.uid:
            return event_of(old, None), event_of(None, new)
        if old.metadata.resource_version == new.metadata.resource_version:
            return ()
        return (event_of(old, new),)


def _slices(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[first : first + SLICE] for first in range(0, len(items), SLICE))
