"""Checks string formats of schemas; unknown formats accept every string.

Source: kube-openapi ``pkg/validation/strfmt``; Go's ``encoding/base64``, whose message that of bytes is.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_NANOSECONDS |= {"m": 60 * 10**9, "h": 3600 * 10**9}
_HOSTNAME = re.compile(
    r"(?=.{1,253}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*", re.IGNORECASE
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def instant(text: str) -> dt.datetime | None:
    """The time in an RFC 3339 text, None for other texts."""
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return None
    fraction = (found[3] or ".0")[:7]
    zone = "+00:00" if (found[4] or "Z") in "Zz" else found[4]
    try:
        return dt.datetime.fromisoformat(f"{found[1]}T{found[2]}{fraction.ljust(7, '0')}{zone}")
    except ValueError:
        return None


def duration_nanoseconds(text: str) -> int | None:
    """The length of a duration such as "1h30m", None for other texts."""
    sign = -1 if text.startswith("-") else 1
    rest = text.removeprefix("-").removeprefix("+") if text[:1] in "+-" else text
    if rest == "0":
        return 0
    parts = _DURATION_PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        return None
    return sign * sum(round(float(number) * _NANOSECONDS[unit]) for number, unit in parts)


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def fitting(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return fitting


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme) or text.startswith("/")
    except ValueError:
        return False


def _is_uuid(version: str = "") -> Callable[[str], bool]:
    def fitting(text: str) -> bool:
        found = _UUID.fullmatch(text)
        return found is not None and version in ("", text.replace("-", "")[12])

    return fitting


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": lambda text: instant(text) is not None,
    "datetime": lambda text: instant(text) is not None,
    "duration": lambda text: duration_nanoseconds(text) is not None,
    "byte": _is_base64,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _parses(ipaddress.ip_interface)(text),
    "uri": _is_uri,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uuid": _is_uuid(),
    "uuid3": _is_uuid("3"),
    "uuid4": _is_uuid("4"),
    "uuid5": _is_uuid("5"),
}


def fits(form: str, text: str) -> bool:
    """Whether a text has a format."""
    check = _CHECKS.get(form)
    return check is None or check(text)


def checked_base64(text: str) -> str:
    """Check that a text is base64, and return it.

    Raises:
        ValueError: it is not; the message names the position.
    """
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        found = _BASE64.match(text)
        end = found.end() if found else 0
        at = end if end < len(text) else len(text) - len(text) % 4
        raise ValueError(f"illegal base64 data at input byte {at}") from None
    return text
