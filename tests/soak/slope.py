"""The slope of a curve with its confidence interval, where neighbouring samples resemble each other.

Least squares; the number of independent samples is n (1 - r) / (1 + r), with r the autocorrelation of the
residuals at lag one. Source: von Storch and Zwiers, Statistical Analysis in Climate Research (1999), 6.6.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Quantile of the normal distribution for an interval that covers 95 %.
Z = 1.96


@dataclass(frozen=True, slots=True)
class Slope:
    """Change by unit of x.

    Attributes:
        low: Lower bound of the interval that covers the true slope in 95 of 100 cases.
        high: Its upper bound.
    """

    value: float
    low: float
    high: float


def slope(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Of at least four samples at different x.

    Raises:
        ValueError: There are fewer.
    """
    if len(x) < 4 or len(set(x)) < 4:
        raise ValueError("a slope needs four samples at least")
    at, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    centred = at - at.mean()
    spread = float(centred @ centred)
    value = float(centred @ values) / spread
    residuals = values - values.mean() - value * centred
    squares = float(residuals @ residuals)
    if squares <= 1e-12 * max(1.0, float(values @ values)):
        return Slope(value, value, value)
    alike = min(0.98, max(0.0, float(residuals[:-1] @ residuals[1:]) / squares))
    freedom = max(1.5, len(values) * (1 - alike) / (1 + alike) - 2)
    error = (squares / freedom / spread) ** 0.5
    reach = error * _student(freedom)
    return Slope(value, value - reach, value + reach)


def _student(freedom: float) -> float:
    """The quantile of Student's distribution (Abramowitz and Stegun 26.7.5, two terms)."""
    return Z + (Z**3 + Z) / (4 * freedom) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)
