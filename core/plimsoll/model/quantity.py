"""Quantities: ``"500m"``, ``"1Gi"``, ``"15e-1"`` into integers, exactly.

A quantity is a sign, a decimal number and a suffix: none, ``n u m k M G T P E`` (powers of 1000),
``Ki Mi Gi Ti Pi Ei`` (powers of 1024) or ``e``/``E`` with an exponent of ten. Below one billionth it
rounds up.

Units: :func:`milli` returns thousandths (CPU), :func:`units` whole units (everything else); both round away
from zero: a fraction of a byte is a byte. An amount that does not fit 64 bits is read as upstream reads it
(:class:`Amount`), and as 0 if that is below zero.
Edges: every text that the API server accepts is read, in time and memory that grow with its length alone.
Source: Kubernetes v1.36, ``apimachinery/pkg/api/resource``.
"""

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from plimsoll.model.shortened import shortened

QuantityValue: TypeAlias = str | int | float
"""A quantity as JSON or YAML carries it."""

MAX_INT64 = 2**63 - 1
BILLION = 10**9

SHORT_LENGTH = 256
"""Characters up to which the values of many texts are remembered; of longer ones a few are."""
EXACT_DIGITS = 1000
"""Digits, in billionths, of the largest number that is built whole."""
MODULUS = 2**64 * BILLION
"""What is kept of a larger number: all that decides about the 64 bits that upstream keeps of it."""
SHOWN = 64
"""Characters of a text that an error repeats."""

_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FRACTION_DIGITS = 100
_EXPONENT_LENGTH = 21
_SHORT_DIGITS = 18


class QuantityError(ValueError):
    """A text is not a quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        shown = shortened(repr(self.text), SHOWN)
        return (
            f"{shown} is not a quantity: a number with an optional suffix is allowed"
            " (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent), for example 500m or 1.5Gi"
        )


class Parts(NamedTuple):
    """A quantity as it is written: sign, digits before (no leading zeros) and after the point, suffix.

    The exponent is the power of ten, or of two where ``is_binary``, that the suffix means.
    """

    sign: int
    whole: str
    fraction: str
    exponent: int
    is_binary: bool


def parts_of(quantity: QuantityValue) -> Parts:
    """Split a quantity into its parts.

    Raises:
        QuantityError: the text is no quantity.
    """
    text = str(quantity).strip()
    match = _PATTERN.fullmatch(text)
    if not text or isinstance(quantity, bool) or match is None:
        raise QuantityError(quantity)
    sign, whole, fraction, suffix = match.groups(default="")
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
    elif suffix in _DECIMAL:
        exponent = _DECIMAL[suffix]
    else:
        exponent = _int32(suffix[1:], quantity)
    return Parts(-1 if sign == "-" else 1, whole.lstrip("0"), fraction, exponent, suffix in _BINARY)


def _int32(text: str, quantity: QuantityValue) -> int:
    """An exponent as upstream reads it: 64 bits, of which 32 are kept."""
    digits = text.lstrip("+-").lstrip("0")
    exponent = int(digits or "0") if len(digits) < _EXPONENT_LENGTH else 2**64
    exponent = -exponent if text[0] == "-" else exponent
    if not -(2**63) <= exponent <= MAX_INT64:
        raise QuantityError(quantity)
    return (exponent + 2**31) % 2**32 - 2**31


def nanos(quantity: QuantityValue) -> int:
    """The quantity in billionths, rounded away from zero.

    Exact up to a thousand digits. A larger number is represented by its remainder by :data:`MODULUS`, and is
    larger than all numbers of fewer digits.

    Raises:
        QuantityError: the text is no quantity.
    """
    try:
        return _short_text(quantity)
    except _LongTextError:
        return _long_text(quantity)


class _LongTextError(Exception):
    """A long text, of which few are cached: it may be a megabyte long."""


@lru_cache(maxsize=16_384, typed=True)
def _short_text(quantity: QuantityValue) -> int:
    if isinstance(quantity, str) and len(quantity) > SHORT_LENGTH:
        raise _LongTextError
    return _nanos(quantity)


@lru_cache(maxsize=64)
def _long_text(quantity: QuantityValue) -> int:
    return _nanos(quantity)


def _nanos(quantity: QuantityValue) -> int:
    sign, whole, fraction, exponent, is_binary = parts_of(quantity)
    if not is_binary:
        return sign * _shifted(whole + fraction, exponent - len(fraction) + 9)
    if len(whole) > EXACT_DIGITS:
        return sign * MAX_INT64 * BILLION
    # The omitted digits make no difference except by being there.
    rest = "1" if fraction[_FRACTION_DIGITS:].strip("0") else ""
    fraction = fraction[:_FRACTION_DIGITS] + rest
    size = -(-(int(whole + fraction or "0") * BILLION << exponent) // _power(len(fraction)))
    return sign * min(size, MAX_INT64 * BILLION)


def _power(exponent: int) -> int:
    return int(10**exponent)


def _shifted(digits: str, exponent: int) -> int:
    """A number times a power of ten, rounded up; see :func:`nanos` for large ones."""
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


def scaled(billionths: int, scale: int) -> int:
    """Billionths divided by ``scale``, rounded away from zero; 0 when that needs more than 64 bits."""
    size = -(-abs(billionths) // scale)
    if size > MAX_INT64:
        return 0
    return size if billionths >= 0 else -size


def milli(quantity: QuantityValue) -> int:
    """The quantity in thousandths, rounded away from zero.

    Raises:
        QuantityError: the text is no quantity.
    """
    return in_unit(quantity, 10**6)


def units(quantity: QuantityValue) -> int:
    """The quantity in whole units, rounded away from zero.

    Raises:
        QuantityError: the text is no quantity.
    """
    return in_unit(quantity, BILLION)


def in_unit(quantity: QuantityValue, unit: int) -> int:
    """The quantity in units of so many billionths (a million or a billion), rounded away from zero.

    Raises:
        QuantityError: the text is no quantity.
    """
    billionths = nanos(quantity)
    if abs(billionths) <= MAX_INT64 * unit:
        return scaled(billionths, unit)
    return Amount.of(quantity).in_unit(unit)


def readable(quantity: QuantityValue) -> QuantityValue:
    """The quantity, or 0 for an invalid text: one unreadable amount does not affect the others."""
    try:
        nanos(quantity)
    except QuantityError:
        return 0
    return quantity


class Amount:
    """An amount as Kubernetes' ``Quantity`` computes with it, for amounts that do not fit 64 bits.

    It has one of two forms. A *short* form, of an integer of 64 bits and a power of ten, is read as 0 if it
    is too large. A *long* form, of unlimited digits, keeps its lowest 64 bits. A sum that is too large for
    the short form has the long one.

    Attributes:
        nanos: The amount in billionths, as by :func:`nanos`.
        exponent: The power of ten of its last digit.
        value: The integer of the short form, None in the long one.
    """

    __slots__ = ("exponent", "nanos", "value")

    def __init__(self, billionths: int, exponent: int, value: int | None) -> None:
        self.nanos = billionths
        self.exponent = exponent
        self.value = value

    @classmethod
    def of(cls, quantity: QuantityValue) -> "Amount":
        """Read a quantity.

        Raises:
            QuantityError: the text is no quantity.
        """
        sign, whole, fraction, exponent, is_binary = parts_of(quantity)
        whole = whole or "0"
        if is_binary:
            is_short = not fraction and 14 - len(whole) >= exponent * 3 // 10
            value = int(whole) << exponent if is_short else None
            return cls(nanos(quantity), 0, None if value is None else sign * value)
        exponent -= len(fraction)
        if len(whole) + len(fraction) <= _SHORT_DIGITS and exponent >= -9:
            return cls(nanos(quantity), exponent, sign * int(whole + fraction))
        return cls(nanos(quantity), -9, None)

    @classmethod
    def of_nanos(cls, billionths: int) -> "Amount":
        """That many billionths, in the short form."""
        return cls(billionths, -9, billionths)

    def __add__(self, other: "Amount") -> "Amount":
        """The sum, in upstream's form."""
        if other.value == 0:
            return self
        if self.value == 0:
            return other
        exponent = min(self.exponent, other.exponent)
        value = None
        if self.value is not None and other.value is not None:
            apart = self.exponent - other.exponent
            one = self.value * _power(min(max(apart, 0), _SHORT_DIGITS + 1))
            two = other.value * _power(min(max(-apart, 0), _SHORT_DIGITS + 1))
            if max(abs(one), abs(two), abs(one + two)) <= MAX_INT64:
                value = one + two
        return Amount(self.nanos + other.nanos, exponent, value)

    def raised_to(self, floor: "Amount") -> "Amount":
        """The larger of both; a comparison with the long form gives ``floor`` that form."""
        if floor.nanos <= self.nanos:
            return self
        return Amount(floor.nanos, floor.exponent, None if self.value is None else floor.value)

    def in_unit(self, unit: int) -> int:
        """The amount in units of so many billionths (a million or a billion); 0 where upstream's is below."""
        size = -(-self.nanos // unit)
        if abs(size) <= MAX_INT64:
            return scaled(self.nanos, unit)
        if (
            self.value is not None
            or size < 0
            or self.exponent + (0 if unit == BILLION else 3) > _SHORT_DIGITS
        ):
            return 0
        kept = size % 2**64
        return kept if kept <= MAX_INT64 else 0
