"""Plain tests are those without fixtures, which may be called without a session of pytest.

A session takes half a second, and a mutant is found within a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import pytest


def calls(module: ModuleType) -> Iterator[Callable[[], object]]:
    """Each test of a module, with each of its sets of parameters."""
    for name, function in vars(module).items():
        if name.startswith("test_"):
            for given in product(*map(_sets, _marks(function))):
                arguments = {key: value for each in given for key, value in each.items()}
                yield partial(function, **arguments)


def _marks(function: Callable[..., object]) -> list[Any]:
    marks: list[Any] = vars(function).get("pytestmark", [])
    return [each for each in marks if each.name == "parametrize"]


def _sets(mark: Any) -> list[dict[str, Any]]:
    """The arguments that a mark gives, by name."""
    names, values = mark.args
    named = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    found = []
    for each in values:
        marked = isinstance(each, type(pytest.param()))
        given = each.values if marked else each if len(named) > 1 else (each,)
        found.append(dict(zip(named, given, strict=True)))
    return found
