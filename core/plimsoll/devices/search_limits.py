"""Limits a search for devices in steps and depth, and bounds the length of its errors."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from plimsoll.model.shortened import shortened

#: Steps that count as one second, so that a decision does not depend on the machine's speed. A step is one
#: examined device, or a few units of an expression's cost.
STEPS_A_SECOND = 20_000

#: Units of an expression's cost that take as long as examining a device.
UNITS_A_STEP = 4

#: Maximum stack frames of the search: for claims, requests and devices chosen at a time.
MOST_FRAMES = 50_000

#: Maximum length of messages to users; names and expressions in them may be long.
LONGEST_MESSAGE = 1_000

TIMED_OUT = "timed out trying to allocate devices"


class AllocationError(Exception):
    """The search ended without a result; the message has the reason in upstream's words.

    Attributes:
        told: The reason, without the name of a claim.
        claim: The claim whose name precedes it, with its namespace; "" for none.
    """

    def __init__(self, told: str, claim: str = "") -> None:
        super().__init__(told, claim)
        self.told, self.claim = shortened(told, LONGEST_MESSAGE), claim

    def __str__(self) -> str:
        return f"claim {self.claim}{self.told}" if self.claim else self.told


class UnusablePoolError(AllocationError):
    """All devices are requested, and a pool of the node is not complete; other nodes may be searched.

    Attributes:
        is_invalid: Whether the pool is invalid, and not being updated.
    """

    def __init__(self, told: str, claim: str = "", *, is_invalid: bool) -> None:
        super().__init__(told, claim)
        self.is_invalid = is_invalid


class StepLimit:
    """The remaining steps of a search.

    Args:
        most: Maximum number of steps.

    Attributes:
        used: Number of steps so far.
    """

    __slots__ = ("most", "used")

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether the search gave up."""
        return self.used > self.most

    def take(self, steps: int) -> None:
        """Take steps.

        Raises:
            AllocationError: Not enough steps are left.
        """
        self.used += steps
        if self.used > self.most:
            raise AllocationError(TIMED_OUT)

    def take_for(self, units: int) -> None:
        """Take the steps for an evaluation of that cost; raises likewise."""
        self.take(units // UNITS_A_STEP)

    def count_for(self, units: int) -> None:
        """Count the steps for an evaluation that ends the search anyway."""
        self.used += units // UNITS_A_STEP


@contextmanager
def frames(depth: int) -> Iterator[None]:
    """Raise Python's recursion limit to a search of that depth; the default suffices for a few claims.

    Raises:
        AllocationError: The depth exceeds the maximum.
    """
    before = sys.getrecursionlimit()
    if depth <= before // 2:
        yield
        return
    if depth > MOST_FRAMES:
        raise AllocationError(f"the pod's claims ask for too much: a search {depth} steps deep")
    sys.setrecursionlimit(before + depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
