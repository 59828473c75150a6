"""Reflectors list and watch resources, and emit batches of events.

A list is streamed if the server supports it (WatchList: the watch begins with all objects, and a bookmark
marks their end); a stream holds only a slice in memory. Otherwise the list is read page by page.

``app`` runs one reflector for each hot resource. A reflector survives every failure of the server. After a
410 or long silence it lists again; after a refusal it backs off with jitter; an object that cannot be decoded
is reported, counted and skipped. Bookmarks keep the resource version fresh, so a resume rarely has to list.

A list that is older than what was seen comes from a server that was restored from a backup. Its versions may
come again with other contents, so all is listed and decoded once more.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from plimsoll.cluster.listed_objects import (
    NAMED,
    NamedDocument,
    ObjectReader,
    ObjectState,
    event_of,
    listed_state_of,
    state_of,
)
from plimsoll.cluster.watch_events import (
    Synced,
    WatchEvent,
)
from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.errors import APIError, Gone, NotFound
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import DecodeError, read_with
from plimsoll.model.heavy_memory import apart
from plimsoll.model.heavy_objects import HEAVY_BYTES
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal
from plimsoll.watches.known_objects import KnownObjects
from plimsoll.watches.watch_backoff import WatchBackoff

#: Objects per page of a list, as in client-go's pager.
PAGE = 500

#: Timeout of a page in seconds: an API server aborts a request after a minute (``--request-timeout``).
PAGE_S = 65.0

#: Objects that are decoded and emitted before other tasks run: some ten milliseconds.
SLICE = 100

#: Seconds after which the server ends a watch by itself, and seconds without a byte after which we end it.
WATCH_S, SILENCE_S = 290, 320.0

#: Seconds without an object after which an incomplete streamed list is abandoned: a server that does not
#: support streamed lists ignores the parameters.
STREAM_SILENCE_S = 30.0

#: The annotation of the bookmark that ends a streamed list.
COMPLETE = "k8s.io/initial-events-end"

#: Statuses with which servers refuse streamed lists: an older server calls resourceVersionMatch invalid, a
#: server with etcd 3.4, which does not report progress, has an internal error.
NO_STREAMS = (400, 422, 500)

#: Seconds between two requests for a resource that the server does not have.
ABSENT_S = 60.0

#: A watch that ends within so many seconds without an event counts as a failure.
SHORT_S = 1.0

#: Statuses after which a watch resumes at its resource version: no response, a busy server, or credentials
#: and rights that the server refuses.
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
        sink: Receives batches of events, in order; must not fail.
        observer: Receives lists, failures and skipped objects.
        streaming: Whether to request streamed lists.

    Attributes:
        known: The objects of the collection.
        listed_from: The monotonic time at which the last complete list began; -inf before.
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
        streaming: bool = False,
    ) -> None:
        self._session = session
        self._resource = resource
        self._reader = ObjectReader(resource.kind)
        self._streaming = streaming
        self._sink = sink
        self._clock = clock
        self._randomness = randomness
        self._observer = observer
        self.known = KnownObjects()
        self._version = ""
        self._latest = ""  #: the latest version of the collection that was seen
        self._trusts = True  #: whether a version means one state; after a return to a backup it does not
        self._heard = False  #: whether the current watch has received anything
        self._has_answered = False  #: whether the server has accepted a request since the last failure
        self._opened = math.inf  #: when the current watch was accepted
        #: when the current streamed list began, and the number of its objects so far
        self._begun, self._shown = 0.0, 0
        self.listed_from = -math.inf
        self._listed = Signal()
        self._needed_from = -math.inf
        self._watching: asyncio.Timeout | None = None

    @property
    def resource(self) -> WatchedResource:
        """The mirrored resource."""
        return self._resource

    def list_since(self, moment: float) -> None:
        """List again unless the last list began after ``moment``: a watch may lag behind, a list does not."""
        self._needed_from = max(self._needed_from, moment)
        if self.listed_from < moment and self._watching is not None and not self._watching.expired():
            self._watching.reschedule(0)

    async def until_listed(self, moment: float) -> None:
        """Wait for a complete list that began at this monotonic time or later."""
        await self._listed.until(lambda: self.listed_from >= moment)

    async def run(self) -> None:
        """Mirror until cancelled."""
        backoff = WatchBackoff()
        too_old = 0
        while True:
            self._heard, self._opened = False, math.inf
            status = 0
            try:
                while self._must_list and not self._streaming:
                    await self._list()
                try:
                    async with asyncio.timeout(None) as self._watching:
                        await (self._stream() if self._must_list else self._watch())
                except TimeoutError:
                    continue  # a list was requested, or has to be read page by page
                finally:
                    self._watching = None
                if self._has_watched:
                    backoff.progressed()
                    too_old = 0
                    continue
                problem, status = "the watch ended immediately", 200
            except Gone as exc:
                self._version, problem, status = "", str(exc), exc.status
                too_old += 1
                if self._heard or too_old == 1:
                    continue
            except NotFound as exc:
                # The server does not serve this API; it may be installed later.
                self._answered()
                self._observer.watch_failed(self._resource.name, str(exc), exc.status)
                if not self._version:
                    self._sink([Synced(self._resource.name, is_served=False)])
                self._version = ""
                await self._clock.sleep(ABSENT_S)
                continue
            except (APIError, DecodeError, msgspec.MsgspecError) as exc:
                problem, status = str(exc), exc.status if isinstance(exc, APIError) else 200
                if self._has_watched:
                    backoff.progressed()
                if not self._heard and not (isinstance(exc, APIError) and exc.status in RESUMABLE):
                    # The same version would return the same response, or the same line, forever.
                    self._version = ""
            self._observer.watch_failed(self._resource.name, problem, status)
            await self._clock.sleep(
                backoff.pause_s(status, self._randomness.fraction(), answered=self._has_answered)
            )
            self._has_answered = False

    # ------------------------------------------------------------------------------------------------

    @property
    def _has_watched(self) -> bool:
        """Whether the current watch was useful: it has received something, or was open for a while."""
        return self._heard or self._clock.monotonic() - self._opened >= SHORT_S

    @property
    def _must_list(self) -> bool:
        return not self._version or self.listed_from < self._needed_from

    async def _list(self) -> None:
        """Read a complete list, slice by slice; deletions are emitted at the end."""
        began = self._clock.monotonic()
        self.known.begin_list()
        listed = 0
        params = {"limit": str(PAGE), **self._selected()}
        while True:
            page = read_with(
                _LISTED,
                await self._session.request("GET", self._resource.path, params=params, timeout_s=PAGE_S),
            )
            for items in _slices(page.items or ()):
                with apart(max(map(len, items)) > HEAVY_BYTES):
                    events: list[WatchEvent] = []
                    for item in items:
                        if self.known.is_again and self._is_known(state_of(item)):
                            listed += 1
                            continue
                        value = self._read(item)
                        if value is not None:
                            listed += 1
                            events += self._stored(value)
                    if events:
                        self._sink(events)
                await asyncio.sleep(0)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        for last in _slices(list(self._completed(page.metadata.resource_version, began, listed))):
            await self._hand_over(list(last))

    def _completed(self, version: str, began: float, listed: int) -> Iterable[WatchEvent]:
        """The events at the end of a list: deletions, and that the list is complete.

        Raises:
            Gone: The list is older than what was seen before it: the server was restored from a backup.
        """
        if self._trusts and _number(version) < _number(self._latest):
            self._trusts = False
            raise Gone(f"GET {self._resource.path}", 410, "Expired", "the server has gone back")
        for gone in self.known.end_list():
            self._reader.gone(gone)
            yield event_of(gone, None)
        self._observer.watch_listed(self._resource.name, listed)
        self._answered()
        yield Synced(self._resource.name)
        self._version = self._latest = version
        self._trusts, self.listed_from = True, began
        self._listed.notify()

    def _selected(self) -> dict[str, str]:
        return {"labelSelector": self._resource.selector} if self._resource.selector else {}

    async def _hand_over(self, events: list[WatchEvent]) -> None:
        """Emit a slice, then let other tasks run."""
        if events:
            self._sink(events)
        await asyncio.sleep(0)

    async def _stream(self) -> None:
        """Watch from the beginning, with a complete list first.

        Raises:
            TimeoutError: The server does not stream lists; from now on pages are read.
        """
        self._version, self._begun, self._shown = "", self._clock.monotonic(), 0
        self.known.begin_list()
        try:
            async with asyncio.timeout(STREAM_SILENCE_S) as silence:
                await self._watch(silence)
        except TimeoutError:
            if not silence.expired():
                raise
        except APIError as exc:
            if self._version or exc.status not in NO_STREAMS:
                raise
        if not self._version:
            self._streaming = False
            raise TimeoutError

    async def _watch(self, silence: asyncio.Timeout | None = None) -> None:
        """Read from a watch until the server ends it.

        Args:
            silence: The timeout of a streamed list, which precedes the watch; each of its parts restarts it.
        """
        params = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            **self._selected(),
        }
        if silence is not None:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with self._session.stream(self._resource.path, params, SILENCE_S) as batches:
            self._answered()
            self._opened = self._clock.monotonic()
            async for lines in batches:
                self._answered()
                for some in _slices(lines):
                    with apart(max(map(len, some)) > HEAVY_BYTES):
                        await self._take(some)
                    if len(lines) > SLICE:
                        await asyncio.sleep(0)
                if silence is not None:
                    listed = self._version != ""
                    silence.reschedule(
                        None if listed else asyncio.get_running_loop().time() + STREAM_SILENCE_S
                    )

    async def _take(self, lines: Iterable[bytes]) -> None:
        """Emit the events of some lines; other tasks run only between those of more than a slice."""
        events: list[WatchEvent] = []
        try:
            for event in self._decoded(lines):
                events.append(event)
                if len(events) == SLICE:
                    full, events = events, []
                    await self._hand_over(full)
        finally:
            # The events before a malformed line are stored in ``known``, so they must be emitted.
            if events:
                self._sink(events)

    def _answered(self) -> None:
        self._has_answered = True
        self._observer.watch_heard(self._resource.name, self._clock.now())

    def _decoded(self, lines: Iterable[bytes]) -> Iterable[WatchEvent]:
        for line in lines:
            if self.known.is_again and self._is_known(listed_state_of(line)):
                self._shown += 1
                self._heard = True
                continue
            read = self._reader.line(line)
            kind, new = self._part(line) if read is None else read
            meta = new.metadata
            if kind == "DELETED":
                old = self.known.pop(meta.namespace, meta.name)
                if old is not None:
                    self._reader.gone(old)
                    yield event_of(old if isinstance(new, NamedDocument) else new, None)
            elif kind in ("ADDED", "MODIFIED"):
                if not isinstance(new, NamedDocument):
                    self._shown += 1
                    yield from self._stored(new)
                else:
                    old = self.known.pop(meta.namespace, meta.name)
                    if old is not None:
                        yield event_of(old, None)
            elif kind == "BOOKMARK" and not self._version and COMPLETE in meta.annotations:
                yield from self._completed(meta.resource_version, self._begun, self._shown)
            self._heard = True
            if self._version:  # the parts of a streamed list are not ordered
                self._version = self._latest = meta.resource_version or self._version

    def _part(self, line: bytes) -> tuple[str, Any]:
        """The type and the object of a line; the object is decoded as far as possible.

        Raises:
            APIError: The line reports an error of the server.
        """
        event = read_with(_EVENT, line)
        if event.type == "ERROR":
            failure = read_with(_FAILURE, event.object)
            kind = Gone if failure.code == 410 else APIError
            raise kind(f"WATCH {self._resource.path}", failure.code, failure.reason, failure.message)
        value = self._read(event.object) if event.type != "BOOKMARK" else None
        return event.type, read_with(NAMED, event.object) if value is None else value

    def _read(self, document: msgspec.Raw) -> Any | None:
        """The model value; None for an object that cannot be read."""
        value, key, problems = self._reader.document(document)
        for problem in problems:
            self._observer.object_skipped(self._resource.name, key, problem)
        return value

    def _is_known(self, listed: ObjectState | None) -> bool:
        """Whether an object is listed in the state that is known, so that it need not be decoded."""
        old = None if listed is None else self.known.find(listed.namespace, listed.name)
        if listed is None or old is None:
            return False
        known = old.metadata
        if not self._trusts or known.uid != listed.uid or known.resource_version != listed.resource_version:
            return False
        self.known.put(old)
        return True

    def _stored(self, new: Any) -> tuple[WatchEvent, ...]:
        """The events of a new state; an object that causes an internal error is skipped as if deleted."""
        try:
            return self._changes(new)
        except Exception as exc:  # noqa: BLE001 - an error caused by one object must not stop the others
            meta = new.metadata
            name = f"{meta.namespace}/{meta.name}".removeprefix("/")
            self._observer.object_skipped(self._resource.name, name, repr(exc))
            old = self.known.pop(meta.namespace, meta.name)
            return () if old is None else (event_of(old, None),)

    def _changes(self, new: Any) -> tuple[WatchEvent, ...]:
        """The events of a new state; an object that was recreated under its name is a different one."""
        meta = new.metadata
        old = self.known.find(meta.namespace, meta.name)
        if old is None:
            new = self._reader.sharing(new, None)
            self.known.put(new)
            return (event_of(None, new),)
        before = old.metadata
        is_same = before.uid == meta.uid and before.resource_version == meta.resource_version
        if is_same and (self._trusts or new == old):
            self.known.put(old)
            return ()
        new = self._reader.sharing(new, old)
        self.known.put(new)
        if before.uid != meta.uid:
            return event_of(old, None), event_of(None, new)
        return (event_of(old, new),)


def _number(version: str) -> int:
    """A resource version as a number; 0 if it is not a number."""
    return int(version) if version.isdecimal() else 0


def _slices(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[first : first + SLICE] for first in range(0, len(items), SLICE))
