"""Makes answers from their types: one with everything, one with nothing, and each with one field changed."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
#: Texts that are not free, by the name of their field.
TEXTS = {"expected": "500m", "used": "480m", "rule": "no-requests"}
#: Numbers of elements of a sequence: none, one, one more than is named in a cell, more than a table shows.
COUNTS = (0, 1, 4, 25)
#: Fields that are never empty.
NEVER_EMPTY = ("outcomes", "utilisation", "pods")
#: Moments at which the unit of a duration changes.
DURATIONS = (0, 1, 9.96, 59, 119, 120, 121, 7199, 7200, 7260, 172_799, 172_800)


UNIONS = (types.UnionType, Union)


class Variant(NamedTuple):
    """An answer, and which field of the first one is changed to what."""

    change: str
    answer: Any


def fields_of(kind: Any) -> dict[str, Any]:
    """The types of the fields of a model or Struct; empty for anything else."""
    if isinstance(kind, type) and issubclass(kind, BaseModel | msgspec.Struct):
        hints = get_type_hints(kind)
        names = kind.model_fields if issubclass(kind, BaseModel) else kind.__struct_fields__
        return {name: hints[name] for name in names}
    return {}


def made(kind: Any, name: str, place: int, *, full: bool) -> Any:
    """A value of a type: with everything that it can have, or with nothing that it can be without.

    Args:
        kind: The type.
        name: The name of its field, from which the value follows.
        place: The place in a sequence.
        full: Whether optional parts are there.
    """
    if fields := fields_of(kind):
        return kind(**{each: made(hint, each, place, full=full) for each, hint in fields.items()})
    arguments = get_args(kind)
    match get_origin(kind):
        case None:
            return _plain(kind, name, place, full=full)
        case origin if origin in UNIONS:
            whole = [each for each in arguments if each is not types.NoneType]
            return made(whole[0], name, place, full=full) if full or len(whole) == len(arguments) else None
        case origin if origin is Literal:
            return arguments[0]
        case origin if issubclass(origin, Mapping):
            count = 2 if full else 0
            return {f"{name}-key-{each}": made(arguments[1], name, each, full=full) for each in range(count)}
        case origin if origin is tuple and Ellipsis not in arguments:
            return tuple(made(each, name, place + at, full=full) for at, each in enumerate(arguments))
        case origin if issubclass(origin, Iterable):
            return _several(kind, name, 2 if full else int(name in NEVER_EMPTY), full=full)
    raise TypeError(kind)


def _several(kind: Any, name: str, count: int, *, full: bool) -> Any:
    whole = get_origin(kind)
    whole = list if whole in (Sequence, Iterable) else whole
    values = [made(get_args(kind)[0], name, place, full=full) for place in range(count)]
    return whole(values)


def _plain(kind: Any, name: str, place: int, *, full: bool) -> Any:
    number = sum(map(ord, name)) % 83 + 2 + place
    if kind is bool:
        return full
    if kind is int or kind is float:
        return kind(number)
    if kind is datetime:
        return START + timedelta(minutes=number)
    if kind is str:
        return TEXTS.get(name, f"{name}-{place}")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return None


def variants(kind: Any, value: Any, name: str, *, full: bool, path: str = "") -> Iterator[Variant]:
    """The value with each of its fields changed, one at a time; of several elements, the first one."""
    arguments, origin = get_args(kind), get_origin(kind)
    if fields := fields_of(kind):
        for each, hint in fields.items():
            inner = variants(hint, getattr(value, each), each, full=full, path=f"{path}.{each}")
            yield from (Variant(change, _with(value, each, other)) for change, other in inner)
    elif origin is None or origin is Literal:
        others = arguments[1:] if arguments else _others(kind, value, name)
        yield from (Variant(f"{path} = {getattr(each, 'value', each)!r}", each) for each in others)
    elif origin in UNIONS:
        yield from _of_union(arguments, value, name, full=full, path=path)
    elif issubclass(origin, Mapping):
        added = {"key": made(arguments[1], name, 0, full=False)}
        yield Variant(f"{path} = {{}}", {}) if full else Variant(f"{path} has a key", added)
    elif origin is tuple and Ellipsis not in arguments:
        for at, hint in enumerate(arguments):
            inner = variants(hint, value[at], name, full=full, path=f"{path}[{at}]")
            yield from (Variant(change, (*value[:at], other, *value[at + 1 :])) for change, other in inner)
    else:
        for count in COUNTS if full else (1,):
            if count or name not in NEVER_EMPTY:
                yield Variant(f"{path} has {count}", _several(kind, name, count, full=full))
        if value:
            inner = variants(arguments[0], value[0], name, full=full, path=f"{path}[0]")
            yield from (Variant(change, type(value)([other, *value[1:]])) for change, other in inner)


def _of_union(
    arguments: tuple[Any, ...], value: Any, name: str, *, full: bool, path: str
) -> Iterator[Variant]:
    whole = next(each for each in arguments if each is not types.NoneType)
    if value is not None:
        if types.NoneType in arguments:
            yield Variant(f"{path} = None", None)
        yield from variants(whole, value, name, full=full, path=path)
    elif not full:
        yield Variant(f"{path} is there", made(whole, name, 0, full=False))


def _others(kind: Any, value: Any, name: str) -> Iterator[Any]:
    if kind is bool:
        yield not value
    elif kind is int or kind is float:
        is_time = "second" in name
        numbers = DURATIONS if is_time else (0, 1, -3) if kind is int else (0, 0.4, -3.6)
        yield from dict.fromkeys(kind(each) for each in numbers)
    elif kind is str:
        if name not in TEXTS and value:
            yield ""
        elif not value:
            yield made(str, name, 0, full=True)
        elif name != "rule":
            yield "2"
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from itertools.islice(kind, 1, None)


def _with(value: Any, field: str, other: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_copy(update={field: other})
    return msgspec.structs.replace(value, **{field: other})
