"""Indexes selectors by the labels that they require, and labels for selectors.

Most selectors require that some label has one of a few values. They are indexed by such pairs, so the
candidates for a pod's labels are found by looking up each of its labels; the other selectors are tried one by
one.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from plimsoll.model.heavy_objects import fitting
from plimsoll.model.selectors import Selector

T = TypeVar("T", bound=Hashable)


def anchor(selector: Selector) -> tuple[tuple[str, str], ...]:
    """Label pairs of which each selected object has one; empty if the selector requires no value."""
    best: tuple[tuple[str, str], ...] = ()
    for requirement in selector.requirements:
        if requirement.operator == "In" and (not best or len(requirement.values) < len(best)):
            best = tuple((requirement.key, value) for value in requirement.values)
    return best


class SelectorLookup(Generic[T]):
    """Items indexed by their selectors; finds those that may select given labels."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str, str], dict[T, None]] = {}
        self._free: dict[T, None] = {}

    def add(self, selector: Selector, item: T) -> None:
        """Add an item."""
        pairs = anchor(selector)
        for pair in pairs:
            self._anchored.setdefault(pair, {})[item] = None
        if not pairs and not selector.matches_nothing:
            self._free[item] = None

    def discard(self, selector: Selector, item: T) -> None:
        """Remove an item that was added with that selector."""
        for pair in anchor(selector):
            filed = self._anchored[pair]
            filed.pop(item, None)
            if not filed:
                del self._anchored[pair]
        self._free.pop(item, None)
        self._anchored, self._free = fitting(self._anchored), fitting(self._free)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Each item whose selector may match; the caller must evaluate it."""
        yield from self._free
        for pair in labels.items():
            yield from self._anchored.get(pair, ())


class LabelLookup(Generic[T]):
    """Items indexed by their labels; finds those that a selector may select.

    Copies share the items of a label until one of them changes it.
    """

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str], dict[T, None]] = {}
        self._all: dict[T, None] = {}
        self._own: set[tuple[str, str]] = set()

    def add(self, labels: Mapping[str, str], item: T) -> None:
        """Add an item."""
        self._all[item] = None
        for pair in labels.items():
            self._writable(pair)[item] = None

    def discard(self, labels: Mapping[str, str], item: T) -> None:
        """Remove an item."""
        self._all.pop(item, None)
        for pair in labels.items():
            filed = self._writable(pair)
            filed.pop(item, None)
            if not filed:
                del self._by_pair[pair]
                self._own.discard(pair)
        self._by_pair, self._own = fitting(self._by_pair), fitting(self._own)

    def candidates(self, selector: Selector) -> Iterator[T]:
        """Each item that the selector may match; the caller must evaluate it."""
        if selector.matches_nothing:
            return
        pairs = anchor(selector)
        if not pairs:
            yield from self._all
        for pair in pairs:
            yield from self._by_pair.get(pair, ())

    def copy(self) -> "LabelLookup[T]":
        """An independent copy."""
        twin: LabelLookup[T] = LabelLookup()
        twin._all = dict(self._all)
        twin._by_pair = dict(self._by_pair)
        self._own.clear()  # both share them from now on
        return twin

    def _writable(self, pair: tuple[str, str]) -> dict[T, None]:
        if pair not in self._own:
            self._by_pair[pair] = dict(self._by_pair.get(pair, ()))
            self._own.add(pair)
        return self._by_pair[pair]
