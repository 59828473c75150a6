"""Timestamps and durations: reading, arithmetic, parts.

Times are in UTC unless a zone is given.
Source: cel-spec ``doc/langdef.md``; Go's ``time.ParseDuration``; RFC 3339.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from dra_cel.functions.table import FunctionTable
from dra_cel.values import Duration, EvaluationError, Timestamp, checked_int, parsing

_SECOND = 1_000_000_000
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": _SECOND}
_UNITS |= {"m": 60 * _SECOND, "h": 3600 * _SECOND}
_PART = re.compile(r"([0-9]{1,40})(?:\.([0-9]{0,40}))?(ns|us|µs|μs|ms|s|m|h)")
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,40}))?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_LONGEST_ZONE = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) * _SECOND
_LAST = (
    (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) * _SECOND + _SECOND - 1
)


def parse_duration(text: str) -> Duration:
    """Read a duration such as ``1h30m`` or ``-1.5s``.

    Raises:
        EvaluationError: the text cannot be read.
    """
    rest = text[1:] if text[:1] in {"+", "-"} else text
    total, at = 0, 0
    while found := _PART.match(rest, at):
        unit, fraction = _UNITS[found[3]], found[2] or ""
        total += int(found[1]) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        at = found.end()
    if rest != "0" and (not rest or at < len(rest)):
        raise EvaluationError(f"invalid duration argument: {text[:64]!r}")
    return Duration(checked_int(-total if text[0] == "-" else total))


def parse_timestamp(text: str) -> Timestamp:
    """Read a time such as ``2026-01-01T00:00:00Z``.

    Raises:
        EvaluationError: the text cannot be read.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        raise EvaluationError(f"invalid timestamp argument: {text[:64]!r}")
    try:
        zone = found[3].upper().replace("Z", "+00:00")
        date = datetime.fromisoformat(f"{found[1].upper()}{zone}")
        seconds = (date - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError) as error:
        raise EvaluationError(f"invalid timestamp argument: {text[:64]!r}") from error
    return _timestamp(seconds * _SECOND + int((found[2] or "0")[:9].ljust(9, "0")))


def _timestamp(nanoseconds: int) -> Timestamp:
    if not _FIRST <= nanoseconds <= _LAST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def _zone(name: str) -> tzinfo:
    found = _OFFSET.fullmatch(name)
    try:
        if found is None:
            return ZoneInfo(name[:_LONGEST_ZONE])
        minutes = int(found[2]) * 60 + int(found[3])
        return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    except (ValueError, OSError, KeyError) as error:
        raise EvaluationError(f"unknown time zone {name[:_LONGEST_ZONE]}") from error


def _local(timestamp: Timestamp, zone: str = "") -> datetime:
    try:
        date = _EPOCH + timedelta(seconds=timestamp.nanoseconds // _SECOND)
        return date.astimezone(_zone(zone)) if zone else date
    except OverflowError as error:
        raise EvaluationError("timestamp overflow") from error


_PARTS: dict[str, Any] = {
    "getFullYear": lambda date: date.year,
    "getMonth": lambda date: date.month - 1,
    "getDate": lambda date: date.day,
    "getDayOfMonth": lambda date: date.day - 1,
    "getDayOfWeek": lambda date: date.isoweekday() % 7,
    "getDayOfYear": lambda date: date.timetuple().tm_yday - 1,
    "getHours": lambda date: date.hour,
    "getMinutes": lambda date: date.minute,
    "getSeconds": lambda date: date.second,
}
_DURATION_UNITS = {"getHours": 3600 * _SECOND, "getMinutes": 60 * _SECOND, "getSeconds": _SECOND}


def _quotient(duration: Duration, unit: int) -> int:
    whole = abs(duration.nanoseconds) // unit
    return -whole if duration.nanoseconds < 0 else whole


def _milliseconds(value: Timestamp | Duration, _zone: str = "") -> int:
    if isinstance(value, Duration):
        return _quotient(value, 10**6)
    return value.nanoseconds % _SECOND // 10**6


def _sum(left: Any, right: Any) -> Any:
    total = left.nanoseconds + right.nanoseconds
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration(checked_int(total))
    return _timestamp(total)


def _difference(left: Any, right: Any) -> Any:
    rest = left.nanoseconds - right.nanoseconds
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return _timestamp(rest)
    return Duration(checked_int(rest))


TABLE = FunctionTable()
TABLE.add("duration", (str,), parse_duration, parsing)
TABLE.add("duration", (Duration,), lambda value: value)
TABLE.add("timestamp", (str,), parse_timestamp)
TABLE.add("timestamp", (int,), lambda seconds: _timestamp(seconds * _SECOND))
TABLE.add("timestamp", (Timestamp,), lambda value: value)
TABLE.add("int", (Timestamp,), lambda value: value.nanoseconds // _SECOND)
for _name, _part in _PARTS.items():
    TABLE.add(_name, (Timestamp,), lambda value, part=_part: part(_local(value)))
    TABLE.add(_name, (Timestamp, str), lambda value, zone, part=_part: part(_local(value, zone)))
for _name, _unit in _DURATION_UNITS.items():
    TABLE.add(_name, (Duration,), lambda value, unit=_unit: _quotient(value, unit))
TABLE.add("getMilliseconds", (Duration,), _milliseconds)
TABLE.add("getMilliseconds", (Timestamp,), _milliseconds)
TABLE.add("getMilliseconds", (Timestamp, str), _milliseconds)
TABLE.add("_+_", (Timestamp, Duration), _sum)
TABLE.add("_+_", (Duration, Timestamp), _sum)
TABLE.add("_+_", (Duration, Duration), _sum)
TABLE.add("_-_", (Timestamp, Timestamp), _difference)
TABLE.add("_-_", (Timestamp, Duration), _difference)
TABLE.add("_-_", (Duration, Duration), _difference)
