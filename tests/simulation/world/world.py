"""World is what a simulated cluster holds beyond the ordinary, and the people who work with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random

from roadstead.values.status_errors import StatusError
from simulation.cluster import SimulatedCluster
from simulation.extenders import ExtenderServer
from simulation.world.approvals import Approvals
from simulation.world.bundles import Bundles
from simulation.world.definitions import Definitions
from simulation.world.demands import Demands
from simulation.world.devices import Devices
from simulation.world.extenders import Extenders
from simulation.world.features import LATER, Feature, source_of
from simulation.world.gangs import Gangs
from simulation.world.kinds_of_devices import KindsOfDevices
from simulation.world.long_goodbyes import LongGoodbyes
from simulation.world.maintenance import Maintenance
from simulation.world.namespaces import Namespaces
from simulation.world.oddities import Oddities
from simulation.world.once_more import OnceMore
from simulation.world.part import Part
from simulation.world.pauses import Pauses
from simulation.world.plans import Plans
from simulation.world.priorities import Priorities
from simulation.world.profiles import Profiles
from simulation.world.rebalancing_rules import RebalancingRules
from simulation.world.slow_starts import SlowStarts
from simulation.world.surges import Surges
from simulation.world.volumes import Volumes

#: Mean virtual seconds between two acts of people.
EVERY_S = 3.0

#: Features whose policies look at taints.
MAINTAINED = frozenset((Feature.SURGES, Feature.APPROVALS, Feature.PLANS, Feature.PAUSES))

PARTS: dict[Feature, Callable[[SimulatedCluster, Random], Part]] = {
    Feature.DEMANDS: Demands,
    Feature.GANGS: Gangs,
    Feature.VOLUMES: Volumes,
    Feature.SURGES: Surges,
    Feature.APPROVALS: Approvals,
    Feature.PLANS: Plans,
    Feature.PROFILES: Profiles,
    Feature.ODDITIES: Oddities,
    Feature.PAUSES: Pauses,
    Feature.DEFINITIONS: Definitions,
    Feature.NAMESPACES: Namespaces,
    Feature.BUNDLES: Bundles,
    Feature.LONG_GOODBYES: LongGoodbyes,
    Feature.SLOW_STARTS: SlowStarts,
    Feature.DEVICES: Devices,
    Feature.KINDS_OF_DEVICES: KindsOfDevices,
    Feature.ONCE_MORE: OnceMore,
    Feature.REBALANCING_RULES: RebalancingRules,
}

#: Features that begin after all others, as they look at what these have made.
LAST = (Feature.BUNDLES, Feature.LONG_GOODBYES, Feature.SLOW_STARTS)


class World:
    """The parts of one run, each with random numbers of its own."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        extenders: ExtenderServer,
        random: Random,
        features: frozenset[Feature],
        seed: int,
    ) -> None:
        self.features = features
        self._random = random
        self._parts: list[Part] = []
        for feature in Feature:
            if feature in LATER:
                continue
            source = Random(random.getrandbits(64))
            if feature in features and feature in PARTS:
                self._parts.append(PARTS[feature](cluster, source))
        source = Random(random.getrandbits(64))
        if features & {Feature.PREEMPTION, Feature.EVICTED_VICTIMS}:
            evicted = Feature.EVICTED_VICTIMS in features
            self._parts.insert(0, Priorities(cluster, source, are_evicted=evicted))
        source = Random(random.getrandbits(64))
        if features & MAINTAINED:
            self._parts += 2 * [Maintenance(cluster, source)]  # twice as often as the others
        later = [one for one in LATER if one in features and one in PARTS and one not in LAST]
        if later and not features & MAINTAINED:  # so that pods move
            self._parts.append(Maintenance(cluster, Random(f"maintenance {seed}")))
        # They end first: what they bring back, others put in order.
        self._parts[:0] = [PARTS[one](cluster, source_of(one, seed)) for one in later]
        if Feature.EXTENDERS in features:
            source = source_of(Feature.EXTENDERS, seed)
            self._parts.append(Extenders(cluster, source, extenders))
        self._parts += [PARTS[one](cluster, source_of(one, seed)) for one in LAST if one in features]

    def begin(self) -> None:
        """Create what there is at the beginning; what a plan leaves out takes what builds on it away."""
        for part in self._parts:
            with suppress(StatusError):
                part.begin()

    async def run(self) -> None:
        """Let people act until cancelled."""
        while self._parts:
            await asyncio.sleep(self._random.expovariate(1.0 / EVERY_S))
            try:
                self._random.choice(self._parts).act()
            except StatusError:
                continue  # it has changed meanwhile, or is gone

    def end(self) -> None:
        """What was switched off for a while is on again."""
        for part in self._parts:
            with suppress(StatusError):
                part.end()
