"""Builds the rebalancing wing: the controller, and its adapters to the API server."""

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
from plimsoll.model.kinds.watch_event import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.policies.status import RetriedStatuses
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.controller import Rebalancers
from plimsoll.rebalancing.eviction_requests.way import EvictionsByRequest
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.way import RolloutSurges
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


class RebalancingWing:
    """The objects of the wing.

    Args:
        forecast: The default profile, for pods of schedulers that are not ours.
        statuses: Writes the status of policies.
    """

    def __init__(
        self,
        parts: SharedParts,
        strategies: StrategyRegistry,
        forecast: Profile,
        statuses: RetriedStatuses,
        namespace: str,
    ) -> None:
        session, clock, cache = parts.session, parts.clock, parts.book.cache
        requester = PodEvictionRequester(session, clock, SeededRandomness(parts.seed), parts.observer)
        records = NamespacedResources(session, "evictions", EvictionStatus)
        self._keeper = EvictionRecordStore(records, clock, parts.observer)
        self.rebalancers = Rebalancers(
            cache=cache,
            book=parts.book,
            timer=parts.timer,
            strategies=strategies,
            evictors=EvictorRegistry(EVICTORS),
            forecast=forecast,
            keeper=self._keeper,
            evictor=PodEvictor(session),
            closer=NodeTainter(session, clock),
            surges=RolloutSurges(DeploymentRollouts(session), cache.cluster.objects),
            requests=functools.partial(EvictionsByRequest, requester),
            recorder=parts.recorder,
            statuses=statuses,
            meter=UsageMeter(session),
            clock=clock,
            computer=ThreadComputer(),
            observer=parts.observer,
            groups=parts.groups,
            access=parts.access,
            conditions=parts.conditions,
            namespace=namespace,
        )

    def take_records(self, events: list[WatchEvent]) -> None:
        """Notice what others did to records: deleted one, or answered by an annotation."""
        for event in events:
            match event:
                case ObjectAdded(record) | ObjectUpdated(_, record):
                    meta = record.metadata
                    self.rebalancers.approvals.annotated(meta.namespace, meta.name, meta.annotations)
                case ObjectDeleted(record):
                    self._keeper.forget(record.metadata.namespace, record.metadata.name)
                    self.rebalancers.approvals.forget(record.metadata.namespace, record.metadata.name)
                case _:
                    continue
