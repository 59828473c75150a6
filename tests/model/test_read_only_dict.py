"""A read-only dict cannot be changed by any method of a dict, and is one otherwise."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from plimsoll.model.read_only_dict import ReadOnlyDict

CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda it: it.__setitem__("a", 1),
    "delete": lambda it: it.__delitem__("a"),
    "or": lambda it: it.__ior__({"b": 1}),
    "clear": lambda it: it.clear(),
    "pop": lambda it: it.pop("a"),
    "popitem": lambda it: it.popitem(),
    "setdefault": lambda it: it.setdefault("b", 1),
    "update": lambda it: it.update(b=1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_method_changes_it(change: str) -> None:
    """The error says what to do instead."""
    it = ReadOnlyDict(a=1)

    with pytest.raises(TypeError, match=r"read-only.*change a copy"):
        CHANGES[change](it)

    assert it == {"a": 1}


def test_copies_are_equal_and_unions_are_plain() -> None:
    """Plans are pickled, and documents are made from maps."""
    it = ReadOnlyDict(a=1)

    for twin in (copy.deepcopy(it), pickle.loads(pickle.dumps(it))):
        assert type(twin) is ReadOnlyDict
        assert twin == it
    assert type(it | {"b": 2}) is dict
    assert type({**it, "b": 2}) is dict
    assert msgspec.json.encode(it) == b'{"a":1}'
