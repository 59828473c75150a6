"""policy → strategies → plan → re-validate → record → evict → verify.

One run at a time, whichever policy it is of: a plan knows all moves that are under way. The plan is made
on a fork, beside the event loop; every move is asked again of the present cluster right before its
eviction, and no eviction is sent without a record that says so.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from plimsoll.access.rights import LOOK_AT_DEPLOYMENTS, SURGE, Access
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.engine.profile import Profile
from plimsoll.framework import ConfigurationError
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.kinds.watch_event import WatchEvent
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import make_plan
from plimsoll.planning.upstream.planner import upstream_run
from plimsoll.ports.clock import Clock, Computer
from plimsoll.ports.custom_resources import PolicyStatusWriter
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.objects import NodeCloser
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import PodEviction
from plimsoll.ports.usage import UsageReader
from plimsoll.rebalancing import schedule
from plimsoll.rebalancing.breakers import stop_button
from plimsoll.rebalancing.breakers.displacement import DisplacementBreaker
from plimsoll.rebalancing.breakers.stop_button import DegradedReasons, StopButton, rested
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.config import WHERE
from plimsoll.rebalancing.execution.executor import MoveExecutor, MoveHandlers
from plimsoll.rebalancing.execution.feeder import MoveFeeder
from plimsoll.rebalancing.execution.restart import Restart
from plimsoll.rebalancing.execution.revalidation import MoveRevalidator
from plimsoll.rebalancing.execution.targets import MoveTargets
from plimsoll.rebalancing.execution.victims import VictimEvictions
from plimsoll.rebalancing.moves import recovery
from plimsoll.rebalancing.moves.events import HoldUpsChanged, PolicyChanged, StopPressed
from plimsoll.rebalancing.moves.instructions import CountMove, NoteDisplacement, Revalidate
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.sightings import ReplacementSightings
from plimsoll.rebalancing.moves.state import Surroundings
from plimsoll.rebalancing.pending_pods import PendingPods
from plimsoll.rebalancing.plan_runner import PlanRunner
from plimsoll.rebalancing.planning_context import PlanningContexts
from plimsoll.rebalancing.policy_configs import Breakers, PolicyConfigs
from plimsoll.rebalancing.predictions import Predictions
from plimsoll.rebalancing.proposals import Approvals, Proposals
from plimsoll.rebalancing.records.drafts import moves_of
from plimsoll.rebalancing.records.history import memory_of, touched_nodes
from plimsoll.rebalancing.records.retention import Retention
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.run_result import RunResult
from plimsoll.rebalancing.run_statistics import RunStatistics
from plimsoll.rebalancing.run_status import RunReports, RunTotals
from plimsoll.rebalancing.scope_review import ScopeReviews
from plimsoll.rebalancing.totals import totals_of
from plimsoll.rebalancing.triggering import triggers_of
from plimsoll.rebalancing.upstream_run import UpstreamEnforcement
from plimsoll.rebalancing.usage import UsageCollector, wants_metrics_api
from plimsoll.rebalancing.ways import RequestNeeds, RequestWayFactory, SurgeWay
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import PolicyLocks
from plimsoll.timing.timer import Timer

#: From a change that triggers a run to the run: changes come in groups, and are seen by then.
TRIGGERED = timedelta(seconds=5)


class Rebalancers:
    """The rebalancing of all policies.

    Attributes:
        keeper: The records.
        approvals: What people say of proposals.
        forecast: The default profile, for pods of schedulers that are not ours.
        statistics: Of the runs, for metrics.
        upstream: Carries out runs of planner Upstream that evict.
        adopt: Takes over records that earlier processes left and that are no moves, such as of victims.
        recovered: Set when records of earlier processes have been taken over, and their targets are held.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        book: ReservationBook,
        timer: Timer,
        strategies: StrategyRegistry,
        evictors: EvictorRegistry,
        forecast: Profile,
        keeper: EvictionRecordStore,
        evictor: PodEviction,
        closer: NodeCloser,
        surges: SurgeWay,
        requests: RequestWayFactory,
        recorder: EventRecorder,
        statuses: PolicyStatusWriter,
        meter: UsageReader,
        clock: Clock,
        computer: Computer,
        observer: Observer,
        groups: Groups,
        access: Access,
        conditions: Signal,
        namespace: str = "",
    ) -> None:
        self._conditions = conditions
        self.recovered = asyncio.Event()
        self.keeper = keeper
        self._predictions = Predictions(keeper, clock, observer)
        self._collector = UsageCollector(meter, clock)
        self._cache = cache
        self._book = book
        self._clock = clock
        self._access = access
        runs_changed = Signal()
        self._planning = PlanRunner(computer, clock, runs_changed)
        self._observer = observer
        self._timetable = schedule.Timetable(self._skipped)
        self._policies: dict[str, SchedulingPolicy] = {}
        self._scopes = ScopeReviews(self._policies, self._planning, clock)
        self._over: dict[str, dict[tuple[str, str], int]] = {}  #: runs in a row, by policy
        self._locks = PolicyLocks()
        self._running = False
        self.statistics = RunStatistics(
            self._policies, self._timetable.next_run, keeper.unfinished, clock, observer
        )
        self._reports = RunReports(
            policies=self._policies,
            statuses=statuses,
            recorder=recorder,
            next_run=self._timetable.next_run,
            totals=lambda name: totals_of(keeper.of_policy(name)),
            clock=clock,
            observer=observer,
        )
        self._pending = PendingPods(cache)
        self._stop = StopButton(cache.cluster.objects, namespace)
        self._was_stopped = False
        self._displacements = DisplacementBreaker(
            cache.cluster, self._pending.waiting, lambda name: name in self.profiles, clock
        )
        self._troubles = DegradedReasons(
            policies=self._policies,
            stop=self._stop,
            displacements=self._displacements,
            planning=self._planning,
            clock=clock,
            observer=observer,
            changed=runs_changed,
            conditions=conditions,
        )
        self._surges = surges
        by_request = requests(
            RequestNeeds(self._policies, self._stop, cache, timer, clock, observer, conditions)
        )
        ways = (surges, by_request)
        self._probe = by_request.probe
        self._configs = PolicyConfigs(
            policies=self._policies,
            strategies=strategies,
            evictors=evictors,
            forecast=forecast,
            cache=cache,
            breakers=Breakers(self._stop, self._displacements, access, self._probe, self._planning),
            clock=clock,
        )
        self._closed = ClosedNodes(
            cache=cache, keeper=keeper, closer=closer, strategies=strategies, clock=clock, observer=observer
        )
        needs: dict[str, Callable[[], str]] = {}
        around = Surroundings(
            pod=self._pending.facts,
            held_up=self._configs.hold_up,
            waits=lambda uid: self._pending.waits(uid) is not None,
            needless=lambda key: needs[key]() if key in needs else "",
            proposed=lambda specs: moves_of(specs, self._pending.find, self._closed.concerns),
            empties=self._closed.concerns,
            cannot_request=self._probe.refusal,
        )
        recovering = recovery.table([way.recovered for way in ways])
        machine = MoveMachine(around, (recovering, *(way.table for way in ways)))
        self._context = PlanningContexts(
            book=book,
            groups=groups,
            keeper=keeper,
            machine=machine,
            pending=self._pending,
            clock=clock,
            others=self._configs.others,
        )
        revalidator = MoveRevalidator(
            book=book,
            keeper=keeper,
            context=self._context,
            deployments_of=surges.present,
            clock=clock,
            configured=self._configs.of,
            spec_of=self._configs.spec_of,
            observer=observer,
        )
        replacements = ReplacementSightings()
        sightings = (replacements, *(each for way in ways for each in way.sightings))
        self._targets = MoveTargets(book, self._pending, machine, replacements.siblings, clock)
        handlers = MoveHandlers(keeper, evictor, recorder, self._closed, clock)
        self._executor = MoveExecutor(
            machine,
            timer,
            clock,
            observer,
            sightings=sightings,
            immediate={
                CountMove: self._count,
                NoteDisplacement: lambda order: self._displacements.before_move(order.policy),
                **self._targets.immediate,
                **handlers.immediate,
                **surges.immediate,
                **by_request.immediate,
            },
            awaited={
                Revalidate: revalidator.judge,
                **handlers.awaited,
                **surges.awaited,
                **by_request.awaited,
            },
        )
        self._requests = by_request.watch(self._executor)
        self.approvals = Approvals(self._executor)
        self._feeder = MoveFeeder(self._executor, revalidator, self._policies, self._closed.concerns)
        self._proposals = Proposals(self._executor, self._feeder, keeper)
        self._restart = Restart(
            keeper=keeper,
            executor=self._executor,
            answer=self.approvals.answer,
            pending=self._pending,
            inspect=surges.inspect,
            clock=clock,
        )
        self.victims = VictimEvictions(
            cache=cache, keeper=keeper, executor=self._executor, needs=needs, clock=clock, observer=observer
        )
        self.upstream = UpstreamEnforcement(
            policies=self._policies,
            keeper=keeper,
            feeder=self._feeder,
            machine=machine,
            pending=self._pending,
            objects=cache.cluster.objects,
            planning=self._planning,
            clock=clock,
        )
        self.retention = Retention(
            policies=self._policies, keeper=keeper, post=self._executor.post, clock=clock, observer=observer
        )

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By scheduler name: who places replacements; set when policies change."""
        return self._configs.profiles

    @profiles.setter
    def profiles(self, profiles: Mapping[str, Profile]) -> None:
        self._configs.profiles = profiles

    # -- policies ------------------------------------------------------------------------------------

    def check(self, policy: SchedulingPolicy) -> None:
        """Make sure that the policy's rebalancing can be carried out.

        Raises:
            ConfigurationError: It cannot; names the field.
        """
        self._configs.configured(policy)
        spec = policy.spec.rebalancing or RebalancingSpec()
        try:
            schedule.check(spec.schedule)
        except ValueError as exc:
            raise ConfigurationError(f"{WHERE}.schedule", str(exc)) from exc

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run these policies' rebalancing, and no other's; unchanged ones keep their timetable."""
        wanted = {policy.metadata.name: policy for policy in policies}
        self._collector.is_wanted = any(
            wants_metrics_api(policy.spec.rebalancing or RebalancingSpec()) for policy in policies
        )
        for name in [name for name in self._policies if name not in wanted]:
            self.drop(name)
            self._reports.forget(name)
            self.statistics.forget(name)
            self._troubles.forget(name)
            self._displacements.forget(name)
            self._scopes.forget(name)
            self._over.pop(name, None)
            self._timetable.remove(name)
        for name, policy in wanted.items():
            known = self._policies.get(name)
            if known is not None and known.spec != policy.spec:
                self._displacements.forget(name)
                self._scopes.forget(name)
            self.adopt(policy)
            if self._running and (known is None or known.spec != policy.spec):
                self._schedule(name, policy)

    def adopt(self, policy: SchedulingPolicy) -> None:
        """A policy rebalances from now on, or by another spec."""
        known = self._policies.get(policy.metadata.name)
        self._policies[policy.metadata.name] = policy
        if known is not policy:
            self._executor.post(_changed(policy))
            self._probe.policies_changed()

    def drop(self, name: str) -> None:
        """A policy rebalances no more."""
        del self._policies[name]
        self._executor.post(PolicyChanged(name, None))
        self._probe.policies_changed()

    def retain_predictions(self, policies: Collection[str]) -> None:
        """These policies may have predictions; those of others are deleted soon."""
        self._predictions.retain(policies)

    def _schedule(self, name: str, policy: SchedulingPolicy) -> None:
        spec = policy.spec.rebalancing or RebalancingSpec()
        self._timetable.set(name, spec.schedule, lambda: self._contained(name))

    async def _follow_rights(self) -> None:
        """Approved moves may wait for what is allowed now."""
        seen = 0
        while True:
            seen = await self._access.changed.wait(seen)
            self._executor.post(HoldUpsChanged())

    # -- what the watch tells ------------------------------------------------------------------------

    def observe(self, event: WatchEvent) -> None:
        """Something happened: replacements appear, pods that hold no place come and go."""
        self._troubles.observe(event)
        self._pending.observe(event)
        self._targets.observe(event)
        self._closed.observe(event)
        fired = triggers_of(event)
        if fired and self._running:
            for name, policy in self._policies.items():
                spec = policy.spec.rebalancing
                if spec is not None and not fired.isdisjoint(spec.schedule.triggers):
                    self._timetable.hasten(name, TRIGGERED)
        self._executor.observe(event)
        self._requests.observe(event)
        if self._stop.is_pressed is not self._was_stopped:
            self._was_stopped = self._stop.is_pressed
            self._executor.post(StopPressed(self._stop.sentence) if self._was_stopped else HoldUpsChanged())

    def _count(self, order: CountMove) -> None:
        self._reports.count(order.policy, order.run, evicted=order.evicted, verified=order.verified)

    # -- the life of this part -----------------------------------------------------------------------

    async def run(self) -> None:
        """Complete what earlier processes began, then run by the timetable until cancelled."""
        await self._restart.recover()
        for policy in list(self._policies.values()):
            self._executor.post(_changed(policy))
        self.recovered.set()
        await self._probe.refresh()
        self._running = True
        self._timetable.start()
        for name, policy in self._policies.items():
            self._schedule(name, policy)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.retention.run(), name="retention of records")
                group.create_task(self._closed.run(), name="closed nodes")
                group.create_task(self.keeper.run(), name="unwritten records")
                group.create_task(self._predictions.run(), name="predictions")
                group.create_task(self._reports.run(), name="run status")
                group.create_task(self._requests.run(), name="eviction requests")
                group.create_task(self._troubles.watch(), name="obstacles to rebalancing")
                group.create_task(self._collector.run(), name="usage")
                group.create_task(self._follow_rights(), name="rights of moves")
        finally:
            self._timetable.stop()
            await self._executor.close()

    # -- one run -------------------------------------------------------------------------------------

    async def _contained(self, name: str) -> None:
        """A run that breaks harms its own policy only, and is told in its status."""
        began, wall = self._clock.monotonic(), self._clock.now()
        policy, problem = self._policies.get(name), ""
        self.statistics.fell_due(name)
        self._troubles.run_begun(name)
        try:
            async with self._locks.of(name):
                began = self._clock.monotonic()
                result = await self.rebalance(name)
        except asyncio.CancelledError:
            raise
        except TimeoutError as exc:
            result, problem = RunResult.TIMED_OUT, str(exc) or "an answer was not there in time"
        except Exception as exc:  # noqa: BLE001 - whatever a strategy or the server did, the next run comes
            result, problem = RunResult.CRASHED, repr(exc)
            self._observer.failed(f"rebalancing {name}", problem)
        self.statistics.finished(name, result)
        self._observer.run_finished(name, result.value, self._clock.monotonic() - began)
        if policy is not None:
            await self._reports.ended(policy, wall, result, problem)
            self._troubles.run_ended(name, result, problem)

    def _skipped(self, name: str) -> None:
        """A run was due while the one before it was under way."""
        self._troubles.run_skipped(name)
        self._observer.run_finished(name, RunResult.SKIPPED.value, 0.0)

    async def rebalance(self, name: str) -> RunResult:
        """Plan and carry out one run of a policy; how it ended."""
        policy = self._policies.get(name)
        if policy is None or policy.spec.rebalancing is None:
            return RunResult.SKIPPED
        if self._planning.obstacle(policy):
            return RunResult.SKIPPED
        spec = policy.spec.rebalancing
        await self._probe.refresh(immediately=True)
        started = self._clock.now()
        cycle = f"{name}/{started:.6f}"
        touched = touched_nodes(self.keeper.known.values(), started)
        self._context.learn(name, await self._collector.measure(spec, touched))
        memory = memory_of(self.keeper.known.values(), started, self._access.granted)
        self._displacements.look(name)
        self._executor.post(HoldUpsChanged())
        rebalancing = rested(self._configs.configured(policy), memory, name)
        deployments = await self._surges.deployments() if rebalancing.surge else None
        is_upstream = rebalancing.planner is Planner.UPSTREAM  # descheduler does not see nominations
        fork = self._cache.cluster.fork() if is_upstream else self._book.claimed()
        over_for = self._over.get(name, {})
        around = self._context.of(name, memory, deployments=deployments)
        recent = around.recent + self._executor.machine.left(name)
        planning_context = replace(around, over_for=over_for, recent=recent)
        totals = RunTotals(policy, started, EvictionPlan((), ()), cycle)
        is_live = is_upstream and spec.mode is Mode.ENFORCE
        try:
            if is_live:
                self._reports.begin(totals)
                run = upstream_run(rebalancing, fork, planning_context)
                with self.statistics.strategies(name):
                    await self.upstream.carry_out(totals, run, memory, stop_button.PLANNING_S)
            else:
                with self.statistics.strategies(name):
                    totals.plan = await self._planning.make(
                        policy, lambda: make_plan(rebalancing, fork, planning_context), stop_button.PLANNING_S
                    )
        except TimeoutError:
            self._troubles.look_back(name, memory)
            raise
        made = totals.plan
        self._over[name] = {
            (strategy, node): over_for.get((strategy, node), 0) + 1
            for strategy, found in made.classes
            for node in found.overutilized
        }
        self.statistics.planned(name, rebalancing, made)
        self._observer.run_ended(name, made.considered, len(made.moves), made.refused_by_reason())
        for failure in made.failures:
            self._observer.plugin_failed(failure.plugin, failure.point, failure.problem)
        self._reports.begin(totals)
        await self.retention.tidy_policy(name, spec.records)
        if spec.mode is Mode.DRY_RUN:
            await self._predictions.write(made, name, spec.records, cycle)
        elif spec.mode is Mode.APPROVE:
            # A plan that may hold no move says nothing against the proposals: they and their answers keep.
            resting, may_try = memory.rest(name)
            is_held = self._stop.is_pressed or self._displacements.sentence(name) or (resting and not may_try)
            if not is_held:
                for _ in range(await self._proposals.propose(made.moves, name, spec.records, cycle)):
                    self._observer.record_dropped(name, "breaker")
        elif not is_live:
            await self._feeder.carry_out(totals, memory)
        await self._reports.end(totals, self._clock.now())
        if await self._scopes.look(policy, rebalancing, fork):
            self._conditions.notify()
        told = not all(map(self._access.allows, (*LOOK_AT_DEPLOYMENTS, SURGE)))
        forbidden = self._surges.trouble if rebalancing.surge and not told else ""
        self._troubles.look_back(name, memory, made.failures, forbidden)
        return RunResult.FAILED if made.failures else RunResult.SUCCEEDED

    def run_now(self, name: str) -> None:
        """Somebody asks for a run out of turn."""
        if self._running:
            self._timetable.hasten(name, timedelta())

    def troubles(self, name: str) -> Mapping[str, str]:
        """What keeps a policy from moving pods, in sentences by reason."""
        return {
            **self._probe.troubles(name),
            **self._troubles.of(name),
            **self._scopes.troubles(name),
        }

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""
        return self._scopes.advice(name)


def _changed(policy: SchedulingPolicy) -> PolicyChanged:
    """The event that a policy is as it is now."""
    spec = policy.spec.rebalancing
    if spec is None:
        return PolicyChanged(policy.metadata.name, None)
    timeout_s = float(spec.eviction_request_timeout_seconds)
    return PolicyChanged(policy.metadata.name, spec.mode, spec.evict_by, timeout_s)
