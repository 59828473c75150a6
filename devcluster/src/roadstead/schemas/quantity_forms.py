"""Computes the canonical form and the value of quantities.

Source: apimachinery v1.36 ``api/resource/quantity.go``. The format of the suffix stays (binary, decimal,
exponent), except that fractions of a byte are decimal; the number becomes whole and its suffix as large as
possible. Numbers of any length stay exact. An exponent beyond ten thousand, for which a real server computes
for minutes, is rejected.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from functools import lru_cache

_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE]([+-]?\d+))")
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_FINEST, _COARSEST = -9, -3
_LARGEST = 10_000
_EXACT = Context(prec=4 * _LARGEST, rounding=ROUND_UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
_TOO_LARGE = "the quantity has more digits than are looked at here"
_MOST = Decimal(2**63 - 1)
_MILLI = Decimal("1e-3")
_NANO = Decimal("1e-9")


@lru_cache(maxsize=4096)
def parsed(text: str) -> tuple[Decimal, str]:
    """Value and format ("binary", "decimal", "exponent") of a quantity.

    Raises:
        ValueError: it is not a quantity.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number, suffix = Decimal(found[1]), found[2]
    if len(text) > _LARGEST or (found[3] and abs(int(found[3])) > 2 * _LARGEST):
        raise ValueError(_TOO_LARGE)
    if suffix in _BINARY:
        value, form = min(_EXACT.multiply(number, 1024 ** _BINARY[suffix]), _MOST), "binary"
    elif suffix in _DECIMAL:
        value, form = number.scaleb(_DECIMAL[suffix], _EXACT), "decimal"
    else:
        value, form = number.scaleb(int(found[3]), _EXACT), "exponent"
    if value.adjusted() > _LARGEST:
        raise ValueError(_TOO_LARGE)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return value.quantize(_NANO, context=_EXACT) if exponent < _FINEST else value, form


def is_whole(amount: Decimal) -> bool:
    """Whether an amount of any length has no fraction."""
    return amount == amount.to_integral_value()


def is_multiple(text: str, of: Decimal) -> bool:
    """Whether a quantity of any length is a multiple of an amount."""
    return not _EXACT.remainder(parsed(text)[0], of)


def value(text: str) -> Decimal:
    """The value of a quantity.

    Raises:
        ValueError: it is not a quantity.
    """
    return parsed(text)[0]


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The canonical form of a quantity.

    Raises:
        ValueError: it is not a quantity.
    """
    return _written(*parsed(text))


@lru_cache(maxsize=4096)
def in_thousandths(text: str) -> str:
    """The canonical form of a quantity, rounded up to thousandths.

    Raises:
        ValueError: it is not a quantity.
    """
    number, form = parsed(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return _written(number.quantize(_MILLI, context=_EXACT) if exponent < _COARSEST else number, form)


def written(amount: Decimal, like: str) -> str:
    """An amount in canonical form, with a suffix of the given format."""
    return _written(amount, parsed(like)[1])


def _written(number: Decimal, form: str) -> str:
    if form == "binary" and (-1024 < number < 1024 or not is_whole(number)):
        form = "decimal"
    if form == "binary":
        whole, power = int(number.to_integral_value(ROUND_UP)), 0
        while whole and whole % 1024 == 0 and power < 6:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIX.get(power, '')}"
    power = -9
    whole = int(number.scaleb(9, _EXACT))
    if not whole:
        return "0"
    while whole % 1000 == 0 and (power < 18 or form == "exponent"):
        whole, power = whole // 1000, power + 3
    if form == "exponent":
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{_SUFFIX[power]}"
