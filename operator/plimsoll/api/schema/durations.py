"""Durations as Go and Kubernetes users write them (``10m``, ``1h30m``); only where upstream has such a field.

Fields of our own are integers with the unit in the name.
"""

import re
from fractions import Fraction
from typing import Annotated

from pydantic import Field

GO_DURATION = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"

Duration = Annotated[str, Field(pattern=GO_DURATION, max_length=64, examples=["10m", "1h30m"])]

_TERM = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


def duration_s(text: str) -> float:
    """Seconds of a duration.

    Raises:
        ValueError: the text is no duration.
    """
    if not re.fullmatch(GO_DURATION, text):
        raise ValueError(
            f"{text!r} is no duration: write a number with a unit of ns, us, ms, s, m, h, as in 1h30m"
        )
    return float(sum(Fraction(number) * _SECONDS[unit] for number, unit in _TERM.findall(text)))
