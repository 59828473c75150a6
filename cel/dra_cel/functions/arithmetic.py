"""Arithmetic, comparisons and conversions of the language.

Source: cel-spec ``doc/langdef.md``; cel-go ``common/types`` and ``interpreter/runtimecost.go``.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from typing import Any

from dra_cel.functions.table import FunctionTable
from dra_cel.functions.value_texts import text_of
from dra_cel.syntax import UInt
from dra_cel.values import (
    GREATEST_INT,
    GREATEST_UINT,
    LEAST_INT,
    Duration,
    EvaluationError,
    Timestamp,
    checked_int,
    checked_uint,
    least,
    traversal,
)

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_REAL = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?|nan",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_NUMBER = 1000
_BOOLEANS = {"1": True, "t": True, "true": True, "TRUE": True, "True": True, "T": True}
_BOOLEANS |= {"0": False, "f": False, "false": False, "FALSE": False, "False": False, "F": False}


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(-quotient if (left < 0) != (right < 0) else quotient)


def _modulus(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _divide_real(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _int_of_real(value: float) -> int:
    if math.isnan(value) or not LEAST_INT < value < GREATEST_INT:
        raise EvaluationError("integer overflow")
    return int(value)


def _uint_of_real(value: float) -> UInt:
    if math.isnan(value) or not -1 < value < GREATEST_UINT:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(value))


def _int_of_text(text: str) -> int:
    if not _WHOLE.fullmatch(text) or not LEAST_INT <= int(text) <= GREATEST_INT:
        raise EvaluationError(f"type conversion error from 'string' to 'int': {text[:64]!r}")
    return int(text)


def _uint_of_text(text: str) -> UInt:
    if not _WHOLE.fullmatch(text) or text[0] in "+-" or int(text) > GREATEST_UINT:
        raise EvaluationError(f"type conversion error from 'string' to 'uint': {text[:64]!r}")
    return UInt(int(text))


def _real_of_text(text: str) -> float:
    if len(text) > _LONGEST_NUMBER or not _REAL.fullmatch(text):
        raise EvaluationError(f"type conversion error from 'string' to 'double': {text[:64]!r}")
    return float(text)


def _bool_of_text(text: str) -> bool:
    if text not in _BOOLEANS:
        raise EvaluationError(f"type conversion error from 'string' to 'bool': {text[:64]!r}")
    return _BOOLEANS[text]


def _joined(left: Any, right: Any) -> int:
    return traversal(len(left), len(right))


def _text_cost(value: Any) -> int:
    return traversal(len(value))


def _same(value: Any) -> Any:
    return value


TABLE = FunctionTable()
TABLE.add("_+_", (int, int), lambda left, right: checked_int(left + right))
TABLE.add("_-_", (int, int), lambda left, right: checked_int(left - right))
TABLE.add("_*_", (int, int), lambda left, right: checked_int(left * right))
TABLE.add("_/_", (int, int), _divide)
TABLE.add("_%_", (int, int), _modulus)
TABLE.add("-_", (int,), lambda value: checked_int(-value))
TABLE.add("_+_", (UInt, UInt), lambda left, right: checked_uint(left + right))
TABLE.add("_-_", (UInt, UInt), lambda left, right: checked_uint(left - right))
TABLE.add("_*_", (UInt, UInt), lambda left, right: checked_uint(left * right))
TABLE.add("_/_", (UInt, UInt), lambda left, right: checked_uint(_divide(left, right)))
TABLE.add("_%_", (UInt, UInt), lambda left, right: checked_uint(_modulus(left, right)))
TABLE.add("_+_", (float, float), operator.add)
TABLE.add("_-_", (float, float), operator.sub)
TABLE.add("_*_", (float, float), operator.mul)
TABLE.add("_/_", (float, float), _divide_real)
TABLE.add("-_", (float,), operator.neg)
TABLE.add("_+_", (str, str), operator.add, _joined)
TABLE.add("_+_", (bytes, bytes), operator.add, _joined)
TABLE.add("!_", (bool,), operator.not_)

_NUMBERS: tuple[type, ...] = (int, UInt, float)
_COMPARISONS = (("_<_", operator.lt), ("_<=_", operator.le), ("_>_", operator.gt), ("_>=_", operator.ge))
_UNITS: tuple[type, ...] = (bool, Timestamp, Duration)
_TEXTS: tuple[type, ...] = (str, bytes)
for _name, _does in _COMPARISONS:
    for _pair in itertools.product(_NUMBERS, _NUMBERS):
        TABLE.add(_name, _pair, _does)
    for _kind in _UNITS:
        TABLE.add(_name, (_kind, _kind), _does)
    for _kind in _TEXTS:
        TABLE.add(_name, (_kind, _kind), _does, least)

TABLE.add("int", (int,), _same)
TABLE.add("int", (UInt,), lambda value: checked_int(int(value)))
TABLE.add("int", (float,), _int_of_real)
TABLE.add("int", (str,), _int_of_text)
TABLE.add("uint", (int,), checked_uint)
TABLE.add("uint", (UInt,), _same)
TABLE.add("uint", (float,), _uint_of_real)
TABLE.add("uint", (str,), _uint_of_text)
TABLE.add("double", (int,), float)
TABLE.add("double", (UInt,), float)
TABLE.add("double", (float,), _same)
TABLE.add("double", (str,), _real_of_text)
for _kind in (*_UNITS, *_NUMBERS):
    TABLE.add("string", (_kind,), text_of)
TABLE.add("string", (str,), _same)
TABLE.add("string", (bytes,), text_of, _text_cost)
TABLE.add("bytes", (str,), str.encode, _text_cost)
TABLE.add("bytes", (bytes,), _same)
TABLE.add("bool", (bool,), _same)
TABLE.add("bool", (str,), _bool_of_text)
