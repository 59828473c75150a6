"""Keeps the latest states of one collection, and finds the objects that a new list of it lacks."""

from collections.abc import Iterator
from typing import Any


class KnownObjects:
    """Objects by namespace and name.

    If a list breaks off, all objects stay known, and the next list starts over.

    Attributes:
        is_listing: Whether a list is under way or has broken off; then objects arrive in no order.
        is_again: Whether such a list shows objects that are known from before it.
    """

    def __init__(self) -> None:
        self.is_listing = self.is_again = False
        self._objects: dict[str, dict[str, Any]] = {}
        self._earlier: dict[str, dict[str, Any]] = {}  #: from before the list, not listed yet

    def __len__(self) -> int:
        return sum(map(len, self._objects.values())) + sum(map(len, self._earlier.values()))

    def find(self, namespace: str, name: str) -> Any | None:
        """The latest state of an object; None if it is not known."""
        for known in (self._objects, self._earlier):
            found = known.get(namespace, {}).get(name)
            if found is not None:
                return found
        return None

    def put(self, new: Any) -> Any | None:
        """Set the state of an object, which counts as listed during a list; returns its state before."""
        meta = new.metadata
        old = self._earlier[meta.namespace].pop(meta.name, None) if meta.namespace in self._earlier else None
        here = self._objects.setdefault(meta.namespace, {})
        if old is None:
            old = here.get(meta.name)
        here[meta.name] = new
        return old

    def pop(self, namespace: str, name: str) -> Any | None:
        """Remove an object; returns its latest state, None if it was not known."""
        for known in (self._objects, self._earlier):
            found = known.get(namespace, {}).pop(name, None)
            if found is not None:
                return found
        return None

    def begin_list(self) -> None:
        """Begin a list; after a list that broke off, no object counts as listed."""
        for namespace, shown in self._objects.items():
            self._earlier.setdefault(namespace, {}).update(shown)
        self._objects = {}
        self.is_listing = True
        self.is_again = any(self._earlier.values())

    def end_list(self) -> Iterator[Any]:
        """Complete the list: yield and remove the objects that it has not shown."""
        for earlier in self._earlier.values():
            while earlier:
                yield earlier.popitem()[1]
        self._earlier = {}
        self.is_listing = self.is_again = False
