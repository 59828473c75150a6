"""Builds every object of the operator and passes it down; :mod:`plimsoll.app.process` runs it.

The one module that may import every layer. It decides nothing.
"""

import asyncio
import functools
import gc
import socket
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from plimsoll.access.rights import Access
from plimsoll.app import extensions
from plimsoll.app.candidacy import candidacy, namespace_of
from plimsoll.app.clock import SeededRandomness, SystemClock, ThreadComputer
from plimsoll.app.loop_thread import LoopThread
from plimsoll.app.scheduling_wing import GangParts, PodPorts, SchedulingWing, WingParts
from plimsoll.app.settings import Settings
from plimsoll.app.supervision import Supervision
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.kube.access_reviews import AccessReviews, permissions
from plimsoll.kube.custom_resources import PodGroupStatusPatcher, PolicyList, PolicyStatusPatcher
from plimsoll.kube.deployments import DeploymentRollouts
from plimsoll.kube.events import EventPoster
from plimsoll.kube.eviction_records import RECORDS, EvictionRecords, shadowing_evictions
from plimsoll.kube.eviction_requests import PodEvictionRequester
from plimsoll.kube.extenders import HTTPExtenders
from plimsoll.kube.nodes import NodeTainter
from plimsoll.kube.pods import PodBinder, PodDocuments, PodEvictor, PodPreemptor, PodStatusPatcher
from plimsoll.kube.reflector import Reflector, Sink
from plimsoll.kube.session.session import Session
from plimsoll.kube.usage import UsageMeter
from plimsoll.kube.volumes import VolumePatcher
from plimsoll.kube.watched_resources import WATCHED, WatchedResource
from plimsoll.leadership.fence import Fence
from plimsoll.model.kinds.watch_event import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.controller import Policies
from plimsoll.policies.plugin_failures import PluginFailures
from plimsoll.policies.profiles import ProfileSchedulers
from plimsoll.policies.relist import reconcile
from plimsoll.policies.status_writer import RetriedStatuses
from plimsoll.ports.observer import told_to_all
from plimsoll.rebalancing.controller import Rebalancers
from plimsoll.rebalancing.eviction_requests.way import EvictionsByRequest
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.way import RolloutSurges
from plimsoll.scheduling.extenders.client import Extending
from plimsoll.scheduling.orphaned_pods import OrphanedPods
from plimsoll.strategies import EVICTORS
from plimsoll.strategies import IN_TREE as STRATEGIES
from plimsoll.telemetry.logs import LoggingObserver
from plimsoll.telemetry.outages import OutageLog
from plimsoll.telemetry.process import ConnectionMetrics, LeadingMetrics, LoopMetrics, build_info
from plimsoll.telemetry.rebalancing import RebalancingMetrics
from plimsoll.telemetry.scheduling import MetricsObserver, QueueingMetrics
from plimsoll.telemetry.scraped_state import Sources, StateCollector
from plimsoll.timing.timer import Timer

#: What a leader writes to: one that takes over lists these again, for a watch may lag behind.
WRITTEN = frozenset(("pods", "persistentvolumes", "persistentvolumeclaims"))

#: Seconds without a turn of the scheduling loop, though it has something to do, after which it hangs. All
#: slots may be taken for ten minutes by pods whose volumes are being provisioned.
HANGS_S = 900.0

#: Seconds that placing pods waits at most for targets of moves of earlier processes to be held again.
RECOVERY_S = 5.0


#: Objects of the first lists after which the garbage collector forgets them: at 100,000 pods, a collection of
#: all objects takes half a second, in which no thread runs. Reference counts still free them.
FREEZE_EVERY = 5000


class Operator:
    """One operator process.

    Args:
        settings: The flags.
        session: The connection; writes through it pass the fence.
        lease_session: A connection for the election alone, of the thread's loop.
        thread: Where the election takes place, and from where the probes are answered.
    """

    def __init__(
        self, settings: Settings, session: Session, lease_session: Session, thread: LoopThread
    ) -> None:
        self.settings = settings
        self.thread = thread
        self.clock = SystemClock()
        self._is_synced = False
        self._unfrozen = 0
        self.outages = OutageLog(self.clock.monotonic, session.address)
        self.metrics = CollectorRegistry()
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=self.metrics)
        build_info(self.metrics)
        self.failures = PluginFailures()
        plain = LoggingObserver()
        self.access = access = Access(AccessReviews(session), self.clock, plain)
        self.observer = told_to_all(
            [
                MetricsObserver(self.metrics),
                QueueingMetrics(self.metrics),
                RebalancingMetrics(self.metrics),
                LeadingMetrics(self.metrics),
                ConnectionMetrics(self.metrics),
                LoopMetrics(self.metrics),
                plain,
                self.outages,
                self.failures,
                access,
            ]
        )
        self.supervision = Supervision(self.clock, self.observer)
        randomness = SeededRandomness(settings.seed)
        self.fence = Fence(self.clock)
        observed = session.observed(self.observer).fenced(self.fence)
        self.session = session = observed.permitted(permissions(access))
        self.cache = Cache()
        registry, strategies = Registry(IN_TREE), StrategyRegistry(STRATEGIES)
        left_out = [
            *extensions.load(extensions.PLUGINS, registry.add, self.observer),
            *extensions.load(extensions.STRATEGIES, strategies.add, self.observer),
        ]
        self.timer = Timer(self.clock, self.observer)
        book = ReservationBook(self.cache, self.timer)
        defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in registry]
        self.recorder = EventPoster(session, self.clock, f"plimsoll-{socket.gethostname()}")
        self.leadership = candidacy(
            settings,
            lease_session.observed(self.observer),
            thread=thread,
            supervision=self.supervision,
            fence=self.fence,
            clock=self.clock,
            randomness=SeededRandomness(),  # unlike those of other candidates, and of no decision
            recorder=self.recorder,
            observer=self.observer,
        )
        groups = Groups()
        statuses = RetriedStatuses(PolicyStatusPatcher(session), self.clock)
        keeper = EvictionRecordStore(EvictionRecords(session), self.clock, self.observer)
        self.extenders = HTTPExtenders()
        extending = Extending(
            self.extenders,
            PodDocuments(session),
            fence=self.fence,
            clock=self.clock,
            observer=self.observer,
        )
        self.extender_health = extending.health
        self.rebalancers = Rebalancers(
            cache=self.cache,
            book=book,
            timer=self.timer,
            strategies=strategies,
            evictors=EvictorRegistry(EVICTORS),
            forecast=build_profile(ProfileConfig("default-scheduler"), registry, defaults),
            keeper=keeper,
            evictor=PodEvictor(session),
            closer=NodeTainter(session, self.clock),
            surges=RolloutSurges(DeploymentRollouts(session), self.cache.cluster.objects),
            requests=functools.partial(
                EvictionsByRequest,
                PodEvictionRequester(session, self.clock, SeededRandomness(settings.seed), self.observer),
            ),
            recorder=self.recorder,
            statuses=statuses,
            meter=UsageMeter(session),
            clock=self.clock,
            computer=ThreadComputer(),
            observer=self.observer,
            groups=groups,
            access=access,
            namespace=namespace_of(settings),
        )
        self.wing = SchedulingWing(
            book,
            PodPorts(
                binder=PodBinder(session),
                volumes=VolumePatcher(session),
                preemptor=PodPreemptor(session, self.clock),
                statuses=PodStatusPatcher(session, self.clock),
                recorder=self.recorder,
            ),
            self.clock,
            # A source of its own: what is measured must not change what is decided.
            SeededRandomness(settings.seed),
            self.observer,
            WingParts(
                access=access,
                evictor=self.rebalancers.victims,
                gangs=GangParts(groups, PodGroupStatusPatcher(session), self.timer),
                extending=extending,
                fair_share=True,
            ),
        )
        self.queue, self.loop = self.wing.queue, self.wing.loop
        self.policies = Policies(
            profiles=ProfileSchedulers(
                registry=registry,
                defaults=defaults,
                cluster=self.cache.cluster,
                nominator=book.nominator,
                randomness=randomness,
                failures=self.failures,
                extending=extending,
                observer=self.observer,
            ),
            rebalancing=self.rebalancers,
            statuses=statuses,
            clock=self.clock,
            observer=self.observer,
            access=access,
            recorder=self.recorder,
            serve=self._serve,
        )
        access.on_change.append(self.policies.refresh)
        self.orphans = OrphanedPods(
            self.policies.claimed,
            self.recorder,
            self.clock,
            self.observer,
            on_change=self.policies.refresh,
        )
        self.policies.advice = self.orphans.advice
        self.ingestion = self.wing.ingestion((self.rebalancers, self.orphans), self.observer)
        self.rebalancers.on_trouble = self.policies.refresh
        if left_out:
            self.policies.notes["ExtensionLeftOut"] = "; ".join(left_out)
        sinks: dict[WatchedResource, Sink] = {
            resource: functools.partial(self._ingest, resource.name) for resource in WATCHED
        }
        self.reflectors = [
            Reflector(
                session, resource, sink, clock=self.clock, randomness=randomness, observer=self.observer
            )
            for resource, sink in {**sinks, RECORDS: self._take_records}.items()
        ]
        self.metrics.register(StateCollector(self._sources()))

    def _sources(self) -> Sources:
        cluster, cache, queue = self.cache.cluster, self.cache, self.queue
        return Sources(
            queues=queue.depths,
            cache=lambda: {
                "nodes": len(cluster),
                "pods": len(cluster.pods),
                "assumed_pods": len(cache.assumed),
            },
            rejections=lambda: ((queued.pod.pod.spec.scheduler_name, queued.rejected_by) for queued in queue),
            in_flight=lambda: self.loop.in_flight,
            calls=lambda: self.wing.timer.counts,
            events_dropped=lambda: self.recorder.dropped,
            conditions=self.policies.conditions,
            degraded=self.policies.degradations,
            stalled=self._stalled,
            runs=self.rebalancers.statistics.figures,
        )

    def _stalled(self) -> Mapping[str, int]:
        """Stalled pods by profile; a standby tries none."""
        if not self.leadership.acquired.is_set():
            return {}
        now = self.clock.monotonic()
        found = Counter(each.pod.pod.spec.scheduler_name for each in self.queue if each.is_stalled(now))
        return {name: found[name] for name in self.wing.served.schedulers}

    def _ingest(self, resource: str, events: list[WatchEvent]) -> None:
        began = self.clock.monotonic()
        self.ingestion.apply(events)
        self.observer.batch_taken_in(resource, len(events), self.clock.monotonic() - began)
        self._unfrozen += len(events)
        if not self._is_synced and self._unfrozen >= FREEZE_EVERY:
            self._freeze()

    def _take_records(self, events: list[WatchEvent]) -> None:
        """Records tell what others did to them: deleted them, or answered by an annotation."""
        keeper, approvals = self.rebalancers.keeper, self.rebalancers.approvals
        for event in events:
            match event:
                case ObjectAdded(record) | ObjectUpdated(_, record):
                    meta = record.metadata
                    approvals.annotated(meta.namespace, meta.name, meta.annotations)
                case ObjectDeleted(record):
                    keeper.forget(record.metadata.namespace, record.metadata.name)
                    approvals.forget(record.metadata.namespace, record.metadata.name)
                case _:
                    continue

    def _freeze(self) -> None:
        """Take what was listed out of full garbage collections, which hold up every thread of the process."""
        self._unfrozen = 0
        gc.freeze()

    def _serve(self, schedulers: Mapping[str, ProfileScheduler]) -> None:
        self.rebalancers.profiles = {name: scheduler.profile for name, scheduler in schedulers.items()}
        self.wing.serve(schedulers)

    def unready(self) -> str:
        """Why the operator is not ready, "" when it is."""
        return self.supervision.unready() or self._unsynced()

    def _unsynced(self) -> str:
        missing = {resource.name for resource in WATCHED} - self.wing.mirror.synced
        return f"waiting for the first list of {', '.join(sorted(missing))}" if missing else ""

    def broken(self) -> str:
        """Why the process should be restarted, "" when it should not; called from the probes' thread."""
        if problem := self.supervision.problem():
            return problem
        overdue_s = self.leadership.overdue_s()
        if overdue_s > 2 * self.settings.leader_elect_retry_period:
            return f"the election's next step is {overdue_s:.0f} s overdue"
        waited_s = self.loop.waited_s(self.clock.monotonic())
        return f"the scheduling loop hangs for {waited_s:.0f} s" if waited_s > HANGS_S else ""

    async def until_synced(self) -> None:
        """Wait until every collection has been listed once: no decision is made on half a cluster."""
        await self.wing.mirror.listed.until(lambda: not self._unsynced())
        self._is_synced = True
        self._freeze()

    @property
    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Tasks that run as long as the process, keyed by name; :mod:`plimsoll.app.process` starts them."""
        policies = reconcile(self.policies, PolicyList(self.session), self.clock, self.observer)
        return {
            "heartbeat": self.supervision.beat(),
            "outage log": self.outages.run(),
            "events": self.recorder.run(),
            "election": self.leadership.run(),
            **{f"watch of {each.resource.name}": self._mirror(each) for each in self.reflectors},
            "comparison of policies": policies,
            "decisions": self._decide(),
        }

    async def _mirror(self, reflector: Reflector) -> None:
        """Open watches once the leader is known: a new leader then needs no second list."""
        await self.leadership.tried.wait()
        await reflector.run()

    async def _take_over(self) -> None:
        """Wait until this process leads, then until it knows all that earlier leaders wrote."""
        await self.leadership.acquired.wait()
        since = self.leadership.since or 0.0
        written = [each for each in self.reflectors if each.resource.name in WRITTEN]
        for each in written:
            each.list_since(since)
        for each in written:
            await each.until_listed(since)
        self.wing.take_over()
        await self.policies.refresh()

    async def _decide(self) -> None:
        await self.access.begin()
        await self.until_synced()
        self.leadership.stand()
        await self._take_over()
        shadow = await shadowing_evictions(self.session)
        if shadow:
            self.policies.notes["EvictionsShadowed"] = (
                f'kubectl takes "evictions" for the built-in {shadow}; say evictions.plimsoll.dev or plev'
            )
            structlog.get_logger("plimsoll").warning("evictions are shadowed", by=shadow)
            await self.policies.refresh()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.timer.run(), name="timer")
            group.create_task(self.access.run(), name="access reviews")
            group.create_task(self.orphans.run(), name="orphaned pods")
            group.create_task(self.rebalancers.run(), name="rebalancing")
            with suppress(TimeoutError):  # the records may not be readable: pods are placed then, too
                async with asyncio.timeout(RECOVERY_S):
                    await self.rebalancers.recovered.wait()
            group.create_task(self.wing.run(), name="scheduling wing")
            group.create_task(self.failures.run(self.policies.refresh), name="plugin failures")
            group.create_task(self.extender_health.run(self.policies.refresh), name="extender health")
