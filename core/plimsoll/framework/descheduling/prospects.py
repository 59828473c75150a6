"""Protocol by which strategies ask the scheduler where a pod could go, and simulate moves."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.extension_points import FilterPlugin, WhatIf
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.pod_info import PodInfo


class Outlook(Struct, frozen=True):
    """The scheduler's ranking for the replacement of one pod, as if the pod had left.

    Attributes:
        totals: The weighted score of each feasible node, keyed by name; empty without feasible nodes.
        highest: The highest possible score of a node: 100 times the sum of the weights.
    """

    totals: Mapping[str, int]
    highest: int


class ProspectAttempt(Protocol):
    """Simulated moves."""

    def move(self, pod: PodInfo, target: str) -> None:
        """Replace the pod by its replacement on the target, in the cluster that the context shows."""

    def place(self, pod: PodInfo, node: str) -> None:
        """Place a pending pod on the node, in the cluster that the context shows."""


class Prospects(Protocol):
    """The scheduler's evaluations in the cluster after all accepted moves."""

    def outlook(self, pod: PodInfo) -> Outlook | None:
        """The nodes for a placed pod's replacement; None if no scheduler of ours decides about it."""

    def attempt(self) -> AbstractContextManager[ProspectAttempt]:
        """Simulate moves; all of them are undone at the end."""

    def feasible(self, pod: PodInfo) -> RowArray | None:
        """Rows of the targets that fit another pod like this one, in addition to it if it is placed.

        None if this is unknown, or the pod cannot be sent to a node: another scheduler, an extender or a
        failing plugin takes part, or the target is only a forecast.
        """

    def is_target(self, node: str) -> bool:
        """Whether pods may be moved to the node of this name at all."""

    def what_if(self, pod: PodInfo) -> WhatIf | None:
        """The filter results for a pending pod if other pods left; None as above."""

    def too_hot(self, node: str, pod: PodInfo | None = None) -> Refusal | None:
        """Why a measured node's use keeps it from accepting a pod, or any; None if it is not measured."""

    def filters(self, pod: PodInfo) -> Mapping[str, FilterPlugin] | None:
        """The filter plugins, keyed by name, of the profile that places the pod; None if none is known."""

    def near(self, pod: PodInfo, group: PodGroup | None) -> tuple[str, ...]:
        """The node labels whose values a pod's group should share, the narrowest first; () if unknown."""

    def together(
        self, pods: Sequence[PodInfo], key: str, inside: Sequence[tuple[str, str]] = ()
    ) -> Mapping[str, str] | None:
        """The nodes for the replacements of these pods while they still run, all with one value of a label.

        Args:
            pods: The members of a group.
            key: The node label.
            inside: Label and value of further domains in which they must be.

        Returns:
            Names of nodes by the uids of the pods; None if there is no such place, or it is unknown.
        """


class Nowhere:
    """Unknown prospects, for planners that consult no scheduler."""

    def outlook(self, pod: PodInfo) -> Outlook | None:
        """None."""
        return None

    def attempt(self) -> AbstractContextManager[ProspectAttempt]:
        """Not supported.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("this planner tries no moves")

    def feasible(self, pod: PodInfo) -> RowArray | None:
        """None."""
        return None

    def is_target(self, node: str) -> bool:
        """True."""
        return True

    def what_if(self, pod: PodInfo) -> WhatIf | None:
        """None."""
        return None

    def too_hot(self, node: str, pod: PodInfo | None = None) -> Refusal | None:
        """None."""
        return None

    def filters(self, pod: PodInfo) -> Mapping[str, FilterPlugin] | None:
        """None."""
        return None

    def near(self, pod: PodInfo, group: PodGroup | None) -> tuple[str, ...]:
        """None."""
        return ()

    def together(
        self, pods: Sequence[PodInfo], key: str, inside: Sequence[tuple[str, str]] = ()
    ) -> Mapping[str, str] | None:
        """None."""
        return None
