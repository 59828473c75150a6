"""Defines rules that filters and scores by resources may state.

A rule says the same as the plugin's ``filter`` or ``score``: numbers in place of a function.
"""

from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from plimsoll.framework.cycle_state import CycleState
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo


class WantedRoom(NamedTuple):
    """A node is refused where less is free of a resource.

    Attributes:
        axis: On the R axis.
        least: What must be free.
        code: Of the refusal.
        hopeless: Further bits of the code where the whole node has less.
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
        axis: On the R axis.
        minimum: The column of ``nonzero_requested`` in place of ``requested``, or None.
        amount: What the pod takes.
        weight: Of the resource, positive.
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
        used: Shape (2, capacity) int64, in the units of the columns; changed in place as pods come and go.
        axes: On the R axis.
        amounts: What the pod takes.
        weights: Of the two, at least one positive.
    """

    used: IntArray
    axes: tuple[int, int]
    amounts: tuple[int, int]
    weights: tuple[int, int]


@runtime_checkable
class RuledFilter(Protocol):
    """A filter that reads ROW and may state its answers as a rule."""

    def filter_rule(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> RoomRule | None:
        """The rule of this pod's template, after PreFilter; None: ask ``filter``."""


@runtime_checkable
class RuledScore(Protocol):
    """A score plugin that reads ROW, does not normalise, and may state its answers as a rule."""

    def score_rule(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> AllocationRule | BalanceRule | UsageRule | None:
        """The rule of this pod's template while no node changes; None: ask ``score``.

        It holds as long as no sum of requests is near the largest amount (``Snapshot.is_large``).
        """
