"""policy → strategies → plan → re-validate → record → evict → verify.

One run at a time, whichever policy it is of: a plan knows all moves that are under way. The plan is made
on a fork, beside the event loop; every move is asked again of the present cluster right before its
eviction, and no eviction is sent without a record that says so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control import timing
from plimsoll.control.approving import APPROVED, REJECTED, Approvals, move_of
from plimsoll.control.closing import ClosedNodes
from plimsoll.control.configuring import WHERE, rebalancing_of
from plimsoll.control.holding import Holds
from plimsoll.control.keeping import Record, RecordKeeper
from plimsoll.control.measuring import Collector, wants_metrics_api
from plimsoll.control.moving import POLICY_CHANGED, Mover
from plimsoll.control.ports import (
    Clock,
    Computer,
    Evictor,
    Meter,
    NodeCloser,
    PolicyStatusWriter,
    Recorder,
)
from plimsoll.control.recovering import recover
from plimsoll.control.remembering import memory_of
from plimsoll.control.reporting import run_status
from plimsoll.control.restraining import StopButton, rested
from plimsoll.control.sending import MoveSender
from plimsoll.control.triggering import trigger_of
from plimsoll.control.verifying import Outcome, Verification
from plimsoll.engine.cycle import Nominations
from plimsoll.engine.memory import Memory
from plimsoll.engine.moves import EvictionPlan, Rebalancing
from plimsoll.engine.planners import make_plan
from plimsoll.engine.profile import Profile
from plimsoll.framework import ConfigurationError
from plimsoll.framework.observer import Observer
from plimsoll.framework.strategy_registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.event import ClusterEvent
from plimsoll.state.cache import Cache

#: Seconds between two looks at moves whose time may be up, and at records that are too old.
EXPIRY_S, TIDY_S = 5.0, 60.0

#: From a change that triggers a run to the run: changes come in groups, and are seen by then.
TRIGGERED = timedelta(seconds=5)

#: Seconds that a plan may take, beyond the longest search that a policy may ask for. The thread of one that
#: takes longer cannot be ended; the other policies go on without it.
PLANNING_S = 900.0

#: Seconds between two looks at what people say of proposals.
ANSWERS_S = 2.0


@dataclass(slots=True)
class RunTotals:
    """What the last run of a policy came to; grows until its moves are finished."""

    started: float
    mode: Mode
    plan: EvictionPlan
    cycle: str
    evicted: int = 0
    verified: int = 0
    completed: float | None = None


class Rebalancers:
    """The rebalancing of all policies.

    Attributes:
        keeper: The records.
        approvals: What people say of proposals.
        forecast: The default profile, for pods of schedulers that are not ours.
        on_trouble: Called when what ``troubles`` says has changed.
        adopt: Takes over records that earlier processes left and that are no moves, such as of victims.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        nominations: Nominations,
        strategies: StrategyRegistry,
        evictors: EvictorRegistry,
        forecast: Profile,
        keeper: RecordKeeper,
        evictor: Evictor,
        closer: NodeCloser,
        recorder: Recorder,
        statuses: PolicyStatusWriter,
        meter: Meter,
        clock: Clock,
        computer: Computer,
        observer: Observer,
        namespace: str = "",
    ) -> None:
        self.forecast = forecast
        self.approvals = Approvals(keeper)
        self._collector = Collector(meter, clock)
        self.on_trouble: Callable[[], Awaitable[None]] = _nobody
        self.adopt: Callable[[Record], bool] = lambda _: False
        self.keeper = keeper
        self._cache = cache
        self._strategies = strategies
        self._evictors = evictors
        self._statuses = statuses
        self._clock = clock
        self._computer = computer
        self._observer = observer
        self._timetable = timing.Timetable()
        self._policies: dict[str, SchedulingPolicy] = {}
        self._totals: dict[str, RunTotals] = {}
        self._retentions: dict[str, RecordRetention] = {}
        self._holds = Holds(cache, nominations)
        self._verification = Verification(self._ended, self._holds.hand_over)
        self._outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self._sender = MoveSender(
            cache=cache,
            keeper=keeper,
            verification=self._verification,
            holds=self._holds,
            evictor=evictor,
            recorder=recorder,
            clock=clock,
            passed_on=self._outcomes.put_nowait,
        )
        self._mover = Mover(
            cache=cache,
            keeper=keeper,
            verification=self._verification,
            holds=self._holds,
            sender=self._sender,
            clock=clock,
            nominations=nominations,
        )
        self._closed = ClosedNodes(
            cache=cache, keeper=keeper, closer=closer, strategies=strategies, clock=clock, observer=observer
        )
        self._stop = StopButton(cache.cluster.objects, namespace)
        self._was_stopped = False
        self._over: dict[str, dict[tuple[str, str], int]] = {}  #: runs in a row, by policy
        self._troubles: dict[str, dict[str, str]] = {}
        self._hanging: dict[str, SchedulingPolicy] = {}
        self._one_run = asyncio.Lock()
        self._running = False

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By scheduler name: who places replacements; set when policies change."""
        return self._holds.profiles

    @profiles.setter
    def profiles(self, profiles: Mapping[str, Profile]) -> None:
        self._holds.profiles = profiles

    # -- policies ------------------------------------------------------------------------------------

    def check(self, policy: SchedulingPolicy) -> None:
        """Make sure that the policy's rebalancing can be carried out.

        Raises:
            ConfigurationError: It cannot; names the field.
        """
        self._configured(policy)
        spec = policy.spec.rebalancing or RebalancingSpec()
        try:
            timing.check(spec.schedule)
        except ValueError as exc:
            raise ConfigurationError(f"{WHERE}.schedule", str(exc)) from exc

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run these policies' rebalancing, and no other's; unchanged ones keep their timetable."""
        wanted = {policy.metadata.name: policy for policy in policies}
        self._collector.is_wanted = any(
            wants_metrics_api(policy.spec.rebalancing or RebalancingSpec()) for policy in policies
        )
        for name in [name for name in self._policies if name not in wanted]:
            del self._policies[name]
            self._totals.pop(name, None)
            self._troubles.pop(name, None)
            self._hanging.pop(name, None)
            self._over.pop(name, None)
            self._timetable.remove(name)
        for name, policy in wanted.items():
            known = self._policies.get(name)
            self._policies[name] = policy
            if self._running and (known is None or known.spec != policy.spec):
                self._schedule(name, policy)

    def _schedule(self, name: str, policy: SchedulingPolicy) -> None:
        spec = policy.spec.rebalancing or RebalancingSpec()
        self._timetable.set(name, spec.schedule, lambda: self._contained(name))

    def _configured(self, policy: SchedulingPolicy) -> Rebalancing:
        asked = rebalancing_of(
            policy,
            strategies=self._strategies,
            evictors=self._evictors,
            profiles=self.profiles,
            objects=self._cache.cluster.objects,
            forecast=self.forecast,
            now=datetime.fromtimestamp(self._clock.now(), UTC),
        )
        return self._stop.heeded(asked)

    def _asked_for(self, policy: SchedulingPolicy) -> Rebalancing | None:
        """The policy's rebalancing; None when another spec has taken its place, or none has."""
        return self._configured(policy) if self._policies.get(policy.metadata.name) is policy else None

    # -- what the watch tells ------------------------------------------------------------------------

    def observe(self, event: ClusterEvent) -> None:
        """Something happened: replacements appear, pods that hold no place come and go."""
        self._mover.observe(event)
        trigger = trigger_of(event)
        if trigger is not None and self._running:
            for name, policy in self._policies.items():
                spec = policy.spec.rebalancing
                if spec is not None and trigger in spec.schedule.triggers:
                    self._timetable.hasten(name, TRIGGERED)
        self._verification.observe(event)

    # -- the life of this part -----------------------------------------------------------------------

    async def run(self) -> None:
        """Complete what earlier processes began, then run by the timetable until cancelled."""
        await recover(self.keeper, self._verification, self._cache, self._clock, self.adopt)
        self._running = True
        self._timetable.start()
        for name, policy in self._policies.items():
            self._schedule(name, policy)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._expire())
                group.create_task(self._complete())
                group.create_task(self._approve())
                group.create_task(self._collector.run())
        finally:
            self._timetable.stop()

    async def _expire(self) -> None:
        tidied = self._clock.monotonic()
        while True:
            await self._clock.sleep(EXPIRY_S)
            now = self._clock.monotonic()
            try:
                self._verification.expire(now)
                self._mover.rooms.expire(now)
                await self.keeper.catch_up()
                await self._closed.look_after()
                if now - tidied >= TIDY_S:
                    tidied = now
                    await self._tidy()
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the next look comes
                self._observer.failed("looking after records", repr(exc))

    async def _tidy(self) -> None:
        """Drop old records; those of suspended and deleted policies by what was last asked for them."""
        for name, policy in self._policies.items():
            if policy.spec.rebalancing is not None:
                self._retentions[name] = policy.spec.rebalancing.records
        for name in self.keeper.policies():
            await self.keeper.tidy(name, self._retentions.get(name, RecordRetention()))
        self._retentions = {
            name: kept for name, kept in self._retentions.items() if name in self.keeper.policies()
        }

    def _ended(self, outcome: Outcome) -> None:
        self._holds.release(outcome.record)
        if outcome.replacement is not None:
            self._holds.arrived(outcome.replacement.uid)
        self._sender.learnt(outcome)

    async def _complete(self) -> None:
        """Write how moves ended."""
        while True:
            outcome = await self._outcomes.get()
            try:
                await self._conclude(outcome)
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the others are completed
                self._observer.failed(f"completing {outcome.record.key}", repr(exc))

    async def _conclude(self, outcome: Outcome) -> None:
        record = await self.keeper.advance(
            outcome.record,
            outcome.phase,
            reason=outcome.reason,
            message=outcome.message,
            replacement=outcome.replacement,
        )
        totals = self._totals.get(record.spec.policy)
        if totals is not None and outcome.phase is Phase.SETTLED:
            totals.verified += 1
        await self._report(record.spec.policy)

    # -- one run -------------------------------------------------------------------------------------

    async def _contained(self, name: str) -> None:
        """A run that breaks harms its own policy only."""
        try:
            async with self._one_run:
                await self.rebalance(name)
        except asyncio.CancelledError:
            raise
        except Exception as exc:  # noqa: BLE001 - whatever a strategy or the server did, the next run comes
            self._observer.failed(f"rebalancing {name}", repr(exc))

    async def rebalance(self, name: str) -> None:
        """Plan and carry out one run of a policy."""
        policy = self._policies.get(name)
        if policy is None or policy.spec.rebalancing is None or self._hanging.get(name) is policy:
            return
        spec = policy.spec.rebalancing
        started = self._clock.now()
        cycle = f"{name}/{started:.6f}"
        self._mover.learn(name, await self._collector.measure(spec))
        fork = self._holds.claimed()
        memory = memory_of(self.keeper.known.values(), started)
        rebalancing = rested(self._configured(policy), memory, name)
        over_for = self._over.get(name, {})
        circumstances = replace(self._mover.circumstances(name, memory), over_for=over_for)
        try:
            async with asyncio.timeout(PLANNING_S):
                made = await self._computer.compute(lambda: make_plan(rebalancing, fork, circumstances))
        except TimeoutError:
            self._hanging[name] = policy
            await self._look_back(name)
            raise
        self._over[name] = {
            (strategy, node): over_for.get((strategy, node), 0) + 1
            for strategy, found in made.classes
            for node in found.overutilized
        }
        self._observer.run_ended(name, made.considered, len(made.moves), made.refused_by_reason())
        for failure in made.failures:
            self._observer.plugin_failed(failure.plugin, failure.point, failure.problem)
        totals = self._totals[name] = RunTotals(started, spec.mode, made, cycle)
        await self.keeper.tidy(name, spec.records)
        if spec.mode is Mode.DRY_RUN:
            await self._predict(policy, made, cycle)
        elif spec.mode is Mode.APPROVE:
            dropped = await self.approvals.propose(made.moves, name, spec.records, cycle)
            for _ in range(dropped):
                self._observer.record_dropped(name, "breaker")
        else:
            await self._carry_out(policy, totals, memory)
        totals.completed = self._clock.now()
        await self._report(name)
        await self._look_back(name)

    async def _predict(self, policy: SchedulingPolicy, made: EvictionPlan, cycle: str) -> None:
        spec = policy.spec.rebalancing or RebalancingSpec()
        name = policy.metadata.name
        for move in made.moves:
            if self.keeper.has_room(name, spec.records):
                await self.keeper.open(move, name, Mode.DRY_RUN, cycle)
            else:
                self._observer.record_dropped(name, "breaker")

    async def _carry_out(self, policy: SchedulingPolicy, totals: RunTotals, memory: Memory) -> None:
        closed: dict[str, str] = {}  # nodes by the bundle that empties them
        try:
            await self._carry_out_all(policy, totals, memory, closed)
        finally:
            self._closed.done(closed.values())

    async def _carry_out_all(
        self, policy: SchedulingPolicy, totals: RunTotals, memory: Memory, closed: dict[str, str]
    ) -> None:
        name = policy.metadata.name
        broken: set[str] = set()  # bundles of which a move was not made: the rest of them stays
        for move in totals.plan.moves:
            if self._policies.get(name) is not policy:
                self._mover.rooms.release(move.bundle)
                return  # changed, suspended or deleted meanwhile: the rest is dropped
            if move.bundle in broken:
                continue
            if not self._mover.rooms.keep_for(move, totals.plan.moves, self._clock.monotonic()):
                broken.add(move.bundle)
                continue
            if self._closed.concerns(move) and move.bundle not in closed:
                closed[move.bundle] = move.source
                if not await self._closed.close(move.source):
                    broken.add(move.bundle)
                    continue
            record = await self.keeper.open(move, name, Mode.ENFORCE, totals.cycle)
            if record is not None and await self._mover.make(
                record, move, lambda: self._asked_for(policy), memory, totals.evicted
            ):
                totals.evicted += 1
            elif move.bundle:
                broken.add(move.bundle)
                self._mover.rooms.release(move.bundle)
                if move.bundle in closed:
                    await self._closed.reopen(move.source)

    # -- approval ------------------------------------------------------------------------------------

    async def _approve(self) -> None:
        """Carry out what people say of proposals."""
        while True:
            await self._clock.sleep(ANSWERS_S)
            if self._stop.is_pressed != self._was_stopped:
                self._was_stopped = self._stop.is_pressed
                await self._told()
            if self._stop.is_pressed:
                continue  # the answers keep
            for record in self.approvals.waiting():
                try:
                    async with self._one_run:
                        await self._heed(record)
                except Exception as exc:  # noqa: BLE001 - whatever one proposal does, the others are heeded
                    self._observer.failed(f"proposal {record.key}", repr(exc))

    async def _heed(self, record: Record) -> None:
        """Do what was said of one proposal; one whose workload has a move under way waits."""
        name = record.spec.policy
        policy, pod = self._policies.get(name), self._mover.find(record.spec.pod.uid)
        if (
            policy is None
            or policy.spec.rebalancing is None
            or policy.spec.rebalancing.mode is not Mode.APPROVE
        ):
            await self.keeper.cancel(record, *POLICY_CHANGED)
            return
        if pod is None:
            await self.keeper.cancel(record, "Gone", "the pod is gone already")
            return
        answer = self.approvals.answer(record)
        if answer is False:
            await self.keeper.cancel(record, REJECTED, f"somebody annotated it {APPROVED}=false")
        if not answer:
            return
        move = move_of(record, pod)
        if self._verification.in_flight().get(move.workload.uid):
            return
        memory = memory_of(self.keeper.known.values(), self._clock.now())
        if await self._mover.make(record, move, lambda: self._asked_for(policy), memory, evicted=0):
            totals = self._totals.get(name)
            if totals is not None:
                totals.evicted += 1
            await self._report(name)

    # ------------------------------------------------------------------------------------------------

    async def _told(self) -> None:
        """What ``troubles`` says has changed."""
        try:
            await self.on_trouble()
        except Exception as exc:  # noqa: BLE001 - a status that cannot be written stops nothing else
            self._observer.failed("telling that moves are stopped", repr(exc))

    async def _look_back(self, name: str) -> None:
        """Tell when moves keep coming to nothing, and when they do so no longer."""
        memory = memory_of(self.keeper.known.values(), self._clock.now())
        troubles: dict[str, str] = {}
        if name in self._hanging and self._hanging[name] is self._policies.get(name):
            troubles["Hanging"] = (
                f"a strategy or plugin did not end within {PLANNING_S:.0f} s; the policy does not run again"
                " until it is changed or the operator is restarted"
            )
        resting, _ = memory.rest(name)
        if resting:
            troubles["Resting"] = resting
        suspended = memory.suspended(name)
        if suspended:
            troubles["StrategySuspended"] = "; ".join(suspended)
        if troubles != self._troubles.get(name, {}):
            self._troubles[name] = troubles
            await self.on_trouble()

    def run_now(self, name: str) -> None:
        """Somebody asks for a run out of turn."""
        if self._running:
            self._timetable.hasten(name, timedelta())

    def troubles(self, name: str) -> Mapping[str, str]:
        """What keeps a policy from moving pods, in sentences by reason."""
        stopped = {"Stopped": self._stop.sentence} if self._stop.is_pressed and name in self._policies else {}
        return stopped | self._troubles.get(name, {})

    async def _report(self, name: str) -> None:
        """Write what the last run came to."""
        totals = self._totals.get(name)
        if totals is None or name not in self._policies:
            return
        status: dict[str, Any] = run_status(
            totals.plan,
            mode=totals.mode,
            started=totals.started,
            completed=totals.completed,
            evicted=totals.evicted,
            verified=totals.verified,
            next_run=self._timetable.next_run(name),
        )
        answer = await self._statuses.write_status(name, status)
        if not answer.is_done:
            self._observer.failed(f"status of policy {name}", answer.message)


async def _nobody() -> None:
    """Nobody wants to know."""
