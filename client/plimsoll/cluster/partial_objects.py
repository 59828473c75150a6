"""Decodes objects of which a part has the wrong type, without that part."""

import re
from typing import Any

import msgspec

from plimsoll.model.decoding import DecodeError, parsed

_PLACE = re.compile(r" - at `\$([^`]*)`")

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")

#: Parts without which an object is still used.
_MOST_PARTS = 32


def decode_in_part(kind: type[Any], document: bytes | str | msgspec.Raw) -> tuple[Any, list[str]]:
    """Decode one JSON document without its parts of the wrong type, and return which these are.

    Raises:
        DecodeError: the document is not JSON, is no object, or too much of it is wrong.
    """
    plain = parsed(kind, document)
    problems: list[str] = []
    while True:
        try:
            return msgspec.convert(plain, kind), problems
        except msgspec.ValidationError as exc:
            problems.append(str(exc))
            place = _PLACE.search(str(exc))
            if place is None or len(problems) > _MOST_PARTS:
                raise DecodeError(kind.__name__, str(exc)) from exc
            _leave_out(plain, place[1])


def _leave_out(document: Any, place: str) -> None:
    """Delete the value at a path; in a map whose key is not known, the non-scalar values, or all."""
    steps = [name or index for name, index in _STEP.findall(place)]
    for step in steps[:-1]:
        if step == "...":
            break
        document = document[int(step)] if isinstance(document, list) else document[step]
    last = next((step for step in steps if step == "..."), steps[-1])
    if last != "...":
        del document[int(last) if isinstance(document, list) else last]
        return
    odd = [
        key for key, value in document.items() if isinstance(value, (dict, list, bool)) or _is_large(value)
    ]
    for key in odd or list(document):
        del document[key]


def _is_large(value: object) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**63
