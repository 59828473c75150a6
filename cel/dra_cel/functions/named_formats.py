"""Named formats of strings: ``format.uuid().validate(text)``.

Source: Kubernetes v1.36, ``apiserver/pkg/cel/library/format.go`` and ``apimachinery/pkg/util/validation``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from dra_cel.functions.table import FunctionTable
from dra_cel.functions.times import parse_timestamp
from dra_cel.values import NONE, EvaluationError, OpaqueValue, Optional, traversal

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_NAME = "[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _is_url(text: str) -> bool:
    return bool(re.match(r"(?:[A-Za-z][A-Za-z0-9+.-]*:|/)", text)) and all(
        ord(letter) > 32 for letter in text
    )


def _is_base64(text: str) -> bool:
    try:
        return len(text) % 4 == 0 and bool(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return False


def _is_date(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    try:
        parse_timestamp(text)
    except EvaluationError:
        return False
    return True


def _matches(pattern: str, longest: int) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: len(text) <= longest and compiled.fullmatch(text) is not None


def _is_prefix(inner: Callable[[str], bool]) -> Callable[[str], bool]:
    """Allow a name to end with a hyphen if something is appended to it."""
    return lambda text: inner(f"{text[:-1]}a" if text.endswith("-") else text)


def _is_qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not (0 < len(prefix) <= 253 and re.fullmatch(_SUBDOMAIN, prefix)):
        return False
    return len(name) <= 63 and re.fullmatch(_NAME, name) is not None


_dns1123_label = _matches(_LABEL, 63)
_dns1123_subdomain = _matches(_SUBDOMAIN, 253)
_dns1035_label = _matches(_LABEL_1035, 63)
FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "dns1123Label": (_dns1123_label, "a lowercase RFC 1123 label"),
    "dns1123Subdomain": (_dns1123_subdomain, "a lowercase RFC 1123 subdomain"),
    "dns1035Label": (_dns1035_label, "a DNS-1035 label"),
    "qualifiedName": (_is_qualified, "a qualified name"),
    "dns1123LabelPrefix": (_is_prefix(_dns1123_label), "a prefix of an RFC 1123 label"),
    "dns1123SubdomainPrefix": (_is_prefix(_dns1123_subdomain), "a prefix of an RFC 1123 subdomain"),
    "dns1035LabelPrefix": (_is_prefix(_dns1035_label), "a prefix of a DNS-1035 label"),
    "labelValue": (_matches(f"(?:{_NAME})?", 63), "a label value"),
    "uri": (_is_url, "a URI"),
    "uuid": (_matches(f"(?i:{_UUID})", 36), "a UUID"),
    "byte": (_is_base64, "base64"),
    "date": (_is_date, "a date"),
    "datetime": (_is_datetime, "a date with time"),
}


@dataclass(frozen=True, slots=True)
class NamedFormat(OpaqueValue):
    """A format by its name."""

    cel_type: ClassVar[str] = "kubernetes.NamedFormat"
    name: str


def _validate(named: NamedFormat, text: str) -> Optional:
    """Nothing for a valid text, else a list of errors."""
    is_valid, described = FORMATS[named.name]
    return NONE if is_valid(text) else Optional(([f"must be {described}"],))


TABLE = FunctionTable()
TABLE.add("validate", (NamedFormat, str), _validate, lambda _, text: 1 + 16 * traversal(len(text)))
TABLE.add("format.named", (str,), lambda name: Optional((NamedFormat(name),)) if name in FORMATS else NONE)
for _name in FORMATS:
    TABLE.add(f"format.{_name}", (), lambda name=_name: NamedFormat(name))
