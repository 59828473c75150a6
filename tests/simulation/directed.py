"""Directed plans are runs whose features and faults were picked, for what drawn ones meet too rarely.

``make simulate SEEDS=300`` runs them before its seeds, and counts what they meet. Each group picks what leads
to a few rare events, with several seeds, so that a change of the operator does not take them all away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from simulation.faults import FaultKind
from simulation.run import Plan
from simulation.world.features import Feature

#: The features and kinds of faults of each group, and its seeds; one in eight has its whole peace.
GROUPS: tuple[tuple[Collection[Feature], Collection[FaultKind], range], ...] = (
    ((Feature.SURGES, Feature.SLOW_STARTS), (FaultKind.MOVE_ANSWER_LATE,), range(1, 16)),
    (
        (Feature.SURGES, Feature.SLOW_STARTS),
        (FaultKind.MOVE_MEDDLED, FaultKind.MOVE_ANSWER_LATE),
        range(1, 26),
    ),
    (
        (Feature.REQUESTS, Feature.SLOW_STARTS),
        (FaultKind.MOVE_MEDDLED, FaultKind.MOVE_ANSWER_LATE, FaultKind.POD_DELETED),
        range(1, 21),
    ),
    (
        (Feature.BUNDLES, Feature.APPROVALS),
        (FaultKind.MOVE_MEDDLED, FaultKind.MOVE_ANSWER_LATE),
        range(1, 21),
    ),
    ((Feature.EVICTED_VICTIMS, Feature.LONG_GOODBYES), (), range(8, 40, 8)),
    ((), (FaultKind.LEASE_MEDDLED,), range(1, 26)),
    ((Feature.SHARED_WORK,), (FaultKind.LEASE_MEDDLED, FaultKind.REPLICA_KILLED), range(1, 26)),
)


def directed() -> Iterator[Plan]:
    """The plans."""
    for features, kinds, seeds in GROUPS:
        for seed in seeds:
            yield Plan(seed, features=frozenset(features), kinds=frozenset(kinds))
