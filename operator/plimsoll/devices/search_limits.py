"""Limits of a search for devices: its steps, its depth, and the error that ends it, of a bounded length."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Steps of a search that are taken for a second: a decision does not depend on how fast the machine is. A
#: step is a device that is looked at, or a few units of an expression's costs.
STEPS_A_SECOND = 20_000

#: Units of an expression's costs that take as long as a device that is looked at.
UNITS_A_STEP = 4

#: Frames of the stack that the search may take: for claims, requests and devices that are found at a time.
MOST_FRAMES = 50_000

#: Characters of what users are shown: names and expressions in it may be long.
LONGEST_MESSAGE = 1_000

TIMED_OUT = "timed out trying to allocate devices"


def shortened(message: str) -> str:
    """A message of a bounded length."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}..."


class AllocationError(Exception):
    """The search ended without an answer: the message says why, in upstream's words.

    Attributes:
        told: Why, without the name of a claim.
        claim: Whose name comes before that, with its namespace; "" where none does.
    """

    def __init__(self, told: str, claim: str = "") -> None:
        super().__init__(told, claim)
        self.told, self.claim = shortened(told), claim

    def __str__(self) -> str:
        return f"claim {self.claim}{self.told}" if self.claim else self.told


class StepLimit:
    """The steps that a search has left.

    Args:
        most: How many it may take.

    Attributes:
        used: How many it has taken.
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
            AllocationError: There are not so many.
        """
        self.used += steps
        if self.used > self.most:
            raise AllocationError(TIMED_OUT)

    def take_for(self, units: int) -> None:
        """Take the steps for an evaluation that cost so many units; raises likewise."""
        self.take(units // UNITS_A_STEP)

    def count_for(self, units: int) -> None:
        """Count the steps for an evaluation that ends the search anyway."""
        self.used += units // UNITS_A_STEP


@contextmanager
def frames(depth: int) -> Iterator[None]:
    """Allow as many frames of the stack as a search of that depth takes; Python's limit is for a few claims.

    Raises:
        AllocationError: No search may take so many.
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
