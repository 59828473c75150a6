"""Directed plans are runs whose features and faults were picked, for what drawn ones meet too rarely.

``make simulate SEEDS=300`` runs them before its seeds, and counts what they meet. Each group picks what leads
to a few rare events, with several seeds, so that a change of the operator does not take them all away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from simulation.faults import FaultKind
from simulation.run import FAULTY_S, Plan
from simulation.world.features import Feature

_MEDDLED = frozenset((FaultKind.MOVE_MEDDLED, FaultKind.MOVE_ANSWER_LATE))

#: A proposal is recorded by one leader, sent by the next and followed by a third, whose clocks differ.
_SUCCEEDED = frozenset((FaultKind.CLOCK_JUMP, FaultKind.REPLICA_KILLED, FaultKind.NODE_TAINTED))


#: Many requests fail, as those with which a replica gives a lease away: it finds its own later.
_REFUSED = frozenset(
    (
        FaultKind.DROPPED_REQUEST,
        FaultKind.CONFLICT,
        FaultKind.TOO_MANY_REQUESTS,
        FaultKind.TOO_MANY_WITH_DELAY,
        FaultKind.INTERNAL_ERROR,
        FaultKind.UNAVAILABLE,
        FaultKind.TIMEOUT,
        FaultKind.UNAUTHORIZED,
        FaultKind.INVALID,
        FaultKind.PROXY_PAGE,
    )
)


class Group(NamedTuple):
    """Plans that differ in their seeds; one in eight has its whole peace.

    Attributes:
        features: Of their worlds.
        kinds: Of their faults.
        seeds: Theirs.
        faulty_s: Virtual seconds with faults; more of them cost less than more seeds.
    """

    features: Collection[Feature]
    kinds: Collection[FaultKind]
    seeds: Collection[int]
    faulty_s: float = FAULTY_S


GROUPS = (
    Group((Feature.SURGES, Feature.SLOW_STARTS), (FaultKind.MOVE_ANSWER_LATE,), range(1, 9)),
    Group((Feature.SURGES, Feature.SLOW_STARTS), _MEDDLED, range(1, 19), 240.0),
    Group((Feature.SURGES, Feature.SLOW_STARTS), (FaultKind.SURGE_TURNED_BACK,), (3, 5, 13, 14, 29), 480.0),
    Group((Feature.SLOW_STARTS,), {*_MEDDLED, FaultKind.POD_DELETED}, range(1, 9)),
    Group((), (FaultKind.MOVE_MEDDLED, FaultKind.RECORD_DELETED), range(5, 10), 240.0),
    Group((Feature.BUNDLES, Feature.APPROVALS), _MEDDLED, range(1, 11)),
    Group((Feature.BUNDLES,), _MEDDLED, range(7, 27)),
    Group((Feature.BUNDLES,), _MEDDLED, (4, 5, 8, 9, 12, 21, 22), 480.0),
    Group((Feature.BUNDLES,), (FaultKind.MOVE_MEDDLED, FaultKind.RECORD_DELETED), (41, 56), 180.0),
    Group((Feature.EVICTED_VICTIMS, Feature.LONG_GOODBYES), (), range(8, 40, 8)),
    Group((Feature.APPROVALS, Feature.SLOW_STARTS), _SUCCEEDED, range(14, 16), 240.0),
    Group((Feature.DEVICES,), (FaultKind.AT_CLAIM_STATUS,), range(1, 5)),
    Group((Feature.BUNDLES,), _REFUSED, range(1, 3), 120.0),  # closes and openings of nodes among them
    Group(
        (Feature.DEVICES, Feature.GANGS),
        (FaultKind.UNAUTHORIZED, FaultKind.AT_CLAIM_STATUS, FaultKind.REPLICA_KILLED),
        range(1, 2),
        120.0,
    ),
    Group(
        (Feature.PROFILES, Feature.GANGS, Feature.PLANS),
        (FaultKind.UNAUTHORIZED, FaultKind.REPLICA_KILLED),
        range(1, 2),
        120.0,
    ),
    Group((), (FaultKind.LEASE_MEDDLED,), range(1, 21), 120.0),
    Group((), (FaultKind.LEASE_MEDDLED, FaultKind.REPLICA_KILLED), range(1, 9)),
    Group((), _REFUSED, range(1, 5), 120.0),
)


def directed() -> Iterator[Plan]:
    """The plans."""
    for group in GROUPS:
        features, kinds = frozenset(group.features), frozenset(group.kinds)
        for seed in group.seeds:
            yield Plan(seed, features=features, kinds=kinds, faulty_s=group.faulty_s)
