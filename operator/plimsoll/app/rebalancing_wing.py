"""Builds the rebalancing wing: the controller, and its adapters to the API server."""

import functools

from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.app.clock import SeededRandomness, ThreadComputer
from plimsoll.app.shared_parts import SharedParts
from plimsoll.engine.profile import Profile
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.kube.custom_resources import NamespacedResources
from plimsoll.kube.deployments import DeploymentRollouts
from plimsoll.kube.eviction_requests import PodEvictionRequester
from plimsoll.kube.nodes import NodeTainter
from plimsoll.kube.pods import PodEvictor
from plimsoll.kube.usage import UsageMeter
from plimsoll.model.kinds.watch_event import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.policies.status import RetriedStatuses
from plimsoll.rebalancing.controller import Rebalancers
from plimsoll.rebalancing.eviction_requests.way import EvictionsByRequest
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.way import RolloutSurges
from plimsoll.strategies import EVICTORS


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
