"""Quantities: ``"500m"``, ``"1Gi"``, ``"15e-1"`` into integers, exactly.

A quantity is a sign, a decimal number and a suffix: none, ``n u m k M G T P E`` (powers of 1000),
``Ki Mi Gi Ti Pi Ei`` (powers of 1024) or ``e``/``E`` with an exponent of ten. Below one billionth it
rounds up.

Units: :func:`milli` gives thousandths (CPU), :func:`units` whole units (everything else); both round away
from zero: a fraction of a byte is a byte. What does not fit 64 bits reads as 0, as it does upstream.
Source: Kubernetes v1.36, ``apimachinery/pkg/api/resource``.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

QuantityValue: TypeAlias = str | int | float
"""A quantity as JSON or YAML carries it."""

MAX_INT64 = 2**63 - 1
MAX_LENGTH = 256
"""Characters of the longest text that is read; nobody means more, and arithmetic on it would be slow."""
MAX_EXPONENT = 999
"""Largest exponent of ten, for the same reason."""

_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """A text that is no quantity.

    Attributes:
        text: what was written.
    """

    def __init__(self, text: object) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return (
            f"{self.text!r} is not a quantity: a number with an optional suffix is allowed"
            " (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent), for example 500m or 1.5Gi"
        )


@lru_cache(maxsize=65536, typed=True)
def nanos(quantity: QuantityValue) -> int:
    """The quantity in billionths, an exact integer of any size.

    Raises:
        QuantityError: the text is no quantity.
    """
    sign, value, suffix = _parsed(quantity)
    if suffix in _BINARY:
        value *= 1 << _BINARY[suffix]
        value = min(value, Fraction(MAX_INT64))
    else:
        exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        value *= Fraction(10) ** exponent
    billionths = -(-value.numerator * 10**9 // value.denominator)
    return sign * billionths


def _parsed(quantity: QuantityValue) -> tuple[int, Fraction, str]:
    text = str(quantity)
    match = _PATTERN.fullmatch(text)
    if not 0 < len(text) <= MAX_LENGTH or isinstance(quantity, bool) or match is None:
        raise QuantityError(quantity)
    sign, whole, fraction, suffix = match.groups(default="")
    if suffix not in _DECIMAL and suffix not in _BINARY and abs(int(suffix[1:])) > MAX_EXPONENT:
        raise QuantityError(quantity)
    value = Fraction(int((whole + fraction) or "0"), 10 ** len(fraction))
    return (-1 if sign == "-" else 1), value, suffix


def scaled(billionths: int, scale: int) -> int:
    """Billionths divided by ``scale``, rounded away from zero; 0 when that needs more than 64 bits."""
    size = -(-abs(billionths) // scale)
    if size > MAX_INT64:
        return 0
    return size if billionths >= 0 else -size


@lru_cache(maxsize=65536, typed=True)
def milli(quantity: QuantityValue) -> int:
    """The quantity in thousandths, rounded away from zero.

    Raises:
        QuantityError: the text is no quantity.
    """
    return scaled(nanos(quantity), 10**6)


@lru_cache(maxsize=65536, typed=True)
def units(quantity: QuantityValue) -> int:
    """The quantity in whole units, rounded away from zero.

    Raises:
        QuantityError: the text is no quantity.
    """
    return scaled(nanos(quantity), 10**9)


def canonical(quantity: QuantityValue) -> str:
    """The one spelling the API server answers with: no fraction, the largest suffix that loses nothing.

    Example:
        >>> canonical("1.5Gi"), canonical("0.5"), canonical("1000m"), canonical("12e6")
        ('1536Mi', '500m', '1', '12e6')

    Raises:
        QuantityError: the text is no quantity.
    """
    _, _, suffix = _parsed(quantity)
    billionths = nanos(quantity)
    sign, size = ("-" if billionths < 0 else ""), abs(billionths)
    if suffix in _BINARY and size >= 1024 * 10**9 and size % 10**9 == 0:
        value = size // 10**9
        name = ""
        for candidate, bits in _BINARY.items():
            if value % (1 << bits) == 0:
                name = candidate
        return f"{sign}{value >> _BINARY.get(name, 0)}{name}"
    exponent = -9
    while size and size % 1000 == 0:
        size //= 1000
        exponent += 3
    if not size:
        return "0"
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return f"{sign}{size}" + (f"e{exponent}" if exponent else "")
    while exponent > 18:
        size *= 1000
        exponent -= 3
    name = next(name for name, power in _DECIMAL.items() if power == exponent)
    return f"{sign}{size}{name}"
