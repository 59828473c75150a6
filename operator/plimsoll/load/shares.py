"""Shares are what each pod counts as in a load book, as columns of whole numbers.

Axis letter: P placed pods. Units: cpu in billionths of a core, memory in bytes.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from plimsoll.load.expectations import Basis, Expectation, expectation
from plimsoll.model.columns.columns import IntArray, RowArray

#: Columns of a share: expected, peak, spread, what of the expected is not measured (two each), its basis.
EXPECTED, PEAK, SPREAD, UNMEASURED, BASIS = slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8), 8

#: Columns that are summed by node, and all of them.
SUMMED, COLUMNS = 8, 9


class Shares:
    """What pods count as, by uid; never changed once it is made.

    Args:
        places: The place of each pod on the P axis.
        uids: The pod of each place.
        columns: Shape (P, 9).
    """

    __slots__ = ("columns", "places", "uids")

    def __init__(self, places: Mapping[str, int], uids: Sequence[str], columns: IntArray) -> None:
        self.places = places
        self.uids = uids
        self.columns = columns

    def share(self, place: int) -> Expectation:
        """One pod's."""
        values = self.columns[place].tolist()
        return expectation(values[:6], Basis(values[BASIS]))


class Settled(NamedTuple):
    """All shares, and how they came from those of the latest time.

    Attributes:
        shares: Of all placed pods.
        sources: Shape (P,): where each one was before; -1 for pods that came.
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
