"""Serves watches: initial events, changes, bookmarks, timeouts.

A watcher is a queue of lines that is filled at each commit; lines of untransformed objects are encoded once
and shared. As upstream, a watcher that does not read is closed when its queue is full; the client resumes.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from typing import TYPE_CHECKING

import orjson

from roadstead.server.lists import too_large
from roadstead.store.store import Change, Entry, event_line
from roadstead.values.status_errors import StatusError, expired

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from roadstead.server.lists import ListOptions
    from roadstead.store.api import Api
    from roadstead.store.store import Collection, EventType
    from roadstead.values.resources import Obj, Resource

    Runner = Callable[[Callable[[], bytes]], Awaitable[bytes]]

#: Seconds between bookmarks, and seconds from the last bookmark to the end of a watch.
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0
#: Seconds after which a watch without a timeout ends.
DEFAULT_TIMEOUT_SECONDS = 1800.0
#: Minimum seconds between two writes to one watcher; lines that come sooner are sent together.
PAUSE_SECONDS = 0.01
#: Seconds until an object is converted again that a webhook could not convert.
RETRY_SECONDS = 1.0
#: Initial objects of a watch per write to the client.
INITIAL = 200
#: Lines that a slow reader may lag behind.
BACKLOG = 200_000

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


async def _unasked(lines: Callable[[], bytes]) -> bytes:
    """Run what asks no webhook."""
    return lines()


class Watcher:
    """One watch of one client.

    Args:
        api: the API that notifies of changes.
        resource: the resource, in the version that the client requested.
        namespace: the namespace; None for all.
        options: version, selectors, bookmarks, timeout.
        render: transforms an object into the requested form; None for the object itself.
        run: runs what may ask webhooks that convert objects; None: nothing does.

    Raises:
        StatusError: 400, if a selector is malformed; 504, if the version is in the future; 429, if a webhook
            cannot convert the objects.
        Unanswered: a webhook is to convert them.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        namespace: str | None,
        options: ListOptions,
        render: Callable[[Obj], Obj] | None = None,
        run: Runner | None = None,
    ) -> None:
        self._api = api
        self._resource = resource
        self._namespace = namespace
        self._options = options
        self._render = render
        self._run = run or _unasked
        self._chosen = api.matcher(resource, options.labels, options.fields)
        self._collection: Collection = api.store.collection(resource.collection)
        self._initial: list[Entry] = []
        self._lines: deque[bytes | Change] = deque()  # changes: still to be converted by a webhook
        self._ready = asyncio.Event()
        self._over = False
        self._start()

    def _start(self) -> None:
        options, store = self._options, self._api.store
        asked = int(options.version) if options.version else 0
        if asked > store.revision:
            raise too_large(asked, store.revision)
        initial = options.send_initial if options.send_initial is not None else asked == 0
        if initial:
            candidates = self._api.candidates(self._resource, self._namespace, options.fields)
            if self._api.asks(self._resource):  # before the watch is answered
                self._check_conversion(candidates)
            self._initial = self._api.selected(self._resource, candidates, self._chosen)
            if options.send_initial and options.bookmarks:
                self._lines.append(self._bookmark(INITIAL_EVENTS_END))
        elif asked:
            if asked < self._collection.complete_since:
                self._fail(expired(f"too old resource version: {asked} ({self._collection.complete_since})"))
                return
            for change in self._collection.since(asked):
                self._take(change)
                change.forget()
        self._collection.subscribers.append(self._take)
        self._collection.at_end.append(self.close)
        self._ready.set()

    def _check_conversion(self, entries: list[Entry]) -> None:
        """Raise 429 if a webhook cannot convert objects: kube-apiserver cannot fill its cache then."""
        try:
            self._api.all_served(self._resource, entries)
        except StatusError as error:
            what = f"{self._resource.api_version}, Kind={self._resource.kind}"
            why = f"storage is (re)initializing: failed to list {what}: {error.message}"
            raise StatusError(429, "TooManyRequests", why, retry_after=1) from error

    def close(self) -> None:
        """Unsubscribe from changes."""
        self._over = True
        self._ready.set()
        if self._take in self._collection.subscribers:
            self._collection.subscribers.remove(self._take)
            self._collection.at_end.remove(self.close)

    def _take(self, change: Change) -> None:
        """Queue a change if it concerns this watch."""
        namespace = change.entry.obj["metadata"].get("namespace")
        if self._namespace is not None and namespace != self._namespace:
            return
        line = change if self._api.asks(self._resource) else self._event(change)
        if not line:
            return
        self._lines.append(line)
        self._ready.set()
        if len(self._lines) > BACKLOG:
            self.close()

    def _event(self, change: Change) -> bytes:
        """The line of a change; empty if it does not concern this watch.

        Raises:
            As ``Api.served``.
        """
        entry, previous = change.entry, change.previous
        is_plain = self._render is None and entry.obj["apiVersion"] == self._resource.api_version
        if self._chosen is None:
            return change.line if is_plain else self._line(change.type, entry)
        if self._api.asks(self._resource):
            entry = self._api.served(self._resource, entry)
            previous = previous and self._api.served(self._resource, previous)
        now = change.type != "DELETED" and self._chosen(entry.obj)
        before = previous is not None and self._chosen(previous.obj)
        if now:
            kind: EventType = "MODIFIED" if before else "ADDED"
            return change.line if kind == change.type and is_plain else self._line(kind, entry)
        if not before or previous is None:
            return b""
        # The object as it was when it was last selected, with the version of the change.
        last = {
            **previous.obj,
            "metadata": {**previous.obj["metadata"], "resourceVersion": str(change.revision)},
        }
        if change.type == "DELETED":
            last = entry.obj if self._chosen(entry.obj) else last
        return self._line("DELETED", Entry(last, change.revision))

    def _line(self, kind: str, entry: Entry) -> bytes:
        served = self._api.served(self._resource, entry)
        if self._render is None:
            return event_line(kind, served.raw)
        return event_line(kind, orjson.dumps(self._render(served.obj)))

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Obj = {"resourceVersion": str(self._api.store.revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._render is not None:
            mark = self._render(mark)
        return event_line("BOOKMARK", orjson.dumps(mark))

    def _fail(self, error: StatusError) -> None:
        self._lines.append(event_line("ERROR", orjson.dumps(error.status)))
        self._over = True
        self._ready.set()

    def _added(self, entries: list[Entry]) -> bytes:
        """The lines of initial objects."""
        return b"".join([self._line("ADDED", entry) for entry in entries])

    async def _queued(self) -> bytes:
        """The lines that are queued, up to the first change that a webhook must convert, or that one."""
        lines = self._lines
        first = lines[0]
        if isinstance(first, Change):
            line = await self._run(lambda: self._event(first))
            lines.popleft()
            return line
        found: list[bytes] = []
        while lines and not isinstance(lines[0], Change):
            found.append(lines.popleft())  # type: ignore[arg-type] # of bytes
        return b"".join(found)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Bytes to send, until the watch ends."""
        loop = asyncio.get_running_loop()
        timeout = self._options.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
        end = loop.time() + timeout
        next_mark = min(
            loop.time() + BOOKMARK_SECONDS, max(end - LAST_BOOKMARK_SECONDS, loop.time() + timeout / 2)
        )
        sent = 0.0
        try:
            initial, self._initial = self._initial, []
            for first in range(0, len(initial), INITIAL):  # encoded as they are read: there may be many
                part = initial[first : first + INITIAL]
                yield await self._run(functools.partial(self._added, part))
            del initial
            while True:
                if self._lines:
                    # Under load, a short wait combines many lines in one write.
                    pause = sent + PAUSE_SECONDS - loop.time()
                    if pause > 0:
                        await asyncio.sleep(pause)
                    sent = loop.time()
                    try:
                        chunk = await self._queued()
                    except StatusError:  # as upstream, the event waits until it can be converted
                        if self._over or loop.time() + RETRY_SECONDS >= end:
                            return
                        await asyncio.sleep(RETRY_SECONDS)
                        continue
                    if chunk:
                        yield chunk
                    continue
                if self._over:
                    return
                now = loop.time()
                if now >= end:
                    return
                if self._options.bookmarks and now >= next_mark:
                    next_mark = now + BOOKMARK_SECONDS
                    if end - LAST_BOOKMARK_SECONDS > now:
                        next_mark = min(next_mark, end - LAST_BOOKMARK_SECONDS)
                    yield self._bookmark()
                    continue
                self._ready.clear()
                wake = min(end, next_mark) if self._options.bookmarks else end
                try:
                    async with asyncio.timeout(wake - now):
                        await self._ready.wait()
                except TimeoutError:
                    continue
        finally:
            self.close()
