"""Reads quantities such as ``40Gi`` or ``15e-1`` into billionths.

Every text that the API server accepts is read, in time and memory that grow with its length alone.

Source: Kubernetes v1.36, ``apimachinery/pkg/api/resource``.
"""

from __future__ import annotations

import re

BILLION = 10**9
GREATEST = (2**63 - 1) * BILLION
"""The largest quantity with a binary suffix; larger ones are read as this one."""
EXACT_DIGITS = 1000
"""Digits, in billionths, of the largest number that is built whole."""
MODULUS = 2**64 * BILLION
"""What is kept of a larger number is its remainder by this one."""

_WRITTEN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FRACTION_DIGITS = 100
_EXPONENT_LENGTH = 21


def billionths_of(text: str) -> int:
    """The quantity in billionths, rounded away from zero.

    Exact up to a thousand digits. A larger number is represented by its remainder by :data:`MODULUS`, and is
    larger than all numbers of fewer digits.

    Raises:
        ValueError: the text is no quantity.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None or not text:
        raise ValueError(text)
    sign, whole, fraction, suffix = found.groups(default="")
    whole = whole.lstrip("0")
    size = (
        _binary(whole, fraction, _BINARY[suffix])
        if suffix in _BINARY
        else _shifted(whole + fraction, _exponent(suffix) - len(fraction) + 9)
    )
    return -size if sign == "-" else size


def _binary(whole: str, fraction: str, exponent: int) -> int:
    if len(whole) > EXACT_DIGITS:
        return GREATEST
    # The omitted digits make no difference except by being there.
    rest = "1" if fraction[_FRACTION_DIGITS:].strip("0") else ""
    fraction = fraction[:_FRACTION_DIGITS] + rest
    size = -(-(int(whole + fraction or "0") * BILLION << exponent) // _power(len(fraction)))
    return min(size, GREATEST)


def _exponent(suffix: str) -> int:
    """The power of ten of a suffix; one in digits as upstream reads it: 64 bits, of which 32 are kept."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    digits = suffix[1:].lstrip("+-").lstrip("0")
    exponent = int(digits or "0") if len(digits) < _EXPONENT_LENGTH else 2**64
    exponent = -exponent if suffix[1] == "-" else exponent
    if not -(2**63) <= exponent < 2**63:
        raise ValueError(suffix)
    return (exponent + 2**31) % 2**32 - 2**31


def _power(exponent: int) -> int:
    return int(10**exponent)


def _shifted(digits: str, exponent: int) -> int:
    """A number times a power of ten, rounded up; see :func:`billionths_of` for large ones."""
    digits = digits.lstrip("0")
    if not digits:
        return 0
    if exponent < 0:
        kept = max(len(digits) + exponent, 0)
        more = bool(digits[kept:].strip("0"))
        return _shifted(digits[:kept], 0) + more
    if len(digits) + exponent <= EXACT_DIGITS:
        return int(digits) * _power(exponent)
    remainder = 0
    for start in range(0, len(digits), EXACT_DIGITS):
        chunk = digits[start : start + EXACT_DIGITS]
        remainder = (remainder * _power(len(chunk)) + int(chunk)) % MODULUS
    remainder = remainder * pow(10, exponent, MODULUS) % MODULUS
    return (len(digits) + exponent) * _power(EXACT_DIGITS) * MODULUS + remainder
