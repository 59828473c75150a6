"""Changes JSON documents where their structure is: members, items, types, names, depths."""

from __future__ import annotations

import json
from random import Random
from typing import Any

#: Values that parsers trip over, as JSON text.
VALUES = (
    *("null", "true", "false", "0", "-1", "1", "-0", "0.5", "1e400", "-1e400", "1e-400", "NaN", "Infinity"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616"),
    *("1" * 400, "0." + "3" * 400, '""', '" "', '"0"', '"-1"', '"1e9999"', '"NaN"', '"\\u0000"'),
    *('"\\ud800"', '"\\udfff\\ud800"', '"\\u2028"', '"a\\nb"', '"\x7f"', "[]", "{}", "[[]]", "[null]"),
    *('{"":null}', '["a"]', '{"a":"b"}', '"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59.999999Z"'),
    *('"2026-02-30T00:00:00Z"', '"2026-01-01T00:00:00"', '"2026-01-01T00:00:00+23:59"', '"1h"', '"100%"'),
    *('"99999999999999999999h"', '"999999999999%"', '"a/b/c"', '"' + "x" * 5000 + '"'),
    *("[" * depth + "]" * depth for depth in (200, 3000)),
    *('{"a":' * depth + "1" + "}" * depth for depth in (200, 3000)),
)


class _Text(str):
    """JSON text that is written as it is."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """The members of an object in order; a name may come twice."""


def changed(document: bytes, random: Random, names: list[str]) -> bytes | None:
    """The document with one change; None when it is not JSON."""
    try:
        tree = json.loads(document, object_pairs_hook=_Members)
        places = _places(tree)
        tree = _change(tree, places, random, names)
        text = _written(tree)
    except (ValueError, RecursionError):
        return None
    return text.encode(errors="surrogatepass")


def names_in(documents: list[bytes]) -> list[str]:
    """The names of members in some documents."""
    found: set[str] = set()
    for document in documents:
        try:
            tree = json.loads(document, object_pairs_hook=_Members)
        except (ValueError, RecursionError):
            continue
        found.update(key for holder, key, _ in _places(tree) if isinstance(holder, _Members))
    return sorted(map(str, found))


def _places(tree: Any) -> list[tuple[Any, Any, int]]:
    """Where values are: what holds them, under which name, and at which position."""
    found: list[tuple[Any, Any, int]] = []
    todo = [tree]
    while todo:
        holder = todo.pop()
        if isinstance(holder, _Members):
            for position, (key, value) in enumerate(holder):
                found.append((holder, key, position))
                todo.append(value)
        elif isinstance(holder, list):
            for position, value in enumerate(holder):
                found.append((holder, position, position))
                todo.append(value)
    return found


def _change(tree: Any, places: list[tuple[Any, Any, int]], random: Random, names: list[str]) -> Any:
    if not places or random.random() < 0.02:
        return _Text(random.choice(VALUES))
    holder, key, position = random.choice(places)
    is_object = isinstance(holder, _Members)
    value = holder[position][1] if is_object else holder[position]
    other_holder, _, other = random.choice(places)
    elsewhere = other_holder[other][1] if isinstance(other_holder, _Members) else other_holder[other]

    def put(new: Any) -> None:
        holder[position] = (key, new) if is_object else new

    match random.randrange(12):
        case 0 | 1 | 2:
            put(_Text(random.choice(VALUES)))
        case 3:
            del holder[position]
        case 4:
            put(_copied(elsewhere))
        case 5:
            put([value] if random.random() < 0.7 else [value, _copied(value)])
        case 6:
            put(_Members([(random.choice(names or ["a"]), value)]))
        case 7 if is_object:
            holder[position] = (random.choice([*names, key.swapcase(), key + " ", ""]), value)
        case 8 if is_object:
            holder.append((key, _Text(random.choice(VALUES))))
        case 9:
            holder.extend(holder[position : position + 1] * random.choice((1, 2, 40, 300)))
        case 10 if isinstance(value, (str, int, float)):
            put(_scalar_changed(value, random))
        case _:
            put(_Members([]) if isinstance(value, list) else [])
    return tree


def _scalar_changed(value: str | float, random: Random) -> str | float:
    if not isinstance(value, str):
        return str(value) if random.random() < 0.5 else -value
    text = value
    at = random.randrange(len(text) + 1)
    piece = random.choice(
        ("", " ", "\x00", "\n", "/", "-", ".", "ä", "\ud800", "💥", "0", "e", "%", text[:20])
    )
    match random.randrange(4):
        case 0:
            return text[:at] + piece + text[at:]
        case 1:
            return text[:at] + piece + text[at + 1 :]
        case 2:
            return text[:at]
        case _:
            return text * random.choice((2, 20, 300))


def _copied(value: Any) -> Any:
    if isinstance(value, _Members):
        return _Members((key, _copied(each)) for key, each in value)
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _written(tree: Any) -> str:
    if isinstance(tree, _Text):
        return str(tree)
    if isinstance(tree, _Members):
        return "{" + ",".join(f"{json.dumps(key)}:{_written(value)}" for key, value in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(_written, tree)) + "]"
    return json.dumps(tree, ensure_ascii=False) if _is_plain(tree) else json.dumps(tree)


def _is_plain(value: Any) -> bool:
    return not isinstance(value, str) or not any("\ud800" <= each <= "\udfff" for each in value)
