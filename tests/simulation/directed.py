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
    # Drawn toward branches that seeds do not take (:mod:`simulation.drawn_plans`); each took many more.
    Group(
        (
            Feature.DEVICES,
            Feature.EVICTED_VICTIMS,
            Feature.PAGES,
            Feature.VOLUMES,
        ),
        (FaultKind.AT_POD_STATUS, FaultKind.BUDGET_CHANGED, FaultKind.LATENCY, FaultKind.PRIORITY_DELETED),
        (3600,),
        240.0,
    ),
    Group(
        (
            Feature.KINDS_OF_DEVICES,
            Feature.PAGES,
            Feature.SURGES,
        ),
        (
            FaultKind.AUTOSCALER_ADDS,
            FaultKind.NODE_CORDONED,
            FaultKind.NODE_FLAPPED,
            FaultKind.RECORD_ANNOTATED,
            FaultKind.WATCH_LAG,
        ),
        (6386,),
    ),
    Group(
        (
            Feature.BUNDLES,
            Feature.DEFINITIONS,
            Feature.KINDS_OF_DEVICES,
        ),
        (
            FaultKind.API_RESTART,
            FaultKind.AT_CLAIM_STATUS,
            FaultKind.AT_EVICTION,
            FaultKind.BLACK_HOLE,
            FaultKind.NODE_CORDONED,
            FaultKind.NODE_GROWN,
            FaultKind.NODE_TAINTED,
            FaultKind.POD_DELETED,
            FaultKind.REPLICA_SLOW,
            FaultKind.REPLICA_STOPPED,
        ),
        (8751,),
        240.0,
    ),
    Group(
        (
            Feature.EVICTED_VICTIMS,
            Feature.PROFILES,
        ),
        (FaultKind.NODE_TAINTED, FaultKind.REPLICA_PAUSED, FaultKind.TRUNCATED),
        (546,),
    ),
    Group(
        (
            Feature.ODDITIES,
            Feature.ONCE_MORE,
            Feature.PREEMPTION,
            Feature.SURGES,
        ),
        (
            FaultKind.AT_LEASE,
            FaultKind.BROKEN_ROLLOUT,
            FaultKind.INVALID,
            FaultKind.KUBELET_REFUSES,
            FaultKind.OTHER_SCHEDULER,
            FaultKind.POD_HELD,
            FaultKind.ROLLOUT,
            FaultKind.TOO_MANY_REQUESTS,
        ),
        (6002,),
    ),
    Group(
        (
            Feature.DEFINITIONS,
            Feature.DEVICES,
            Feature.LONG_GOODBYES,
            Feature.NAMESPACES,
            Feature.PLANS,
            Feature.PREEMPTION,
        ),
        (
            FaultKind.AT_BINDING,
            FaultKind.POD_ASSIGNED,
            FaultKind.RECORD_DELETED,
            FaultKind.TIMEOUT_BEFORE_EFFECT,
        ),
        (5231,),
    ),
    Group(
        (
            Feature.APPROVALS,
            Feature.BUNDLES,
            Feature.DEFINITIONS,
            Feature.EXTENDERS,
            Feature.PREEMPTION,
        ),
        (FaultKind.INVALID, FaultKind.LOST_RESPONSE, FaultKind.NODE_GONE, FaultKind.OLD_ANSWER),
        (3415,),
    ),
    Group(
        (
            Feature.DEMANDS,
            Feature.PAUSES,
            Feature.PREEMPTION,
        ),
        (
            FaultKind.AUTOSCALER_ADDS,
            FaultKind.LEASE_DELETED,
            FaultKind.POD_HELD,
            FaultKind.POD_REPLACED,
            FaultKind.REPLICA_SLOW,
            FaultKind.WATCH_EXPIRED,
        ),
        (4295, 8089),
        120.0,
    ),
)


def directed() -> Iterator[Plan]:
    """The plans."""
    for group in GROUPS:
        features, kinds = frozenset(group.features), frozenset(group.kinds)
        for seed in group.seeds:
            yield Plan(seed, features=features, kinds=kinds, faulty_s=group.faulty_s)
