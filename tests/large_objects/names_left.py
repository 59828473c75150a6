"""Finds names of objects that have gone in everything that the operator's modules and one stage refer to.

So is the room that such names have left: a table keeps it for as long as it lives.
"""

import gc
import re
import sys
import types
from collections import Counter
from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import msgspec

#: How a writer names things: the name of its object, and a number.
WRITTEN = re.compile(r"(t\d+)(?:-\d+|\.io/\d+)$")

#: What is not followed: what it refers to is reached by others, or is not the operator's.
_PASSED = (type, types.ModuleType, types.FrameType, types.CodeType)

#: What the room of tables is called in the result; bytes of a table, and of each entry, that are not room.
ROOM, _TABLE, _ENTRY = "room", 16_384, 200


def names_left(roots: Iterable[Any], most: int = 3) -> dict[str, list[str]]:
    """The objects of which names are left, each with ways to some names; ``ROOM`` has tables with room.

    Args:
        roots: Where to begin, in addition to the modules of the package.
        most: Ways to show of an object.
    """
    above: dict[int, Any] = {}
    waiting = [*roots, *(vars(each) for name, each in list(sys.modules.items()) if _is_ours(name))]
    kept = list(waiting)  # so that no identity is used twice
    seen = set(map(id, waiting))
    count: Counter[str] = Counter()
    found: dict[str, list[str]] = {}
    while waiting:
        this = waiting.pop()
        for each in _referents(this):
            if id(each) in seen or isinstance(each, _PASSED):
                continue
            seen.add(id(each))
            above[id(each)] = this
            if isinstance(each, str):
                if written := WRITTEN.match(each):
                    count[written[1]] += 1
                    if count[written[1]] <= most:
                        found.setdefault(written[1], []).append(_way(each, above))
            elif not isinstance(each, (bytes, int, float)):
                if isinstance(each, (dict, set)) and sys.getsizeof(each) > _TABLE + _ENTRY * len(each):
                    found.setdefault(ROOM, []).append(_way(each, above))
                waiting.append(each)
                kept.append(each)
    return found


def _referents(this: Any) -> Iterable[Any]:
    """What an object refers to, also a struct that the collector of garbage does not know."""
    if isinstance(this, msgspec.Struct):
        return [getattr(this, name, None) for name in this.__struct_fields__]
    if isinstance(this, WeakSet):
        return ()  # others hold what it has; the room in asyncio's, of all tasks, is of all tests before
    return gc.get_referents(this)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("plimsoll", "dra_cel")


def _way(each: Any, above: dict[int, Any]) -> str:
    way = [repr(each)]
    while id(each) in above and len(way) < 12:
        each = above[id(each)]
        way.append(type(each).__qualname__)
    return " < ".join(way)
