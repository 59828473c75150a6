"""Reads and writes times of the Kubernetes API: RFC 3339 in UTC.

A ``Time`` has whole seconds, a ``MicroTime`` six decimals.
"""

from __future__ import annotations

import datetime as dt
import functools
import re


@functools.lru_cache(maxsize=4096)
def _to_timestamp(second: int) -> str:
    return dt.datetime.fromtimestamp(second, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_timestamp(seconds: float) -> str:
    """A time, given in seconds since the epoch, as ``metav1.Time``."""
    return _to_timestamp(int(seconds))


@functools.lru_cache(maxsize=4096)
def to_seconds(timestamp: str) -> float:
    """A ``metav1.Time`` or ``metav1.MicroTime`` in seconds since the epoch.

    Raises:
        ValueError: it is not such a time.
    """
    return dt.datetime.fromisoformat(timestamp).timestamp()


def to_microtime(seconds: float) -> str:
    """A time, given in seconds since the epoch, as ``metav1.MicroTime``."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def timestamp_of(moment: dt.datetime) -> str:
    """A time in UTC as ``metav1.Time``."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_MICROS = re.compile(r"[^.]*\.\d{6}(Z|[+-]\d\d:\d\d)")


_FORM = "2006-01-02T15:04:05Z07:00"
#: The parts of Go's layout: a pattern and Go's name for it.
_PARTS = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d\d", "01"),
    ("-", "-"),
    (r"\d\d", "02"),
    ("T", "T"),
    (r"\d\d", "15"),
    (":", ":"),
    (r"\d\d", "04"),
    (":", ":"),
    (r"\d\d(\.\d+)?", "05"),
    (r"Z|[+-]\d\d:\d\d", "Z07:00"),
)


_MICRO_FORM = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_PARTS = (*_PARTS[:-2], (r"\d\d", "05"), (r"\.\d{6}", ".000000"), _PARTS[-1])


def _fault(text: str, form: str = _FORM, parts: tuple[tuple[str, str], ...] = _PARTS) -> str:
    """Go's message for a text that is not a time."""
    end = 0
    for pattern, name in parts:
        found = re.compile(pattern).match(text, end)
        if found is None:
            return f'parsing time "{text}" as "{form}": cannot parse "{text[end:]}" as "{name}"'
        end = found.end()
    why = f'extra text: "{text[end:]}"' if end < len(text) else f"{_out_of_range(text)} out of range"
    return f'parsing time "{text}": {why}'


def _out_of_range(text: str) -> str:
    """The part of a time that no calendar has; the day of a month comes last."""
    month, hour, minute, second = (int(text[at : at + 2]) for at in (5, 11, 14, 17))
    parts = {"month": 0 < month < 13, "hour": hour < 24, "minute": minute < 60, "second": second < 60}
    return next((name for name, is_right in parts.items() if not is_right), "day")


def _read(text: str) -> dt.datetime:
    # Go accepts any number of decimals, Python no more than six.
    shortened = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        moment = dt.datetime.fromisoformat(shortened)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in text:
        raise ValueError(_fault(text))
    return moment.astimezone(dt.UTC)


@functools.lru_cache(maxsize=4096)
def checked_time(text: str) -> str:
    """A time in whole seconds.

    Raises:
        ValueError: it is not an RFC 3339 time.
    """
    return _read(text).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def checked_microtime(text: str) -> str:
    """A time with six decimals.

    Raises:
        ValueError: it is not an RFC 3339 time with six decimals.
    """
    if not _MICROS.fullmatch(text):
        raise ValueError(_fault(text, _MICRO_FORM, _MICRO_PARTS))
    return _read(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
