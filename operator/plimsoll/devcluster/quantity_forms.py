"""Quantities: their canonical form and their value.

Source: apimachinery v1.36 ``api/resource/quantity.go``. The format of the suffix is kept (binary, decimal,
exponent); the number is made whole and its suffix as large as it can be.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal
from functools import lru_cache

_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?\d+)")
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_FINEST, _COARSEST = -9, -3
_MILLI = Decimal("1e-3")
_NANO = Decimal("1e-9")


@lru_cache(maxsize=4096)
def parsed(text: str) -> tuple[Decimal, str]:
    """Value and format ("binary", "decimal", "exponent") of a quantity.

    Raises:
        ValueError: it is none.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number, suffix = Decimal(found[1]), found[2]
    if suffix in _BINARY:
        value, form = number * 1024 ** _BINARY[suffix], "binary"
    elif suffix in _DECIMAL:
        value, form = number.scaleb(_DECIMAL[suffix]), "decimal"
    else:
        value, form = number.scaleb(int(suffix[1:])), "exponent"
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return value.quantize(_NANO, rounding=ROUND_UP) if exponent < _FINEST else value, form


def value(text: str) -> Decimal:
    """The value of a quantity.

    Raises:
        ValueError: it is none.
    """
    return parsed(text)[0]


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The canonical form of a quantity.

    Raises:
        ValueError: it is none.
    """
    return _written(*parsed(text))


@lru_cache(maxsize=4096)
def in_thousandths(text: str) -> str:
    """The canonical form of a quantity, rounded up to thousandths.

    Raises:
        ValueError: it is none.
    """
    number, form = parsed(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return _written(number.quantize(_MILLI, rounding=ROUND_UP) if exponent < _COARSEST else number, form)


def written(amount: Decimal, like: str) -> str:
    """An amount in canonical form, with a suffix of the kind that another quantity has."""
    return _written(amount, parsed(like)[1])


def _written(number: Decimal, form: str) -> str:
    if form == "binary" and -1024 < number < 1024:
        form = "decimal"
    if form == "binary":
        whole, power = int(number.to_integral_value(ROUND_UP)), 0
        while whole and whole % 1024 == 0 and power < 6:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIX.get(power, '')}"
    power = -9
    whole = int(number.scaleb(9))
    if not whole:
        return "0"
    while whole % 1000 == 0 and (power < 18 or form == "exponent"):
        whole, power = whole // 1000, power + 3
    if form == "exponent":
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{_SUFFIX[power]}"
