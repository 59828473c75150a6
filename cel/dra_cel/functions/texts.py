"""Functions of strings and bytes.

A result is charged before it is built, even where upstream charges only the argument: ``replace`` can make a
long string from a short one.

Source: cel-go ``ext/strings.go`` version 2; Kubernetes v1.36, ``apiserver/pkg/cel/library/cost.go``.
"""

from __future__ import annotations

from typing import Any

from dra_cel.functions import value_texts
from dra_cel.functions.table import FunctionTable
from dra_cel.values import Budget, EvaluationError, traversal

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _first(text: str, *_: Any) -> int:
    return traversal(len(text))


def _search(text: str, part: str, *_: Any) -> int:
    """The cost of a search, which takes the product of both lengths at worst."""
    return traversal(len(text)) * (1 + len(part) // 100)


def _twice(text: str, *_: Any) -> int:
    return traversal(2 * len(text))


def _second(_: Any, text: str) -> int:
    return traversal(len(text))


def _both(one: str, other: str) -> int:
    return traversal(len(one)) * traversal(len(other))


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, wanted: str, start: int = 0) -> int:
    if not wanted:
        return start
    if start < 0 or start > len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(wanted, start)


def _last_index_of(text: str, wanted: str, start: int | None = None) -> int:
    if not wanted:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(wanted)
    if start < 0 or start > len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(wanted, 0, start + len(wanted))


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= end <= len(text):
        raise EvaluationError(f"index out of range: {end if 0 <= start <= len(text) else start}")
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _join(budget: Budget, values: list[Any], between: str = "") -> str:
    if not all(isinstance(value, str) for value in values):
        raise EvaluationError("no such overload: join")
    size = sum(map(len, values)) + len(between) * max(0, len(values) - 1)
    budget.charge(traversal(2 * size) + len(values))
    return between.join(values)


def _replace(budget: Budget, text: str, old: str, new: str, limit: int = -1) -> str:
    budget.charge(_search(text, old))
    count = text.count(old)
    count = count if limit < 0 else min(count, limit)
    budget.charge(traversal(len(text)) + traversal(max(0, count * (len(new) - len(old)))))
    return text.replace(old, new, max(limit, -1))


def _split(budget: Budget, text: str, between: str, limit: int = -1) -> list[str]:
    budget.charge(_search(text, between))
    count = len(text) if not between else text.count(between) + 1
    budget.charge(traversal(len(text)) + (count if limit < 0 else min(count, limit)))
    if limit == 0:
        return []
    if between:
        return text.split(between, limit - 1 if limit > 0 else -1)
    letters = list(text)
    return letters if limit < 0 or len(letters) <= limit else [*letters[: limit - 1], text[limit - 1 :]]


_ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


TABLE = FunctionTable()
TABLE.add("size", (str,), len)
TABLE.add("size", (bytes,), len)
TABLE.add("contains", (str, str), lambda text, part: part in text, _both)
TABLE.add("startsWith", (str, str), str.startswith, _second)
TABLE.add("endsWith", (str, str), str.endswith, _second)
TABLE.add("charAt", (str, int), _char_at)
TABLE.add("indexOf", (str, str), _index_of, _search)
TABLE.add("indexOf", (str, str, int), _index_of, _search)
TABLE.add("lastIndexOf", (str, str), _last_index_of, _search)
TABLE.add("lastIndexOf", (str, str, int), _last_index_of, _search)
TABLE.add("lowerAscii", (str,), lambda text: text.translate(_LOWER), _first)
TABLE.add("upperAscii", (str,), lambda text: text.translate(_UPPER), _first)
TABLE.add("substring", (str, int), _substring, _first)
TABLE.add("substring", (str, int, int), _substring, _first)
TABLE.add("trim", (str,), str.strip, _first)
TABLE.add("strings.quote", (str,), _quote, _twice)
TABLE.add_metered("join", (list,), _join)
TABLE.add_metered("join", (list, str), _join)
TABLE.add_metered("replace", (str, str, str), _replace)
TABLE.add_metered("replace", (str, str, str, int), _replace)
TABLE.add_metered("split", (str, str), _split)
TABLE.add_metered("split", (str, str, int), _split)
TABLE.add_metered("format", (str, list), value_texts.formatted)
