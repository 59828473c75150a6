"""A dict layered on top of another one that does not change and is shared by all copies.

A copy of a dict increments the reference count of each key and value, and so writes to the memory of all of
them: in a fork of the process that copies almost every page (docs/adr/0028-plans-in-forks.md). A copy of a
layered dict copies only what has changed since the layer below was made.
"""

from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import Any, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class LayeredDict(MutableMapping[K, V]):
    """A dict with the full behaviour of a dict, including its order.

    Args:
        below: The layer below; it must not change any more.
    """

    __slots__ = ("_above", "_below", "_gone", "_replaced")

    def __init__(self, below: dict[K, V]) -> None:
        self._below = below
        self._replaced: dict[K, V] = {}  #: new values of keys below
        self._gone: set[K] = set()  #: deleted keys of the layer below
        self._above: dict[K, V] = {}  #: keys that are not below, or were deleted there

    @property
    def changes(self) -> int:
        """Number of keys that differ from the layer below."""
        return len(self._above) + len(self._gone) + len(self._replaced)

    def copy(self) -> "LayeredDict[K, V]":
        """An independent copy with the same content, at the cost of the changes."""
        if 2 * self.changes > len(self._below):
            return LayeredDict(dict(self.items()))
        twin = LayeredDict(self._below)
        twin._replaced = dict(self._replaced)
        twin._gone = set(self._gone)
        twin._above = dict(self._above)
        return twin

    def __getitem__(self, key: K) -> V:
        """The value; KeyError without one."""
        if key in self._above:
            return self._above[key]
        if key in self._gone:
            raise KeyError(key)
        return self._replaced[key] if key in self._replaced else self._below[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        """The value, or the default."""
        if key in self._above:
            return self._above[key]
        if key in self._gone:
            return default
        return self._replaced[key] if key in self._replaced else self._below.get(key, default)

    def __contains__(self, key: object) -> bool:
        """Whether the key has a value."""
        return key in self._above or (key in self._below and key not in self._gone)

    def __setitem__(self, key: K, value: V) -> None:
        """Replace the value in place, or append the key."""
        if key in self._below and key not in self._gone:
            self._replaced[key] = value
        else:
            self._above[key] = value

    def __delitem__(self, key: K) -> None:
        """Delete the key; KeyError without one."""
        if key in self._above:
            del self._above[key]
        elif key in self._below and key not in self._gone:
            self._gone.add(key)
            self._replaced.pop(key, None)
        else:
            raise KeyError(key)

    def __len__(self) -> int:
        """Number of keys."""
        return len(self._below) - len(self._gone) + len(self._above)

    def __iter__(self) -> Iterator[K]:
        """The keys in the order of insertion."""
        for key, _ in self.pairs():
            yield key

    def items(self) -> ItemsView[K, V]:
        """Keys and values in that order."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """The values in that order."""
        return _Values(self)

    def pairs(self) -> Iterator[tuple[K, V]]:
        """Keys and values in that order, each without a search for the key."""
        gone, replaced = self._gone, self._replaced
        if gone or replaced:
            for key, value in self._below.items():
                if key not in gone:
                    yield key, replaced.get(key, value)
        else:
            yield from self._below.items()
        yield from self._above.items()


class _Items(ItemsView[K, V]):
    """As a dict's; a mapping's own would search for each key."""

    _mapping: LayeredDict[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._mapping.pairs()


class _Values(ValuesView[V]):
    """As a dict's; a mapping's own would search for each key."""

    _mapping: LayeredDict[Any, V]

    def __iter__(self) -> Iterator[V]:
        for _, value in self._mapping.pairs():
            yield value


def halved(content: Mapping[K, V]) -> tuple[LayeredDict[K, V], LayeredDict[K, V]]:
    """Two independent copies on one layer below: the replacement of ``content``, and another one.

    A plain dict becomes the layer below and must not be written to any more. The content is copied only if a
    sixteenth has changed since that layer was made.
    """
    if isinstance(content, LayeredDict) and content.changes * 16 <= len(content) + 1_024:
        return content, content.copy()
    below = content if isinstance(content, dict) else dict(content.items())
    return LayeredDict(below), LayeredDict(below)


def layered(content: Mapping[K, V]) -> LayeredDict[K, V]:
    """A copy that can be copied cheaply."""
    return content.copy() if isinstance(content, LayeredDict) else LayeredDict(dict(content))
