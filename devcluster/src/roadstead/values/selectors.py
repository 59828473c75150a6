"""Parses label and field selectors of query strings and of ``spec.selector``.

Source: apimachinery ``pkg/labels`` and ``pkg/fields``; their messages are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.values.status_errors import bad_request

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

Labels = Mapping[str, str]

_TOKEN = re.compile(r"\s*(?:(!=|==|=|!|,|\(|\)|<|>)|([^\s!=,()<>]+))")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_qualified_name(key: str) -> bool:
    """Whether a string can be the key of a label: an optional subdomain and slash, then a name."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not _PREFIX.fullmatch(prefix) or len(prefix) > 253):
        return False
    return bool(_NAME.fullmatch(name)) and len(name) <= 63


def is_label_value(value: str) -> bool:
    """Whether a string can be the value of a label."""
    return len(value) <= 63 and (value == "" or bool(_NAME.fullmatch(value)))


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on a label: key, operator, values."""

    key: str
    operator: str  # "in", "notin", "exists", "!", "gt", "lt"
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        """Whether the labels meet it."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return value is not None and _compares(value, self.operator, next(iter(self.values)))


def _compares(value: str, operator: str, bound: str) -> bool:
    try:
        left, right = int(value), int(bound)
    except ValueError:
        return False
    return left > right if operator == "gt" else left < right


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector such as ``app=web,tier!=db,env in (a,b),!old``.

    Raises:
        StatusError: 400, where it cannot be read.
    """
    if not text.strip():
        return ()
    return tuple(_LabelParser(text).requirements())


class _LabelParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            found = _TOKEN.match(stripped, position)
            if found is None:
                raise self._refuse(f"found '{stripped[position]}', expected: identifier")
            self.tokens.append(found[1] or found[2])
            position = found.end()
        self.at = 0

    def _refuse(self, why: str) -> Exception:
        return bad_request(f"unable to parse requirement: {why}")

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.at += 1
        return token

    def requirements(self) -> list[Requirement]:
        found = [self._requirement()]
        while self._peek() == ",":
            self._next()
            found.append(self._requirement())
        if self._peek():
            raise self._refuse(f"found '{self._peek()}', expected: ',' or 'end of string'")
        return found

    def _key(self) -> str:
        key = self._next()
        if not key or key in ("=", "==", "!=", ",", "(", ")", "<", ">", "!"):
            raise self._refuse(f"found '{key}', expected: !, identifier, or 'end of string'")
        if not is_qualified_name(key):
            raise self._refuse(
                f"<nil>: Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', "
                f"'_' or '.', and must start and end with an alphanumeric character"
            )
        return key

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return Requirement(self._key(), "!")
        key = self._key()
        operator = self._peek()
        if operator in ("", ","):
            return Requirement(key, "exists")
        self._next()
        if operator in ("=", "=="):
            return Requirement(key, "in", frozenset({self._value()}))
        if operator == "!=":
            return Requirement(key, "notin", frozenset({self._value()}))
        if operator in ("<", ">"):
            bound = self._value()
            if not re.fullmatch(r"-?\d+", bound):
                raise self._refuse(
                    f"values[0]: Invalid value: \"{bound}\": for 'Gt', 'Lt' operators, the value must be an "
                    f"integer"
                )
            return Requirement(key, "gt" if operator == ">" else "lt", frozenset({bound}))
        if operator in ("in", "notin"):
            return Requirement(key, operator, self._values())
        raise self._refuse(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._next()
        return self._checked(value)

    def _checked(self, value: str) -> str:
        if value in ("=", "==", "!=", "(", ")", "<", ">", "!"):
            raise self._refuse(f"found '{value}', expected: identifier")
        if not is_label_value(value):
            raise self._refuse(
                f'values[0][]: Invalid value: "{value}": a valid label must be an empty string or consist of '
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                "character"
            )
        return value

    def _values(self) -> frozenset[str]:
        if self._next() != "(":
            raise self._refuse(
                f"found '{self.tokens[self.at - 1] if self.at <= len(self.tokens) else ''}', expected: '('"
            )
        values: list[str] = []
        expects_value = True
        while True:
            token = self._next()
            if token == ")":
                if expects_value:
                    values.append("")
                return frozenset(values)
            if token == "":
                raise self._refuse("found '', expected: ',', ')' or identifier")
            if token == ",":
                if expects_value:
                    values.append("")
                expects_value = True
            else:
                if not expects_value:
                    raise self._refuse(f"found '{token}', expected: ',' or ')'")
                values.append(self._checked(token))
                expects_value = False


def matches_labels(requirements: tuple[Requirement, ...], labels: Labels) -> bool:
    """Whether labels meet all requirements."""
    return all(requirement.matches(labels) for requirement in requirements)


_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_requirements(selector: Obj | None) -> tuple[Requirement, ...] | None:
    """A ``metav1.LabelSelector`` as requirements; None where it selects nothing.

    An absent selector selects nothing, an empty one everything.
    """
    if selector is None:
        return None
    found = [
        Requirement(key, "in", frozenset({value}))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    found += [
        Requirement(one["key"], _OPERATORS.get(one["operator"], "in"), frozenset(one.get("values") or ()))
        for one in selector.get("matchExpressions") or ()
    ]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    field: str
    equal: bool
    value: str


def parse_fields(text: str) -> tuple[FieldTerm, ...]:
    r"""Read a field selector such as ``spec.nodeName=a,status.phase!=Running``.

    ``\,`` and ``\=`` are escapes.

    Raises:
        StatusError: 400, where it cannot be read.
    """
    terms = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        found = re.fullmatch(r"(.*?)(?<!\\)(!=|==|=)(.*)", part, re.DOTALL)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append(FieldTerm(found[1], found[2] != "!=", re.sub(r"\\(.)", r"\1", found[3])))
    return tuple(terms)
