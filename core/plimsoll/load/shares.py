"""Holds the share that each pod counts with in a load book, as columns of whole numbers.

Axis letter: P placed pods. Units: cpu in billionths of a core, memory in bytes.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from plimsoll.load.expectations import Basis, Expectation, expectation
from plimsoll.model.columns.columns import IntArray, RowArray

#: Columns of a share: expected, peak, spread, the unmeasured part of the expected (two each), its basis.
EXPECTED, PEAK, SPREAD, UNMEASURED, BASIS = slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8), 8

#: Number of columns that are summed by node, and of all columns.
SUMMED, COLUMNS = 8, 9


class Shares:
    """Shares of pods, by uid; immutable.

    Args:
        places: The index of each pod on the P axis.
        uids: The pod at each index.
        columns: Shape (P, 9).
    """

    __slots__ = ("columns", "places", "uids")

    def __init__(self, places: Mapping[str, int], uids: Sequence[str], columns: IntArray) -> None:
        self.places = places
        self.uids = uids
        self.columns = columns

    def share(self, place: int) -> Expectation:
        """The share of one pod."""
        values = self.columns[place].tolist()
        return expectation(values[:6], Basis(values[BASIS]))


class Settled(NamedTuple):
    """All shares, and their origin in the former ones.

    Attributes:
        shares: The shares of all placed pods.
        sources: Shape (P,): the former index of each; -1 for added pods.
    """

    shares: Shares
    sources: RowArray


@lru_cache(maxsize=4_096)
def columns_of(share: Expectation) -> IntArray:
    """A share as its columns, shape (9,)."""
    guessed = (0, 0) if share.is_measured else share[:2]
    columns = np.array((*share[:6], *guessed, share.basis), dtype=np.int64)
    columns.flags.writeable = False
    return columns
