"""Whether a pod that must not be missed may be moved all the same: its replacement comes first."""

from typing import Protocol

from plimsoll.framework.descheduling.strategy import Refusal
from plimsoll.model.kinds.pod_info import PodInfo


class SurgePermission(Protocol):
    """Lifts refusals that hold for evictions only."""

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """Why the pod stays all the same; None when a surge may move it."""


class NoSurges:
    """Pods are evicted, or stay."""

    def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
        """The refusal holds."""
        return refusal
