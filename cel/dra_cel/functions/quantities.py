"""Quantities and semantic versions as values of expressions.

Source: Kubernetes v1.36, ``apiserver/pkg/cel/library/quantity.go`` and ``semverlib.go``; semver.org 2.0.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from dra_cel.functions.table import FunctionTable
from dra_cel.quantity_texts import BILLION, billionths_of
from dra_cel.values import (
    GREATEST_INT,
    GREATEST_UINT,
    LEAST_INT,
    EvaluationError,
    OpaqueValue,
    parsing,
    traversal,
)


@dataclass(frozen=True, slots=True, order=True)
class Quantity(OpaqueValue):
    """An amount, in billionths."""

    cel_type: ClassVar[str] = "kubernetes.Quantity"
    billionths: int


_NUMBER_FIRST = re.compile(r"[+-]?\.?[0-9]")
_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


SHORT = 64
"""Characters up to which what texts mean is remembered."""


def parse_quantity(text: str) -> Quantity:
    """Read a quantity such as ``40Gi``.

    Raises:
        EvaluationError: the text cannot be read.
    """
    return _short_quantity(text) if len(text) <= SHORT else _quantity(text)


def _quantity(text: str) -> Quantity:
    if text != text.strip() or not _NUMBER_FIRST.match(text):
        raise EvaluationError(_NO_QUANTITY)
    try:
        return Quantity(billionths_of(text))
    except ValueError as error:
        raise EvaluationError(_NO_QUANTITY) from error


_short_quantity = lru_cache(maxsize=16_384)(_quantity)


@dataclass(frozen=True, slots=True)
class Semver(OpaqueValue):
    """A semantic version; its build metadata does not affect order and equality."""

    cel_type: ClassVar[str] = "kubernetes.Semver"
    major: int
    minor: int
    patch: int
    before: tuple[tuple[int, int, str], ...]
    """The identifiers of a pre-release: (0, number, "") or (1, 0, text); the empty tuple stands after all."""

    def precedence(self) -> tuple[Any, ...]:
        """The sort key of versions."""
        return (self.major, self.minor, self.patch, not self.before, self.before)


_NUMBER = r"(0|[1-9][0-9]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]*))?(?:\+([0-9A-Za-z.-]*))?", re.ASCII
)
_LONGEST_NUMBER = 20
_LONGEST_VERSION = 10_240


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> Semver:
    """Read a semantic version, strictly: three numbers, no ``v``.

    Raises:
        EvaluationError: the text cannot be read.
    """
    found = _SEMVER.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
    if found is None or any(len(number) > _LONGEST_NUMBER for number in found.group(1, 2, 3)):
        raise EvaluationError(f"{text[:64]!r} is not a semantic version")
    major, minor, patch = map(int, found.group(1, 2, 3))
    before = () if found[4] is None else tuple(_identifier(part, text) for part in found[4].split("."))
    if max(major, minor, patch) > GREATEST_UINT or (found[5] is not None and "" in found[5].split(".")):
        raise EvaluationError(f"{text[:64]!r} is not a semantic version")
    return Semver(major, minor, patch, before)


def _identifier(part: str, text: str) -> tuple[int, int, str]:
    if not part or (part.isdigit() and ((part[0] == "0" and len(part) > 1) or len(part) > _LONGEST_NUMBER)):
        raise EvaluationError(f"{text[:64]!r} is not a semantic version")
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


def normalised(text: str) -> str:
    """A version with three numbers, without ``v`` and without leading zeros.

    Raises:
        EvaluationError: a short version has a pre-release.
    """
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    part = part.lstrip("0")
    return part if part and part[0] in "0123456789" else f"0{part}"


def _semver(text: str, normalise: bool = False) -> Semver:
    return parse_semver(normalised(text) if normalise else text)


def _is(parse: Any, *arguments: Any) -> bool:
    try:
        parse(*arguments)
    except EvaluationError:
        return False
    return True


def _is_integer(quantity: Quantity) -> bool:
    whole, rest = divmod(quantity.billionths, BILLION)
    return not rest and LEAST_INT <= whole <= GREATEST_INT


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise EvaluationError("cannot convert value to integer")
    return quantity.billionths // BILLION


def _compare(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _billionths(value: Quantity | int) -> int:
    return value.billionths if isinstance(value, Quantity) else value * BILLION


def _text_cost(*arguments: Any) -> int:
    return traversal(len(arguments[0]))


def _version_cost(text: str, *_: Any) -> int:
    return parsing(text)


TABLE = FunctionTable()
TABLE.add("quantity", (str,), parse_quantity, _text_cost)
TABLE.add("isQuantity", (str,), lambda text: _is(parse_quantity, text), _text_cost)
TABLE.add("sign", (Quantity,), lambda quantity: _compare(quantity.billionths, 0))
TABLE.add("isInteger", (Quantity,), _is_integer)
TABLE.add("asInteger", (Quantity,), _as_integer)
TABLE.add("asApproximateFloat", (Quantity,), lambda quantity: quantity.billionths / BILLION)
TABLE.add("compareTo", (Quantity, Quantity), lambda left, right: _compare(left.billionths, right.billionths))
TABLE.add("isGreaterThan", (Quantity, Quantity), lambda left, right: left.billionths > right.billionths)
TABLE.add("isLessThan", (Quantity, Quantity), lambda left, right: left.billionths < right.billionths)
for _other in (Quantity, int):
    TABLE.add(
        "add",
        (Quantity, _other),
        lambda left, right: Quantity(left.billionths + _billionths(right)),
    )
    TABLE.add(
        "sub",
        (Quantity, _other),
        lambda left, right: Quantity(left.billionths - _billionths(right)),
    )
TABLE.add("semver", (str,), _semver, _version_cost)
TABLE.add("semver", (str, bool), _semver, _version_cost)
TABLE.add("isSemver", (str,), lambda text: _is(_semver, text), _version_cost)
TABLE.add("isSemver", (str, bool), lambda text, normalise: _is(_semver, text, normalise), _version_cost)
TABLE.add("major", (Semver,), lambda version: version.major)
TABLE.add("minor", (Semver,), lambda version: version.minor)
TABLE.add("patch", (Semver,), lambda version: version.patch)
TABLE.add("compareTo", (Semver, Semver), lambda left, right: _compare(left.precedence(), right.precedence()))
TABLE.add("isGreaterThan", (Semver, Semver), lambda left, right: left.precedence() > right.precedence())
TABLE.add("isLessThan", (Semver, Semver), lambda left, right: left.precedence() < right.precedence())
