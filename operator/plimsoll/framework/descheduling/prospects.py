"""Protocol by which strategies ask the scheduler where a pod could go, and try moves."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.extension_points import WhatIf
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the scheduler says of the replacement of one pod, if the pod left.

    Attributes:
        totals: The weighted score of each feasible node, keyed by name; empty without feasible nodes.
        highest: What a node can score at most: 100 times the sum of the weights.
    """

    totals: Mapping[str, int]
    highest: int


class ProspectAttempt(Protocol):
    """Moves made on trial."""

    def move(self, pod: PodInfo, target: str) -> None:
        """From now on the cluster shows the pod's replacement on the target instead of the pod."""

    def place(self, pod: PodInfo, node: str) -> None:
        """From now on the cluster shows a pending pod on the node."""


class Prospects(Protocol):
    """The scheduler's view of places, in the cluster with all moves that were accepted so far."""

    def outlook(self, pod: PodInfo) -> Outlook | None:
        """Where a placed pod's replacement could go; None when no scheduler of ours decides about it."""

    def attempt(self) -> AbstractContextManager[ProspectAttempt]:
        """Make moves on trial; all of them are undone at the end."""

    def feasible(self, pod: PodInfo) -> RowArray | None:
        """Rows of the targets that fit another pod like this one, in addition to it if it is placed.

        None when this is unknown, or the pod cannot be directed there: another scheduler, an extender or a
        failing plugin takes part, or the pod is only expected.
        """

    def what_if(self, pod: PodInfo) -> WhatIf | None:
        """What the filters would say of a pending pod if others left; None as above."""

    def too_hot(self, node: str, pod: PodInfo | None = None) -> Refusal | None:
        """Why a measured node's use keeps it from taking a pod, or any; None where it is unknown."""


class Nowhere:
    """Unknown prospects: those of a planner that consults no scheduler."""

    def outlook(self, pod: PodInfo) -> Outlook | None:
        """Never."""
        return None

    def attempt(self) -> AbstractContextManager[ProspectAttempt]:
        """There is nothing to try.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("this planner tries no moves")

    def feasible(self, pod: PodInfo) -> RowArray | None:
        """Never."""
        return None

    def what_if(self, pod: PodInfo) -> WhatIf | None:
        """Never."""
        return None

    def too_hot(self, node: str, pod: PodInfo | None = None) -> Refusal | None:
        """Never."""
        return None
