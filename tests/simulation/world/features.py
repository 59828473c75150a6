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
    SURGES = "surges"
    APPROVALS = "moves that wait for approval"
    PAUSES = "people stop, suspend and run policies"
    PLANS = "policies with drawn strategies, planners, limits and protections"
    PROFILES = "a second scheduler name, with changed plugins"
    ODDITIES = "odd objects that the API accepts"
    DEFINITIONS = "custom resource definitions deleted and created again"
    NAMESPACES = "a second namespace, deleted in the middle of moves and created again"
    EXTENDERS = "HTTP extenders that filter, score and bind, and fail"
    PAGES = "an API server that streams no lists; tokens of its pages expire"
    BUNDLES = "moves that are made all or none"
    LONG_GOODBYES = "victims of preemption that do not leave for six minutes"
    SLOW_STARTS = "pods that take seconds to be ready, and impatient rollouts"
    DEVICES = "devices of nodes, claims made from templates, and another allocator"
    KINDS_OF_DEVICES = "parts of devices, taints of these, alternatives, and drivers that publish again"
    REBALANCING_RULES = "rules of tenants that come and go"
    ONCE_MORE = "a gang, a policy with a cron and gated pods that begin again under their names"


#: Features that came after the others, with the share of runs that have each. A source of its own draws it,
#: so that a new one leaves all other runs as they were.
LATER = {
    Feature.DEFINITIONS: 0.08,
    Feature.NAMESPACES: 0.08,
    Feature.EXTENDERS: 0.08,
    Feature.PAGES: 0.08,
    Feature.BUNDLES: 0.05,
    Feature.LONG_GOODBYES: 0.03,
    Feature.SLOW_STARTS: 0.05,
    Feature.DEVICES: 0.05,
    Feature.KINDS_OF_DEVICES: 0.05,
    Feature.ONCE_MORE: 0.05,
    Feature.REBALANCING_RULES: 0.05,
}

#: Those of them that are drawn with another number: with it, as with that of the others, the first eight
#: seeds, and those that have found something, have none.
PICKY = frozenset((Feature.BUNDLES, Feature.LONG_GOODBYES, Feature.SLOW_STARTS, Feature.DEVICES))

#: Share of the runs without any, and of each in the others.
SMALL, SHARES = 0.4, (0.15, 0.3, 0.45)


def drawn_features(random: Random, chosen: Collection[Feature] | None = None) -> frozenset[Feature]:
    """The features of one world, but for the later ones.

    Args:
        random: Draws.
        chosen: These; None draws them.
    """
    is_small, share = random.random() < SMALL, random.choice(SHARES)
    drawn = [feature for feature in Feature if feature not in LATER and random.random() < share]
    if chosen is not None:
        return frozenset(chosen)
    return frozenset() if is_small else frozenset(drawn)


def source_of(feature: Feature, seed: int) -> Random:
    """Random numbers of one of the later features alone."""
    return Random(f"part {feature.name} {seed}")


def later_features(seed: int) -> frozenset[Feature]:
    """Those of the later features that a world has besides."""
    drawn = {one: Random(f"{one.name} {seed} {8 if one in PICKY else 22}").random() for one in LATER}
    return frozenset(one for one, share in LATER.items() if drawn[one] < share)
