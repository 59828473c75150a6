"""Stores objects by resource, with one counter of versions and the recent changes of each collection.

All methods are synchronous: between two awaits a reader sees one state. Returned objects are shared and never
mutated; a write replaces the object. An object is encoded once; all responses share the bytes.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

from roadstead.store.managed_fields import Managers, rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from roadstead.values.resources import Obj

_LOG = logging.getLogger(__name__)

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]  # namespace ("" for cluster-scoped objects), name

#: Changes that a collection keeps; a watch from an earlier version is rejected with 410.
HISTORY = 20_000
#: Number of store versions for which a collection keeps a change; otherwise a collection that changes twice a
#: second would grow for hours.
SPAN = 60_000


class Entry:
    """A version of an object, its bytes made on first use."""

    __slots__ = ("_raw", "converted", "managers", "obj", "revision")

    def __init__(self, obj: Obj, revision: int, managers: Managers = ()) -> None:
        self.obj = obj
        self.revision = revision
        self.managers = managers
        self._raw: bytes | None = None
        self.converted: dict[str, Entry] | None = None  # by apiVersion, where served in other versions

    @property
    def raw(self) -> bytes:
        """The object as JSON, with its managedFields."""
        if self._raw is None:
            self._raw = rendered(self.obj, self.managers)
        return self._raw

    def forget(self) -> None:
        """Drop the bytes of a replaced version; later readers encode it again."""
        self._raw = None
        self.converted = None


class Change:
    """One committed write."""

    __slots__ = ("_line", "entry", "previous", "revision", "type")

    def __init__(self, kind: EventType, entry: Entry, previous: Entry | None) -> None:
        self.type = kind
        self.entry = entry
        self.previous = previous
        self.revision = entry.revision
        self._line: bytes | None = None

    @property
    def line(self) -> bytes:
        """The change as a line of a watch, made once for all watchers."""
        if self._line is None:
            self._line = event_line(self.type, self.entry.raw)
        return self._line

    def forget(self) -> None:
        """Drop the encoded line after the commit was announced; later readers encode it again."""
        self._line = None
        if self.type == "DELETED":
            self.entry.forget()
        if self.previous is not None:
            self.previous.forget()


def event_line(kind: str, raw: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


class Collection:
    """The objects of one resource, in the order of their keys, with indexes and recent changes."""

    def __init__(self, revision: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self._order: list[Key] = []
        self._indexes: dict[str, tuple[Callable[[Obj], list[str]], dict[str, dict[Key, Entry]]]] = {}
        self.changes: deque[Change] = deque()
        #: A watch may resume from this version or a later one.
        self.complete_since = revision
        self.subscribers: list[Callable[[Change], None]] = []
        #: Called when the resource is no longer served.
        self.at_end: list[Callable[[], None]] = []

    def add_index(self, name: str, function: Callable[[Obj], list[str]]) -> None:
        """Index objects by the values that a function returns."""
        self._indexes[name] = (function, {})
        for key, entry in self.entries.items():
            self._enter(name, key, entry)

    def indexed(self, name: str, value: str) -> list[Entry]:
        """The objects with this value in the index, in the order of their keys."""
        found = self._indexes[name][1].get(value, {})
        return [found[key] for key in sorted(found)]

    def has_index(self, name: str) -> bool:
        """Whether the index exists."""
        return name in self._indexes

    def _enter(self, name: str, key: Key, entry: Entry) -> None:
        function, buckets = self._indexes[name]
        for value in function(entry.obj):
            buckets.setdefault(value, {})[key] = entry

    def _leave(self, name: str, key: Key, entry: Entry) -> None:
        function, buckets = self._indexes[name]
        for value in function(entry.obj):
            bucket = buckets.get(value)
            if bucket is not None:
                bucket.pop(key, None)
                if not bucket:
                    del buckets[value]

    def put(self, key: Key, entry: Entry) -> Entry | None:
        """Set the object of a key; returns the previous one."""
        previous = self.entries.get(key)
        self.entries[key] = entry
        if previous is None:
            insort(self._order, key)
        for name in self._indexes:
            if previous is not None:
                self._leave(name, key, previous)
            self._enter(name, key, entry)
        return previous

    def drop(self, key: Key) -> Entry:
        """Remove the object of a key."""
        entry = self.entries.pop(key)
        del self._order[bisect_left(self._order, key)]
        for name in self._indexes:
            self._leave(name, key, entry)
        return entry

    def note(self, change: Change) -> None:
        """Keep a change for watches that resume, and drop old ones."""
        changes = self.changes
        changes.append(change)
        while len(changes) > HISTORY or changes[0].revision <= change.revision - SPAN:
            self.complete_since = changes.popleft().revision

    def ordered(self, namespace: str | None = None, after: Key | None = None) -> Iterator[Key]:
        """Keys in order, of one namespace or of all, after a key."""
        order = self._order
        start: Key = ("", "") if namespace is None else (namespace, "")
        position = bisect_left(order, max(start, after) if after else start)
        while position < len(order):
            key = order[position]
            if namespace is not None and key[0] != namespace:
                return
            if key != after:
                yield key
            position += 1

    def since(self, revision: int) -> list[Change]:
        """The changes after a version."""
        changes = self.changes
        low, high = 0, len(changes)
        # A deque is slow in its middle; most watches resume near the end, so walk back from there.
        recent: list[Change] = []
        if high and changes[low].revision > revision:
            return list(changes)
        for change in reversed(changes):
            if change.revision <= revision:
                break
            recent.append(change)
        recent.reverse()
        return recent


def _call(subscriber: Callable[..., None], *arguments: Any) -> None:
    """Call a subscriber; its failure does not affect the write."""
    try:
        subscriber(*arguments)
    except Exception:  # noqa: BLE001 - the other subscribers are called all the same
        _LOG.exception("a subscriber failed")


class Store:
    """All collections and the one counter of versions."""

    def __init__(self) -> None:
        self.revision = 1
        self._collections: dict[str, Collection] = {}
        self._pending: deque[tuple[str, Collection, Change]] = deque()
        self._notifying = False
        self._followers: list[Callable[[str, Change], None]] = []

    def follow(self, follower: Callable[[str, Change], None]) -> None:
        """Call a follower with the collection's name after each commit of any resource."""
        self._followers.append(follower)

    def everything(self) -> Iterator[tuple[str, Entry]]:
        """All objects with the names of their collections."""
        for name, collection in list(self._collections.items()):
            for entry in list(collection.entries.values()):
                yield name, entry

    def collection(self, name: str) -> Collection:
        """A collection; created on first use."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(self.revision)
        return found

    def forget(self, name: str) -> None:
        """Drop a collection, as when its definition is deleted; its watches end."""
        dropped = self._collections.pop(name, None)
        for end in tuple(dropped.at_end) if dropped is not None else ():
            end()

    def forget_history(self, name: str) -> None:
        """Drop the earlier versions of a collection: a watch from any of them is rejected with 410."""
        self.revision += 1
        collection = self.collection(name)
        collection.changes.clear()
        collection.complete_since = self.revision

    def restore(self, revisions: Mapping[tuple[str, Key], int]) -> None:
        """Delete every object, except those still at the given version; ignores finalizers.

        Args:
            revisions: versions by collection and key.
        """
        present = [(name, key) for name, held in self._collections.items() for key in held.entries]
        for name, key in present:
            collection = self._collections.get(name)  # removed together with the definition of its resource
            entry = collection.entries.get(key) if collection else None
            if entry is not None and revisions.get((name, key)) != entry.revision:
                last = {**entry.obj, "metadata": dict(entry.obj["metadata"])}
                self.commit(name, "DELETED", key, last, entry.managers)

    def commit(self, name: str, kind: EventType, key: Key, obj: Obj, managers: Managers = ()) -> Entry:
        """Write an object and notify the subscribers.

        Args:
            name: the collection.
            kind: the kind of the change.
            key: its namespace and name.
            obj: the object; the store owns it afterwards and sets its resourceVersion.
            managers: the managers of its fields.
        """
        self.revision += 1
        revision = self.revision
        obj["metadata"]["resourceVersion"] = str(revision)
        collection = self.collection(name)
        entry = Entry(obj, revision, managers)
        previous = collection.drop(key) if kind == "DELETED" else collection.put(key, entry)
        change = Change(kind, entry, previous)
        collection.note(change)
        self._notify(name, collection, change)
        return entry

    def _notify(self, name: str, collection: Collection, change: Change) -> None:
        """Call the subscribers, in the order of the commits even where one of them writes."""
        self._pending.append((name, collection, change))
        if self._notifying:
            return
        self._notifying = True
        try:
            while self._pending:
                of, collected, change = self._pending.popleft()
                for subscriber in tuple(collected.subscribers):
                    _call(subscriber, change)
                for follower in self._followers:
                    _call(follower, of, change)
                change.forget()
        finally:
            self._notifying = False
