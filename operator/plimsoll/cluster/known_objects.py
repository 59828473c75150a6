"""KnownObjects are the latest states of one collection, and find what a new list of it no longer has."""

from collections.abc import Iterator
from typing import Any


class KnownObjects:
    """Objects by namespace and name.

    A list that breaks off leaves all objects known: those that it had not come to count when it begins again.

    Attributes:
        is_listing: Whether a list is under way, or has broken off: what it shows comes in no order.
    """

    def __init__(self) -> None:
        self.is_listing = False
        self._objects: dict[str, dict[str, Any]] = {}
        self._earlier: dict[str, dict[str, Any]] = {}  #: of before the list, without those that it has shown

    def __len__(self) -> int:
        return sum(map(len, self._objects.values())) + sum(map(len, self._earlier.values()))

    def find(self, namespace: str, name: str) -> Any | None:
        """The latest state of an object; None when it is not known."""
        for known in (self._objects, self._earlier):
            found = known.get(namespace, {}).get(name)
            if found is not None:
                return found
        return None

    def put(self, new: Any) -> Any | None:
        """Set the state of an object, which the list shows if one is under way; its state before."""
        meta = new.metadata
        old = self._earlier[meta.namespace].pop(meta.name, None) if meta.namespace in self._earlier else None
        here = self._objects.setdefault(meta.namespace, {})
        if old is None:
            old = here.get(meta.name)
        here[meta.name] = new
        return old

    def pop(self, namespace: str, name: str) -> Any | None:
        """Forget an object; its latest state, None when it was not known."""
        for known in (self._objects, self._earlier):
            found = known.get(namespace, {}).pop(name, None)
            if found is not None:
                return found
        return None

    def begin_list(self) -> None:
        """A list begins; if another one broke off, nothing of it counts as shown."""
        for namespace, shown in self._objects.items():
            self._earlier.setdefault(namespace, {}).update(shown)
        self._objects = {}
        self.is_listing = True

    def end_list(self) -> Iterator[Any]:
        """The list is complete: forget the objects that it has not shown, one after the other."""
        for earlier in self._earlier.values():
            while earlier:
                yield earlier.popitem()[1]
        self._earlier = {}
        self.is_listing = False
