"""The phases of an Eviction record, and which may follow which.

::

    dry run:  Predicted
    enforce:  Planned ──▶ Evicting ──▶ Evicted ──▶ Settled     replacement is ready on another node
                 │           │            ├──────▶ Returned    replacement came back to the same node
                 │           │            └──────▶ Failed      no replacement was ready in time
                 │           ├──▶ Blocked                      a PodDisruptionBudget said no
                 │           └──▶ Failed                       the API server said no for another reason
                 └──▶ Blocked, Failed, Cancelled               the plan went stale or was called off

    surge:    Planned ──▶ Surging ──▶ Settled                  replacement is ready elsewhere, old pod gone
                             ├──────▶ Returned                 replacement is ready on the same node
                             ├──────▶ Failed                   not ready in time: the rollout is taken back
                             └──────▶ Cancelled                somebody changed the Deployment first
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Phase(StrEnum):
    """How far a move has come."""

    PREDICTED = "Predicted"
    PLANNED = "Planned"
    EVICTING = "Evicting"
    EVICTED = "Evicted"
    SURGING = "Surging"
    SETTLED = "Settled"
    RETURNED = "Returned"
    BLOCKED = "Blocked"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


SUCCESSORS: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.PREDICTED: frozenset(),
        Phase.PLANNED: frozenset(
            {Phase.EVICTING, Phase.SURGING, Phase.BLOCKED, Phase.FAILED, Phase.CANCELLED}
        ),
        Phase.EVICTING: frozenset({Phase.EVICTED, Phase.BLOCKED, Phase.FAILED, Phase.CANCELLED}),
        Phase.EVICTED: frozenset({Phase.SETTLED, Phase.RETURNED, Phase.FAILED, Phase.CANCELLED}),
        Phase.SURGING: frozenset({Phase.SETTLED, Phase.RETURNED, Phase.FAILED, Phase.CANCELLED}),
        Phase.SETTLED: frozenset(),
        Phase.RETURNED: frozenset(),
        Phase.BLOCKED: frozenset(),
        Phase.FAILED: frozenset(),
        Phase.CANCELLED: frozenset(),
    }
)
"""The phases that may follow each."""

FINISHED = tuple(phase for phase, after in SUCCESSORS.items() if not after)
"""The record stays as it is, and may be dropped by retention."""

OPEN = tuple(phase for phase, after in SUCCESSORS.items() if after)
"""The record is to be completed or cancelled, also after a restart."""


def may_follow(before: Phase | None, after: Phase) -> bool:
    """Whether a record may go from one phase to another; a new one is Predicted or Planned."""
    if before is None:
        return after in {Phase.PREDICTED, Phase.PLANNED}
    return before is after or after in SUCCESSORS[before]
