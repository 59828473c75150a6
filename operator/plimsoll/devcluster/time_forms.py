"""Times as the API writes them: whole seconds (``Time``) or six decimals (``MicroTime``), in UTC."""

from __future__ import annotations

import datetime as dt
import re

_SECONDS = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ")
_MICROS = re.compile(r"[^.]*\.\d{6}(Z|[+-]\d\d:\d\d)")


def _read(text: str) -> dt.datetime:
    # Go accepts any number of decimals, Python no more than six.
    shortened = re.sub(r"(\.\d{6})\d+", r"\1", text)
    moment = dt.datetime.fromisoformat(shortened)
    if moment.tzinfo is None or "T" not in text.upper():
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return moment.astimezone(dt.UTC)


def seconds(text: str) -> str:
    """A time in whole seconds.

    Raises:
        ValueError: it is no RFC 3339 time.
    """
    return text if _SECONDS.fullmatch(text) else _read(text).strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(text: str) -> str:
    """A time with six decimals.

    Raises:
        ValueError: it is no RFC 3339 time, or has not exactly six decimals.
    """
    if not _MICROS.fullmatch(text):
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse')
    return _read(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
