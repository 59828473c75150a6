"""Large maps of objects are read once, and the results are dropped with the map."""

import gc
from collections.abc import Mapping
from typing import Any

from plimsoll.model.read_once import ReadOnce
from plimsoll.model.read_only_dict import LARGE, ReadOnlyDict, sealed


class Found:
    """What was read; counts those that live."""

    alive = 0

    def __init__(self, _: Mapping[str, Any]) -> None:
        Found.alive += 1

    def __del__(self) -> None:
        Found.alive -= 1


def large(entries: int = LARGE + 1) -> ReadOnlyDict[str, str]:
    found: Any = sealed({f"k{number}": "v" for number in range(entries)})
    assert isinstance(found, ReadOnlyDict)
    return found


def test_a_large_map_is_read_once_and_what_was_read_goes_with_it() -> None:
    """Another of the same content is read for itself, and a small one each time."""
    read, written = ReadOnce(Found), large()

    first = read(written)
    assert read(written) is first
    assert read(large()) is not first, "another map"
    small = large(LARGE)
    assert read(small) is not read(small)
    first = read(written)
    assert Found.alive == 1
    del first, written
    gc.collect()

    assert Found.alive == 0
