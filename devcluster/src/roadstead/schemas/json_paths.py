"""Evaluates JSON paths of printer columns: fields, indexes and filters.

Source: client-go v1.36 ``util/jsonpath``, the part that the API server allows in columns.
"""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TOKEN = re.compile(
    r"""\.\.(?P<deep>[^.\[\]\s]+|\*)
      | \.(?P<field>(?:\\.|[^.\[\]\s\\])+)
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<slice>-?\d*:-?\d*)\s*\]
      | (?P<all>\[\s*\*\s*\])
      | \[\s*(?P<quote>['"])(?P<name>.*?)(?P=quote)\s*\]
      | \[\?\(\s*@(?P<left>[^=!<>\s]*)\s*(?:(?P<compare>==|!=|<=|>=|<|>)\s*(?P<right>.+?)\s*)?\)\]""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """A path is malformed."""


@lru_cache(maxsize=1024)
def path(text: str) -> tuple[Callable[[Any], Iterator[Any]], ...]:
    """The steps of a path.

    Raises:
        PathError: it is malformed.
    """
    steps = []
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        steps.append(_step(found))
    if end != len(text):
        raise PathError(f"cannot read the path {text!r} from {text[end:]!r} on")
    return tuple(steps)


def values(value: Any, text: str) -> list[Any]:
    """The values at a path; empty if it matches nothing."""
    found = [value]
    for step in path(text):
        found = [each for one in found for each in step(one)]
    return found


def _step(found: re.Match[str]) -> Callable[[Any], Iterator[Any]]:
    if found["deep"] is not None:
        return _deep(found["deep"])
    if found["field"] is not None:
        name = re.sub(r"\\(.)", r"\1", found["field"])
        return _every if name == "*" else _field(name)
    if found["name"] is not None:
        return _field(found["name"])
    if found["index"] is not None:
        return _index(int(found["index"]))
    if found["slice"] is not None:
        first, last = (int(part) if part else None for part in found["slice"].split(":"))
        return lambda value: iter(value[first:last] if isinstance(value, list) else ())
    if found["all"] is not None:
        return _every
    return _filter(found["left"], found["compare"], found["right"])


def _field(name: str) -> Callable[[Any], Iterator[Any]]:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Callable[[Any], Iterator[Any]]:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _deep(name: str) -> Callable[[Any], Iterator[Any]]:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]
        for inner in _every(value):
            yield from step(inner)

    return step


def _filter(left: str, compare: str | None, right: str | None) -> Callable[[Any], Iterator[Any]]:
    wanted = _literal(right) if right is not None else None

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = values(item, left) if left else [item]
            if any(compare is None or _holds(compare, one, wanted) for one in found):
                yield item

    return step


def _holds(compare: str, left: Any, right: Any) -> bool:
    try:
        return _COMPARISONS[compare](left, right)
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError as error:
        raise PathError(f"cannot read {text!r}: give a number, true, false or a quoted string") from error
