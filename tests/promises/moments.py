"""Reads moments, durations and windows of cron, as written in objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def seconds(text: str) -> float:
    """A moment in RFC 3339, in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def duration_s(text: str) -> float:
    """A duration as Go writes it, such as 1h30m, in seconds."""
    return sum(
        float(number) * UNITS[unit] for number, unit in re.findall(r"([0-9.]+)(ns|us|µs|ms|s|m|h)", text)
    )


def is_open(cron: str, duration: str, zone: str | None, moment: float) -> bool:
    """Whether a window is open at a moment.

    Args:
        cron: When it opens, as five fields.
        duration: How long it stays open.
        zone: Of the fields, by its IANA name; UTC where it is left out.
        moment: In seconds since the epoch.
    """
    now = datetime.fromtimestamp(moment, UTC)
    minute = now.replace(second=0, microsecond=0)
    while now - minute < timedelta(seconds=duration_s(duration)):
        if opens(cron, minute.astimezone(ZoneInfo(zone or "UTC"))):
            return True
        minute -= timedelta(minutes=1)
    return False


def opens(cron: str, minute: datetime) -> bool:
    """Whether five fields of cron name this minute."""
    fields = cron.lower().split()
    values = (minute.minute, minute.hour, minute.day, minute.month, minute.isoweekday() % 7)
    firsts, lasts = (0, 0, 1, 1, 0), (59, 23, 31, 12, 7)
    return all(
        _names(field, value, first, last) or (last == 7 and value == 0 and _names(field, 7, first, last))
        for field, value, first, last in zip(fields, values, firsts, lasts, strict=True)
    )


def _names(field: str, value: int, first: int, last: int) -> bool:
    for item in field.split(","):
        span, _, step = item.partition("/")
        begin, _, end = span.partition("-")
        if span == "*":
            low, high = first, last
        else:
            low = _number(begin)
            high = _number(end) if end else (last if step else low)
        if low <= value <= high and (value - low) % int(step or 1) == 0:
            return True
    return False


def _number(text: str) -> int:
    if text in MONTHS:
        return MONTHS.index(text) + 1
    return DAYS.index(text) if text in DAYS else int(text)
