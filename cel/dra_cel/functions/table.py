"""Maps functions to implementations by name and argument types, each with its cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Types: TypeAlias = tuple[type, ...]


class Overload(NamedTuple):
    """One implementation."""

    does: Callable[..., Any]
    cost: Callable[..., int] | None
    """Units by the arguments, asked before the call; None for one unit."""
    is_metered: bool
    """Whether it takes the budget as its first argument, because what it costs turns out on the way."""


class FunctionTable:
    """Implementations of functions."""

    def __init__(self) -> None:
        self.overloads: dict[str, dict[Types, Overload]] = {}

    def add(
        self, name: str, types: Types, does: Callable[..., Any], cost: Callable[..., int] | None = None
    ) -> None:
        """Add an implementation."""
        self.overloads.setdefault(name, {})[types] = Overload(does, cost, is_metered=False)

    def add_metered(
        self,
        name: str,
        types: Types,
        does: Callable[..., Any],
        cost: Callable[..., int] | None = None,
    ) -> None:
        """Add one that takes the :class:`Budget` first."""
        self.overloads.setdefault(name, {})[types] = Overload(does, cost, is_metered=True)

    def merge(self, other: FunctionTable) -> None:
        """Add all functions of another table."""
        for name, overloads in other.overloads.items():
            self.overloads.setdefault(name, {}).update(overloads)
