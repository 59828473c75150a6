"""Builds the rebalancing wing: breakers, move machine, executor, runs.

Every object receives its collaborators when it is built, so the order here is the order of dependence.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from msgspec import Struct

from plimsoll.access.rights import Access
from plimsoll.api.v1alpha1.limits import EvictionLimits
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.ingestion import EventSubscriber, OfTypes
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeUpdated,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodDeleted,
    PodUpdated,
    Synced,
    WatchEvent,
)
from plimsoll.engine.profile import Profile
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.framework.descheduling.strategy import empties_nodes
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.requests import DEFERRED, pending_resize
from plimsoll.model.names import record_key
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.moves import Move
from plimsoll.policies.rebalancing import Registries, limits_of
from plimsoll.ports.clock import Clock, Computer, SnapshotComputer
from plimsoll.ports.custom_resources import NamespacedStatusWriter, PolicyStatusWriter, WatchedRecord
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.objects import CostWriter, NodeCloser
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import PodEviction
from plimsoll.ports.usage import PrometheusReader
from plimsoll.rebalancing.breakers import DisplacementBreaker, StopButton
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.controller import RebalancingController
from plimsoll.rebalancing.deletion_costs import DeletionCosts
from plimsoll.rebalancing.execution.believed_records import BelievedRecords
from plimsoll.rebalancing.execution.executor import MoveExecutor, MoveHandlers
from plimsoll.rebalancing.execution.feeder import MoveFeeder
from plimsoll.rebalancing.execution.restart import Restart
from plimsoll.rebalancing.execution.revalidation import MoveRevalidator
from plimsoll.rebalancing.execution.targets import MoveTargets
from plimsoll.rebalancing.execution.victims import VictimEvictions, VictimNeeds
from plimsoll.rebalancing.maintenance.maintenances import Maintenances
from plimsoll.rebalancing.maintenance.plans import MaintenancePlans
from plimsoll.rebalancing.moves import recovery
from plimsoll.rebalancing.moves.events import HoldUpsChanged, RecordDeleted
from plimsoll.rebalancing.moves.instructions import CountMove, NoteDisplacement, Revalidate
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.sightings import ReplacementSightings, facts_of
from plimsoll.rebalancing.moves.state import Surroundings
from plimsoll.rebalancing.planning_context import PlanningContexts
from plimsoll.rebalancing.records.audit import AuditLog, LineSink
from plimsoll.rebalancing.records.drafts import moves_of
from plimsoll.rebalancing.records.load_forecasts import LoadForecasts
from plimsoll.rebalancing.records.missed import MissedDeletions
from plimsoll.rebalancing.records.retention import Retention
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.rule_statuses import RuleStatuses
from plimsoll.rebalancing.runs.contested_nodes import ContestedNodes
from plimsoll.rebalancing.runs.degraded_reasons import DegradedReasons
from plimsoll.rebalancing.runs.inputs import RunInputs
from plimsoll.rebalancing.runs.modes import PlanModes
from plimsoll.rebalancing.runs.plan_runner import PlanRunner
from plimsoll.rebalancing.runs.policy_configs import Breakers, PolicyConfigs
from plimsoll.rebalancing.runs.predictions import Predictions
from plimsoll.rebalancing.runs.proposals import Approvals, Proposals
from plimsoll.rebalancing.runs.run import PolicyRuns
from plimsoll.rebalancing.runs.scope_review import ScopeReviews
from plimsoll.rebalancing.runs.statistics import RunStatistics
from plimsoll.rebalancing.runs.status import RunReports
from plimsoll.rebalancing.runs.upstream_run import UpstreamEnforcement
from plimsoll.rebalancing.timetable import Timetable
from plimsoll.rebalancing.unhealthy_nodes import UnhealthyNodes
from plimsoll.rebalancing.ways import SurgeWay
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.usage.load_feed import LoadFeed
from plimsoll.usage.queried_sources import QueriedSources
from plimsoll.usage.sources import UsageCollector


class RebalancingPorts(Struct, frozen=True):
    """The wing's ports to the API server."""

    evictor: PodEviction
    closer: NodeCloser  #: closes nodes that are emptied
    unhealthy: NodeCloser  #: closes unhealthy nodes
    costs: CostWriter  #: writes costs of deletion
    recorder: EventRecorder
    statuses: PolicyStatusWriter
    maintenances: PolicyStatusWriter  #: writes the status of NodeMaintenances
    rules: NamespacedStatusWriter  #: writes the status of RebalancingRules
    feed: LoadFeed  #: reads the metrics API, and updates the load book
    prometheus: PrometheusReader
    surges: SurgeWay
    audit: LineSink | None = None  #: where records go that have ended; None exports none


class Runtime(Struct, frozen=True):
    """The process around the wing."""

    timer: Timer
    clock: Clock
    computer: Computer
    observer: Observer
    conditions: Signal  #: notified when the sentences about policies have changed
    namespace: str = ""  #: the operator's own, with the stop button; "" has none
    forks: SnapshotComputer | None = None  #: None makes all plans in threads
    cluster: str = ""  #: name of the cluster, "" for none


class PolicyParts:
    """What is known about the policies that rebalance.

    Attributes:
        policies: The policies, keyed by name; the controller of the wing writes them.
        pending: The pods without a place.
        planning: Makes plans off the event loop.
    """

    def __init__(
        self,
        book: ReservationBook,
        keeper: EvictionRecordStore,
        registries: Registries,
        access: Access,
        ports: RebalancingPorts,
        runtime: Runtime,
    ) -> None:
        cluster, clock, observer = book.cache.cluster, runtime.clock, runtime.observer
        changed = Signal()  #: the reasons why policies cannot move pods may have changed
        self.policies: dict[str, SchedulingPolicy] = {}
        self.timetable = Timetable(runtime.timer, clock, observer)
        self.pending = PendingPods(book.cache)
        self.displacements = DisplacementBreaker(cluster, self.pending.waiting, clock)
        self.planning = PlanRunner(runtime.computer, clock, changed, runtime.forks)
        stop = StopButton(cluster.objects, runtime.namespace)
        self.breakers = Breakers(stop, self.displacements, access, self.planning)
        self.configs = PolicyConfigs(
            self.policies, registries, cluster.nodes, cluster.objects, self.breakers, clock
        )
        scopes = ScopeReviews(self.policies, self.planning, clock)
        self.degraded = DegradedReasons(
            self.policies,
            self.breakers,
            scopes,
            ContestedNodes(clock),
            ports.surges,
            clock,
            changed,
            runtime.conditions,
        )
        next_run = self.timetable.next_run
        self.statistics = RunStatistics(self.policies, next_run, keeper.unfinished, clock, observer)
        self.reports = RunReports(
            self.policies, ports.statuses, ports.recorder, next_run, keeper, clock, observer
        )


class MoveParts:
    """What makes moves.

    Attributes:
        victims: Evicts victims of preemption.
        feeder: Passes the moves of runs to the machine.
    """

    def __init__(
        self,
        book: ReservationBook,
        groups: Groups,
        keeper: EvictionRecordStore,
        strategies: StrategyRegistry,
        policies: PolicyParts,
        ports: RebalancingPorts,
        runtime: Runtime,
    ) -> None:
        cache, clock, observer = book.cache, runtime.clock, runtime.observer
        pending, configs, surges, reports = policies.pending, policies.configs, ports.surges, policies.reports
        emptying = frozenset(name for name in strategies if empties_nodes(strategies[name]))
        empties: Callable[[Move], bool] = lambda move: bool(move.bundle) and move.strategy in emptying  # noqa: E731
        self.closed = ClosedNodes(cache, keeper, ports.closer, emptying, clock, observer)
        needs = VictimNeeds()
        around = Surroundings(
            pod=lambda uid: None if (found := pending.find(uid)) is None else facts_of(found.pod),
            held_up=configs.hold_up,
            waits=lambda uid: (
                pending.waits(uid) is not None or _waits_for_resize(cache.cluster.pods.get(uid))
            ),
            needless=needs.needless,
            proposed=lambda specs: moves_of(specs, pending.find, empties),
            empties=empties,
        )
        self.machine = machine = MoveMachine(around, (recovery.table([surges.recovered]), surges.table))
        replacements = ReplacementSightings()
        self.contexts = PlanningContexts(
            book, groups, keeper, machine, pending, clock, replacements.siblings, configs.others
        )
        revalidator = MoveRevalidator(
            book=book,
            keeper=keeper,
            context=self.contexts,
            standing=ports.evictor.standing,
            deployments_of=surges.present,
            clock=clock,
            configured=configs.of,
            spec_of=configs.spec_of,
            observer=observer,
            computer=runtime.computer,
        )
        self.targets = MoveTargets(book, pending, machine, replacements.siblings, clock)
        handlers = MoveHandlers(keeper, ports.evictor, ports.recorder, self.closed, clock)
        self.executor = MoveExecutor(
            machine,
            runtime.timer,
            clock,
            observer,
            sightings=(replacements, *surges.sightings),
            immediate={
                CountMove: lambda order: reports.count(
                    order.policy, order.run, evicted=order.evicted, verified=order.verified
                ),
                NoteDisplacement: lambda order: policies.displacements.before_move(order.policy),
                **self.targets.immediate,
                **handlers.immediate,
                **surges.immediate,
            },
            awaited={Revalidate: revalidator.judge, **handlers.awaited, **surges.awaited},
        )
        self.feeder = MoveFeeder(self.executor, revalidator, empties)
        self.victims = VictimEvictions(
            cache=cache, keeper=keeper, executor=self.executor, needs=needs, clock=clock, observer=observer
        )


def _waits_for_resize(pod: PodInfo | None) -> bool:
    return pod is not None and not pod.is_terminating and pending_resize(pod.pod) == DEFERRED


class RecordParts:
    """What keeps Eviction records in step with the cluster.

    Attributes:
        approvals: People's answers to proposals.
        restart: Takes over the moves of earlier processes.
        missed: Finds records that were deleted while no watch told it.
        audit: Exports records that have ended.
    """

    def __init__(
        self,
        keeper: EvictionRecordStore,
        policies: PolicyParts,
        moves: MoveParts,
        cluster: Cluster,
        ports: RebalancingPorts,
        runtime: Runtime,
    ) -> None:
        clock, observer, executor = runtime.clock, runtime.observer, moves.executor
        self._keeper, self._executor = keeper, executor
        self.approvals = Approvals(executor)
        self.missed = MissedDeletions(keeper, self._forget, clock)
        self.restart = Restart(
            keeper=keeper,
            executor=executor,
            answer=self.approvals.take_over,
            pending=policies.pending,
            believed=BelievedRecords(
                keeper=keeper,
                machine=moves.machine,
                pending=policies.pending,
                standing=ports.evictor.standing,
                configured=policies.configs.of,
                defaults=limits_of(EvictionLimits()),
                cluster=cluster,
                recorder=ports.recorder,
                observer=observer,
                clock=clock,
            ),
            inspect=ports.surges.inspect,
            clock=clock,
        )
        self.audit = AuditLog(keeper, ports.audit, runtime.cluster, clock, observer)
        keeper.removed = self.audit.deleted
        needed = (self.audit.is_kept, moves.contexts.counts)
        self.retention = Retention(
            policies.policies,
            keeper,
            executor.post,
            clock,
            observer,
            moves.contexts.unready,
            is_kept=lambda record: any(each(record) for each in needed),
        )
        self.predictions = Predictions(keeper, executor.post, clock, observer)
        self.forecasts = LoadForecasts(keeper, ports.feed, clock, observer)

    def take(self, events: Iterable[WatchEvent]) -> None:
        """Handle other clients' changes of records: sent, deleted, or answered by an annotation."""
        for event in events:
            match event:
                case ObjectAdded(WatchedRecord() as record) | ObjectUpdated(_, WatchedRecord() as record):
                    meta = record.metadata
                    self.approvals.annotated(meta.namespace, meta.name, meta.annotations)
                    self._keeper.see(meta.namespace, meta.name, record.status.phase)
                    self.missed.shown(record_key(meta.namespace, meta.name))
                case ObjectDeleted(record):
                    meta = record.metadata
                    self.missed.gone(record_key(meta.namespace, meta.name))
                    self._forget(meta.namespace, meta.name, meta.uid)
                case Synced():
                    self.missed.listed()
                case _:
                    continue

    def _forget(self, namespace: str, name: str, uid: str) -> None:
        """Forget a record that was deleted, and end its move unless it was created again."""
        self.approvals.forget(namespace, name)
        if self._keeper.forget(namespace, name, uid):
            self._executor.post(RecordDeleted(record_key(namespace, name)))

    @property
    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Long-running tasks, keyed by name."""
        return {
            "retention of records": self.retention.run(),
            "unwritten records": self._keeper.run(),
            "deleted records": self.missed.run(),
            "predictions": self.predictions.run(),
            "load forecasts": self.forecasts.run(),
            **({"audit log": self.audit.run()} if self.audit.sink is not None else {}),
        }


class RebalancingWing:
    """The objects of the wing.

    Attributes:
        approvals: People's answers to proposals.
        take_records: Handles events of Eviction records.
        victims: Evicts victims of preemption.
        upstream: Runs planner Upstream against the API server.
        subscribers: Observers of events, in order: objects that others read come first.
        recovered: Set when earlier processes' records are taken over and their targets are reserved.
    """

    def __init__(
        self,
        book: ReservationBook,
        groups: Groups,
        keeper: EvictionRecordStore,
        registries: Registries,
        access: Access,
        ports: RebalancingPorts,
        runtime: Runtime,
    ) -> None:
        cluster, clock, observer = book.cache.cluster, runtime.clock, runtime.observer
        self.recovered, self.keeper, self._access = asyncio.Event(), keeper, access
        self._policies = parts = PolicyParts(book, keeper, registries, access, ports, runtime)
        moves = MoveParts(book, groups, keeper, registries.strategies, parts, ports, runtime)
        self._records = records = RecordParts(keeper, parts, moves, cluster, ports, runtime)
        self.configs, self.planning, self.statistics = parts.configs, parts.planning, parts.statistics
        self.executor, self.victims, self._closed = moves.executor, moves.victims, moves.closed
        proposals = Proposals(self.executor, records.approvals, moves.feeder, keeper, observer)
        modes = PlanModes(parts.policies, records.retention, records.predictions, proposals, moves.feeder)
        self.upstream = UpstreamEnforcement(
            parts.policies,
            keeper,
            moves.feeder,
            moves.machine,
            parts.pending,
            cluster.objects,
            self.planning,
            clock,
        )
        queried = QueriedSources(ports.prometheus, cluster, parts.policies, ports.feed, clock, observer)
        self._collector = UsageCollector(ports.feed, queried, clock, parts.policies)
        inputs = RunInputs(
            book, keeper, self._collector, self.configs, moves.contexts, ports.surges, self.executor, clock
        )
        self.costs = DeletionCosts(
            cluster,
            parts.policies,
            parts.reports.plan_of,
            ports.costs,
            lambda: self.rebalancers.are_all_known,
            lambda: parts.breakers.stop.is_pressed,
            lambda nodes: moves.closed.avoid("plans", nodes),
            clock,
            observer,
        )
        self.runs = PolicyRuns(
            parts.policies,
            self.planning,
            inputs,
            modes,
            self.upstream,
            parts.reports,
            self.statistics,
            parts.degraded,
        )
        self.rebalancers = RebalancingController(
            parts.policies,
            parts.timetable,
            self.runs,
            self.configs,
            self.executor,
            parts.degraded,
            records.predictions,
            (parts.reports, self.statistics, inputs, self.runs),
        )
        self.maintenances = Maintenances(
            cluster,
            keeper,
            self.rebalancers,
            parts.timetable,
            MaintenancePlans(cluster, parts.reports.plan_of),
            moves.closed,
            access,
            ports.maintenances,
            ports.recorder,
            clock,
            observer,
        )
        self.unhealthy = UnhealthyNodes(
            cluster,
            parts.policies,
            self.configs,
            ports.unhealthy,
            lambda: self.rebalancers.are_all_known,
            self.rebalancers.run_now,
            ports.recorder,
            clock,
            observer,
        )
        parts.configs.emptied = moves.machine.emptied
        self._rules = RuleStatuses(cluster, ports.rules, moves.contexts.hourly, clock, observer)
        self.approvals, self.retention, self.take_records = records.approvals, records.retention, records.take
        self.subscribers = self._subscribers(moves.targets)

    def _subscribers(self, targets: MoveTargets) -> tuple[EventSubscriber | OfTypes, ...]:
        nodes, objects_of = (NodeAdded, NodeUpdated), (ObjectAdded, ObjectUpdated, ObjectDeleted)
        return (
            OfTypes(objects_of, (self._policies.degraded,)),
            self._policies.pending,
            OfTypes((PodUpdated, PodDeleted), (targets,)),
            OfTypes(nodes, (self._closed,)),
            self.executor,
            OfTypes((*nodes, *objects_of), (self.rebalancers,)),
        )

    def serve(self, profiles: Mapping[str, Profile], forecasts: Forecasts) -> None:
        """Use these profiles, by scheduler name, to place replacements from now on."""
        self.configs.profiles, self.configs.forecasts = profiles, forecasts
        self._policies.displacements.served = profiles.keys()

    async def _follow_rights(self) -> None:
        """Review waiting moves after rights have changed, and run policies that may move pods now."""
        seen = 0
        while True:
            seen = await self._access.changed.wait(seen)
            self.executor.post(HoldUpsChanged())
            self.rebalancers.rights_changed()

    async def read(self) -> None:
        """Read the usage of nodes and pods, for profiles and policies, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._collector.feed.run(), name="metrics API")
            group.create_task(self._collector.sources.run(), name="queries of policies")

    async def run(self) -> None:
        """Complete the moves of earlier processes, then run by the timetable until cancelled."""
        await self._records.restart.recover()
        self.rebalancers.announce()
        self.recovered.set()
        self.rebalancers.start()
        work: Mapping[str, Coroutine[Any, Any, None]] = {
            **self._records.work,
            "closed nodes": self._closed.run(),
            "run status": self._policies.reports.run(),
            "obstacles to rebalancing": self._policies.degraded.run(),
            "usage": self._collector.run(),
            "rights of moves": self._follow_rights(),
            "maintenance of nodes": self.maintenances.run(),
            "unhealthy nodes": self.unhealthy.run(),
            "status of rules": self._rules.run(),
            "costs of deletion": self.costs.run(),
        }
        self._collector.sources.serves_strategies = True
        try:
            async with asyncio.TaskGroup() as group:
                for name, each in work.items():
                    group.create_task(each, name=name)
                group.create_task(self._records.restart.recover_late())
        finally:
            self._collector.sources.serves_strategies = False
            self.rebalancers.stop()
            await self.executor.close()
