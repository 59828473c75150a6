"""Defines rules by which resource filters and scores may state their results.

A rule gives the same results as the plugin's ``filter`` or ``score``: numbers instead of a function.
"""

from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from plimsoll.framework.cycle_state import CycleState
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.structural import Structural


class WantedRoom(NamedTuple):
    """A node is rejected if less than this is free of a resource.

    Attributes:
        axis: Index on the R axis.
        least: The required free amount.
        code: The rejection's code.
        hopeless: Further bits of the code if the node's total is less.
    """

    axis: int
    least: int
    code: int
    hopeless: int


RoomRule: TypeAlias = tuple[WantedRoom, ...]
"""Codes are combined by or."""


class ScoredRoom(NamedTuple):
    """A resource that is scored.

    Attributes:
        axis: Index on the R axis.
        minimum: The column of ``nonzero_requested`` in place of ``requested``, or None.
        amount: The pod's amount.
        weight: The resource's weight, positive.
    """

    axis: int
    minimum: int | None
    amount: int
    weight: int


class AllocationRule(NamedTuple):
    """Points by how much is left (``is_least``) or used: the weighted mean of the resources, rounded down.

    Every node has some of each resource, less than ``EXACT_AMOUNT``.
    """

    resources: tuple[ScoredRoom, ...]
    is_least: bool


class BalanceRule(NamedTuple):
    """Points by how evenly two resources are used with the pod and without: axis and amount of each.

    Every node has some of each resource, less than ``EXACT_AMOUNT``.
    """

    resources: tuple[tuple[int, int], tuple[int, int]]


class UsageRule(NamedTuple):
    """Points by how much is left of cpu and memory: the weighted mean of both, rounded down.

    Every node has some of both, less than ``EXACT_AMOUNT``.

    Attributes:
        used: Shape (2, capacity) int64, in the units of the columns; changed in place when pods are added or
            removed.
        axes: Indexes on the R axis.
        amounts: The pod's amounts.
        weights: The weights of the two, at least one positive.
    """

    used: IntArray
    axes: tuple[int, int]
    amounts: tuple[int, int]
    weights: tuple[int, int]


@runtime_checkable
class RuledFilter(Protocol, metaclass=Structural):
    """A filter that reads ROW and may state its results as a rule."""

    def filter_rule(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> RoomRule | None:
        """The rule of this pod's template, after PreFilter; None: call ``filter``."""


@runtime_checkable
class RuledScore(Protocol, metaclass=Structural):
    """A score plugin that reads ROW, does not normalize, and may state its results as a rule."""

    def score_rule(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> AllocationRule | BalanceRule | UsageRule | None:
        """The rule of this pod's template while no node changes; None: call ``score``.

        It is valid while no sum of requests is near the largest amount (``Snapshot.is_large``).
        """
