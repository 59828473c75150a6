"""Reads the schedule of a CronJob and finds the times that it names.

Source: github.com/robfig/cron v3 ``parser.go``, ``spec.go``. Times that a change to summer time skips are not
scheduled, as there.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

_MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True))  # noqa: SIM905
_DAYS = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))  # noqa: SIM905
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 7, _DAYS),
)
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_LONGEST = dt.timedelta(days=5 * 366)
#: How far back the latest time is looked for, first near and then far.
_BACK = (dt.timedelta(days=1), dt.timedelta(days=32), _LONGEST)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values of minute, hour, day of the month, month and day of the week; or a number of seconds."""

    values: tuple[frozenset[int], ...] = ()
    any_day: bool = True
    zone: dt.tzinfo = dt.UTC
    every_s: float = 0.0

    def after(self, moment: dt.datetime) -> dt.datetime | None:
        """The first time after a moment, in UTC; None without one within five years."""
        if self.every_s:
            return (moment + dt.timedelta(seconds=self.every_s)).replace(microsecond=0)
        minutes, hours, _, months, _ = self.values
        start = moment.astimezone(self.zone).replace(tzinfo=None, second=0, microsecond=0)
        at, end = start + dt.timedelta(minutes=1), start + _LONGEST
        while at < end:
            if at.month not in months:
                at = (at.replace(day=1, hour=0, minute=0) + dt.timedelta(days=32)).replace(day=1)
            elif not self._is_day(at):
                at = at.replace(hour=0, minute=0) + dt.timedelta(days=1)
            elif at.hour not in hours:
                at = at.replace(minute=0) + dt.timedelta(hours=1)
            elif at.minute not in minutes:
                at += dt.timedelta(minutes=1)
            else:
                found = at.replace(tzinfo=self.zone).astimezone(dt.UTC)
                if found.astimezone(self.zone).replace(tzinfo=None) == at:
                    return found
                at += dt.timedelta(minutes=1)
        return None

    def latest(self, since: dt.datetime, now: dt.datetime) -> dt.datetime | None:
        """The last time after ``since`` that is not after ``now``."""
        for back in _BACK:
            found, at = None, self.after(since if self.every_s else max(since, now - back))
            while at is not None and at <= now:
                found, at = at, self.after(at)
            if found or now - back <= since:
                return found
        return None

    def _is_day(self, at: dt.datetime) -> bool:
        """Whether day of the month and day of the week fit: one of them, where both are restricted."""
        by_month, by_week = at.day in self.values[2], at.isoweekday() % 7 in self.values[4]
        return (by_month and by_week) if self.any_day else (by_month or by_week)


@lru_cache(maxsize=256)
def schedule_of(text: str, zone: str = "") -> Schedule:
    """Read a schedule such as ``*/5 * * * *``, ``@daily`` or ``@every 1h30m``.

    Raises:
        ValueError: it is malformed; KeyError (ZoneInfoNotFoundError): the zone is unknown.
    """
    if text.startswith("@every "):
        parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|m|s)", text.removeprefix("@every "))
        return Schedule(every_s=max(1.0, sum(float(number) * _UNITS[unit] for number, unit in parts)))
    words = _NICKNAMES.get(text, text).split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"expected exactly {len(_FIELDS)} fields, found {len(words)}: {words}")
    values = [_values(word, *field) for word, field in zip(words, _FIELDS, strict=True)]
    values[4] = frozenset(day % 7 for day in values[4])
    any_day = any(words[one][0] in "*?" for one in (2, 4))
    return Schedule(tuple(values), any_day, ZoneInfo(zone) if zone else dt.UTC)


def _values(word: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    def number(text: str) -> int:
        value = names.get(text.lower())
        value = int(text) if value is None else value
        if not low <= value <= high:
            raise ValueError(f"{value} is not in the range {low} to {high}: {word}")
        return value

    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            begin, end = low, high
        else:
            begin = number(first)
            end = number(last) if dash else high if step else begin
        found |= set(range(begin, end + 1, int(step or 1)))
    return frozenset(found)
