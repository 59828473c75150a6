"""Decodes API JSON into model values; builds only the fields of the model.

The fast path passes the bytes to msgspec, which skips unknown fields without building them. A document with
an explicit ``null`` where the model has a list, a map or a number (valid JSON for the API, whose own decoder
treats it as absent) takes the slow path: parse, drop the nulls, convert.

Invalid UTF-8 is read as Go's decoder reads it: as U+FFFD. Values nested deeper than any field of the model
are left out: an API server accepts ten thousand levels, msgspec some hundred.
"""

import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

#: Levels of nesting that are read if a document has too many; fields of the model are a dozen deep.
DEEPEST = 100

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)


class DecodeError(ValueError):
    """A document is not an object of the expected kind; the cause names the place in it."""

    def __init__(self, kind: str, cause: str) -> None:
        super().__init__(kind, cause)
        self.kind = kind
        self.cause = cause

    def __str__(self) -> str:
        return f"cannot read the document as {self.kind}: {self.cause}"


_decoders: dict[type, msgspec.json.Decoder[object]] = {}
_ANYTHING = msgspec.json.Decoder()


def read_with(decoder: msgspec.json.Decoder[T], document: bytes | str | msgspec.Raw) -> T:
    """Decode foreign JSON.

    Raises:
        msgspec.DecodeError: It is not JSON, or not what the decoder expects.
    """
    try:
        return decoder.decode(document)
    except (UnicodeDecodeError, RecursionError):
        return decoder.decode(without_depths(_text_of(document)))


def _text_of(document: bytes | str | msgspec.Raw) -> str:
    return document if isinstance(document, str) else bytes(document).decode(errors="replace")


def without_depths(text: str) -> str:
    """JSON with ``null`` in place of values that are nested more than :data:`DEEPEST` levels deep."""
    kept: list[str] = []
    depth = begin = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept += (text[begin : token.start()], "null")
        elif token[0] in "]}":
            depth -= 1
            if depth == DEEPEST:
                begin = token.end()
    if depth <= DEEPEST:
        kept.append(text[begin:])
    return "".join(kept)


def decode(kind: type[T], document: bytes | str | msgspec.Raw) -> T:
    """Decode one JSON document.

    Raises:
        DecodeError: the document is not JSON, or a field has the wrong type.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        return read_with(decoder, document)  # type: ignore[return-value]  # the table is keyed by the type
    except msgspec.ValidationError:
        pass
    except msgspec.DecodeError as exc:
        raise DecodeError(kind.__name__, str(exc)) from exc
    return _converted(kind, parsed(kind, document))


def parsed(kind: type, document: bytes | str | msgspec.Raw) -> Any:
    """The plain values of a document, without nulls."""
    try:
        plain = read_with(_ANYTHING, document)
        try:
            return without_nulls(plain)
        except RecursionError:  # a level takes more stack here than in msgspec
            return without_nulls(_ANYTHING.decode(without_depths(_text_of(document))))
    except msgspec.DecodeError as exc:
        raise DecodeError(kind.__name__, str(exc)) from exc


def convert(kind: type[T], document: object) -> T:
    """Build a model value from parsed JSON or YAML (dictionaries, lists, scalars).

    Raises:
        DecodeError: a field has the wrong type.
    """
    return _converted(kind, without_nulls(document))


def _converted(kind: type[T], plain: object) -> T:
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as exc:
        raise DecodeError(kind.__name__, str(exc)) from exc


def without_nulls(document: object) -> object:
    """The same document without the members whose value is ``null``: absent, as the API reads it."""
    if isinstance(document, dict):
        return {key: without_nulls(value) for key, value in document.items() if value is not None}
    if isinstance(document, list):
        return [without_nulls(value) for value in document if value is not None]
    return document
