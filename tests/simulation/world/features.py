"""Features are what a world may have beyond nodes, Deployments and budgets; each is drawn by the seed."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from random import Random


class Feature(StrEnum):
    """One of them."""

    PREEMPTION = "pods of several priorities, which preempt by deletion"
    EVICTED_VICTIMS = "victims of preemption leave through the Eviction API"
    DEMANDS = "ports, affinities, hard spreading, init containers, overhead, extended resources"
    GANGS = "PodGroups"
    VOLUMES = "claims, late and immediate, attach limits and zones"
    REQUESTS = "evictions by request"
    SURGES = "surges"
    APPROVALS = "moves that wait for approval"
    PAUSES = "people stop, suspend and run policies"
    PLANS = "policies with drawn strategies, planners, limits and protections"
    PROFILES = "a second scheduler name, with changed plugins"
    SHARED_WORK = "two replicas that share the work"
    ODDITIES = "odd objects that the API accepts"


#: Share of the runs without any, and of each in the others.
SMALL, SHARES = 0.4, (0.15, 0.3, 0.45)


def drawn_features(random: Random, chosen: Collection[Feature] | None = None) -> frozenset[Feature]:
    """The features of one world.

    Args:
        random: Draws.
        chosen: These; None draws them.
    """
    is_small, share = random.random() < SMALL, random.choice(SHARES)
    drawn = [feature for feature in Feature if random.random() < share]
    if chosen is not None:
        return frozenset(chosen)
    return frozenset() if is_small else frozenset(drawn)
