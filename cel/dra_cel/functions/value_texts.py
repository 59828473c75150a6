"""Values as text: ``string(x)``, and ``"%s %.2f".format([x, y])``.

Source: cel-go ``common/types`` and ``ext/formatting.go``; numbers as Go's ``%g`` writes them.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from dra_cel.syntax import UInt
from dra_cel.values import (
    Budget,
    DomainMap,
    Duration,
    EvaluationError,
    Timestamp,
    TypeValue,
    no_such_overload,
    traversal,
    type_name,
    value_of,
)

_CLAUSE = re.compile(r"%(?:%|(?:\.([0-9]{1,4}))?([a-zA-Z]))")
_MOST_DIGITS = 1000
_PLAIN = 6
"""Powers of ten from which on Go writes an exponent."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000


def number_text(value: float) -> str:
    """A double as Go's ``%g`` writes it: ``1e+06``, ``0.5``, ``NaN``, ``+Inf``."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0"
    exponent = int(power or 0) + len(whole) - 1
    if whole == "0":
        exponent = int(power or 0) - (len(fraction) - len(fraction.lstrip("0"))) - 1
    digits = digits.rstrip("0")
    if exponent < -4 or exponent >= _PLAIN:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'+' if exponent >= 0 else '-'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 1, "0")
    rest = padded[exponent + 1 :]
    return f"{sign}{padded[: exponent + 1]}{'.' if rest else ''}{rest}"


def duration_text(duration: Duration) -> str:
    """A duration in seconds, for example ``1.5s``."""
    whole, rest = divmod(abs(duration.nanoseconds), _SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if duration.nanoseconds < 0 else ''}{whole}{fraction}s"


def timestamp_text(timestamp: Timestamp) -> str:
    """A timestamp in RFC 3339, in UTC."""
    seconds, rest = divmod(timestamp.nanoseconds, _SECOND)
    date = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{date.year:04d}{date:-%m-%dT%H:%M:%S}{fraction}Z"


def text_of(value: Any) -> str:
    """The result of ``string(value)``.

    Raises:
        EvaluationError: values of this type have no text.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return number_text(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError as error:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case _:
            raise no_such_overload("string", value)


def formatted(budget: Budget, pattern: str, values: list[Any]) -> str:
    """The pattern with its clauses filled in; parts are charged as they are built.

    Raises:
        EvaluationError: a clause is unknown, has no value or does not fit its value.
    """
    budget.charge(traversal(len(pattern)))
    parts: list[str] = []
    at = used = 0
    while (start := pattern.find("%", at)) >= 0:
        parts.append(pattern[at:start])
        found = _CLAUSE.match(pattern, start)
        if found is None:
            raise EvaluationError("could not parse formatting clause")
        at = found.end()
        if found[2] is None:
            parts.append("%")
            continue
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        part = _clause(budget, found[2], found[1], values[used])
        budget.charge(traversal(len(part)))
        parts.append(part)
        used += 1
    parts.append(pattern[at:])
    return "".join(parts)


def _clause(budget: Budget, letter: str, precision: str | None, value: Any) -> str:
    digits = int(precision) if precision else 6
    if digits > _MOST_DIGITS:
        raise EvaluationError(f"precision {digits} exceeds {_MOST_DIGITS}")
    number = isinstance(value, int) and not isinstance(value, bool)
    match letter:
        case "s":
            return _shown(budget, value)
        case "d" if number or isinstance(value, float):
            return _shown(budget, value)
        case "f" | "e" if number or isinstance(value, float):
            text = f"{float(value):.{digits}{letter}}"
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
        case "b" if number or isinstance(value, bool):
            return f"{int(value):b}"
        case "o" if number:
            return f"{int(value):o}"
        case "x" | "X" if number:
            return f"{int(value):{letter}}"
        case "x" | "X" if isinstance(value, str | bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if letter == "X" else text
    if letter in "sdfeboxX":
        raise EvaluationError(f"error during formatting: %{letter} cannot be used on {type_name(value)}")
    raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')


def _shown(budget: Budget, value: Any) -> str:
    """A value as text; lists and maps with their elements."""
    budget.charge(1)
    match value:
        case list():
            return f"[{', '.join(_shown(budget, each) for each in value)}]"
        case dict() | DomainMap():
            entries = sorted(
                ((_shown(budget, value_of(key)), value[key]) for key in value), key=itemgetter(0)
            )
            return f"{{{', '.join(f'{key}: {_shown(budget, each)}' for key, each in entries)}}}"
        case None:
            return "null"
        case TypeValue():
            return value.name
        case float():
            if math.isinf(value):
                return "Infinity" if value > 0 else "-Infinity"
            return number_text(value)
        case UInt():
            return str(int(value))
        case _:
            text = text_of(value)
            budget.charge(traversal(len(text)))
            return text
