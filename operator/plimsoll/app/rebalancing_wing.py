"""Gives the rebalancing wing its adapters to the API server."""

import functools
from dataclasses import dataclass

from plimsoll.access.rights import Access
from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.app.clock import SeededRandomness, SystemClock, ThreadComputer
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.profile import Profile
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.kube.custom_resources import NamespacedResources
from plimsoll.kube.deployments import DeploymentRollouts
from plimsoll.kube.events import EventPoster
from plimsoll.kube.eviction_requests import PodEvictionRequester
from plimsoll.kube.nodes import NodeTainter
from plimsoll.kube.pods import PodEvictor
from plimsoll.kube.session.session import Session
from plimsoll.kube.usage import UsageMeter
from plimsoll.policies.status import RetriedStatuses
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.config import Registries
from plimsoll.rebalancing.eviction_requests.way import EvictionsByRequest
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.rebalancing.wing import RebalancingPorts, RebalancingWing, Runtime
from plimsoll.strategies import EVICTORS
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What several parts of the operator use.

    Attributes:
        session: The connection; its writes pass the fence.
        access: What the API server allows.
        conditions: Notified when sentences in the status of policies have changed.
    """

    session: Session
    clock: SystemClock
    observer: Observer
    access: Access
    recorder: EventPoster
    timer: Timer
    book: ReservationBook
    groups: Groups
    conditions: Signal
    seed: int | None


def rebalancing_wing(
    parts: SharedParts,
    strategies: StrategyRegistry,
    forecast: Profile,
    statuses: RetriedStatuses,
    namespace: str,
) -> RebalancingWing:
    """The wing with its adapters; ``forecast`` is the profile for pods of schedulers that are not ours."""
    session, clock, observer = parts.session, parts.clock, parts.observer
    requester = PodEvictionRequester(session, clock, SeededRandomness(parts.seed), observer)
    return RebalancingWing(
        parts.book,
        parts.groups,
        EvictionRecordStore(NamespacedResources(session, "evictions", EvictionStatus), clock, observer),
        Registries(strategies, EvictorRegistry(EVICTORS), forecast),
        parts.access,
        RebalancingPorts(
            evictor=PodEvictor(session),
            closer=NodeTainter(session, clock),
            recorder=parts.recorder,
            statuses=statuses,
            meter=UsageMeter(session),
            surges=RolloutSurges(DeploymentRollouts(session), parts.book.cache.cluster.objects),
            requests=functools.partial(EvictionsByRequest, requester),
        ),
        Runtime(parts.timer, clock, ThreadComputer(), observer, parts.conditions, namespace),
    )
