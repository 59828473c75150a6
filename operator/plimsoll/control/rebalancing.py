"""policy → strategies → plan → re-validate → record → evict → verify.

One run at a time, whichever policy it is of: a plan knows all moves that are under way. The plan is made
on a fork, beside the event loop; every move is asked again of the present cluster right before its
eviction, and no eviction is sent without a record that says so.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control import timing
from plimsoll.control.configuring import WHERE, rebalancing_of
from plimsoll.control.keeping import Record, RecordKeeper
from plimsoll.control.ports import (
    Answer,
    Clock,
    Computer,
    Evictor,
    Note,
    PolicyStatusWriter,
    Recorder,
    Verdict,
    pod_reference,
)
from plimsoll.control.reporting import run_status
from plimsoll.control.verifying import Outcome, Verification
from plimsoll.engine.cycle import Nominations
from plimsoll.engine.plan import (
    Circumstances,
    EvictionPlan,
    Move,
    Rebalancing,
    plan,
    replacement_of,
    revalidate,
)
from plimsoll.engine.profile import Profile
from plimsoll.framework import Cluster, ConfigurationError, Pod, PodInfo
from plimsoll.framework.observer import Observer
from plimsoll.framework.strategy import Refusal
from plimsoll.framework.strategy_registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.event import ClusterEvent, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.quantity import QuantityError
from plimsoll.state.cache import Cache

REPORTER = "plimsoll"

#: The priority with which a target is held.
FIRM = 2**31 - 1

#: Seconds between two looks at moves whose time may be up, and at records that are too old.
EXPIRY_S, TIDY_S = 5.0, 60.0

#: Seconds before an eviction is asked for again that got no usable answer.
ASK_AGAIN_S = (0.5, 2.0, 5.0)


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
        profiles: By scheduler name: who places replacements; set when policies change.
        forecast: The default profile, for pods of schedulers that are not ours.
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
        recorder: Recorder,
        statuses: PolicyStatusWriter,
        clock: Clock,
        computer: Computer,
        observer: Observer,
    ) -> None:
        self.profiles: Mapping[str, Profile] = {}
        self.forecast = forecast
        self.keeper = keeper
        self._cache = cache
        self._strategies = strategies
        self._evictors = evictors
        self._evictor = evictor
        self._recorder = recorder
        self._statuses = statuses
        self._clock = clock
        self._computer = computer
        self._observer = observer
        self._timetable = timing.Timetable()
        self._policies: dict[str, SchedulingPolicy] = {}
        self._totals: dict[str, RunTotals] = {}
        self._retentions: dict[str, RecordRetention] = {}
        self._verification = Verification(self._ended, self._hand_over)
        self._nominations = nominations
        self._held_by: dict[str, str] = {}  #: uid of the nomination, by record
        self._sending: dict[str, list[Outcome]] = {}
        self._outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self._unplaced: dict[str, Pod] = {}
        self._one_run = asyncio.Lock()
        self._running = False

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
        for name in [name for name in self._policies if name not in wanted]:
            del self._policies[name]
            self._totals.pop(name, None)
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
        return rebalancing_of(
            policy,
            strategies=self._strategies,
            evictors=self._evictors,
            profiles=self.profiles,
            objects=self._cache.cluster.objects,
            forecast=self.forecast,
        )

    # -- what the watch tells ------------------------------------------------------------------------

    def observe(self, event: ClusterEvent) -> None:
        """Something happened: replacements appear, pods that hold no place come and go."""
        match event:
            case PodAdded(pod) | PodUpdated(_, pod):
                if pod.is_terminal or not pod.node_name:
                    self._unplaced[pod.uid] = pod
                else:
                    self._unplaced.pop(pod.uid, None)
            case PodDeleted(pod):
                self._unplaced.pop(pod.uid, None)
            case _:
                return
        self._verification.observe(event)

    # -- the life of this part -----------------------------------------------------------------------

    async def run(self) -> None:
        """Complete what earlier processes began, then run by the timetable until cancelled."""
        await self._recover()
        self._running = True
        self._timetable.start()
        for name, policy in self._policies.items():
            self._schedule(name, policy)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._expire())
                group.create_task(self._complete())
        finally:
            self._timetable.stop()

    async def _recover(self) -> None:
        """Complete or cancel each open record exactly once."""
        await self.keeper.load()
        for record in self.keeper.known.values():
            self._verification.remember(record)
        for record in self.keeper.unfinished():
            pod = self._cache.cluster.pods.get(record.spec.pod.uid)
            if record.phase is None:  # ended between a record and its status
                first = Phase.PREDICTED if record.spec.mode is Mode.DRY_RUN else Phase.PLANNED
                record = await self.keeper.advance(  # noqa: PLW2901 - the same record, one step on
                    record, first, reason="Restarted", message="found without a status after a restart"
                )
                if record.is_finished:
                    continue
            if record.phase is Phase.PLANNED:
                await self._cancel(record, "Restarted", "the operator ended before the eviction was sent")
            elif record.phase is Phase.EVICTING and pod is not None and not pod.is_terminating:
                await self._cancel(record, "Restarted", "the operator ended before the eviction was accepted")
            else:
                if record.phase is Phase.EVICTING:
                    record = await self.keeper.advance(  # noqa: PLW2901 - the same record, one step on
                        record, Phase.EVICTED, reason="Restarted", message="found evicted after a restart"
                    )
                sent = next(
                    (each.time for each in record.status.transitions if each.phase is Phase.EVICTING), None
                )
                owner = record.spec.owner
                known = self._verification.siblings(owner.uid, sent) if owner else frozenset[str]()
                self._verification.expect(record, known, self._clock.monotonic())

    async def _expire(self) -> None:
        tidied = self._clock.monotonic()
        while True:
            await self._clock.sleep(EXPIRY_S)
            now = self._clock.monotonic()
            try:
                self._verification.expire(now)
                await self.keeper.catch_up()
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
        self._release(outcome.record)
        if outcome.replacement is not None:
            self._nominations.remove(outcome.replacement.uid)
        waiting = self._sending.get(outcome.record.key)
        if waiting is not None:
            waiting.append(outcome)
        else:
            self._outcomes.put_nowait(outcome)

    # -- holding the target --------------------------------------------------------------------------

    def _hold(self, record: Record, move: Move) -> None:
        """Keep the room on the target for the replacement: other pods see it taken."""
        if move.target and not move.is_forecast:
            hold = self._firm(replacement_of(move.pod, self._cache.cluster))
            self._held_by[record.key] = hold.uid
            self._nominations.add(hold, move.target)

    def _firm(self, hold: PodInfo) -> PodInfo:
        """The same with the highest priority: nobody is told that the room is free."""
        spec = msgspec.structs.replace(hold.pod.spec, priority=FIRM)
        return self._cache.info(msgspec.structs.replace(hold.pod, spec=spec))

    def _claimed(self) -> Cluster:
        """A fork of the cluster in which everybody who has a nominated node is there already."""
        fork = self._cache.cluster.fork()
        for node, pods in self._nominations.by_node.items():
            for pod in pods.values():
                if pod.uid not in fork.pods:
                    fork.place(pod, node)
        return fork

    def _hand_over(self, record: Record, pod: Pod) -> None:
        """The replacement has appeared: the room is kept in its own name, and it goes there."""
        self._release(record)
        target = record.spec.target_node
        if target is not None and not pod.node_name and pod.spec.scheduler_name in self.profiles:
            try:
                self._nominations.add(self._cache.info(pod), target)
            except QuantityError:
                return  # reported when it came in

    def _release(self, record: Record) -> None:
        uid = self._held_by.pop(record.key, None)
        if uid is not None:
            self._nominations.remove(uid)

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
        if policy is None or policy.spec.rebalancing is None:
            return
        spec = policy.spec.rebalancing
        started = self._clock.now()
        cycle = f"{name}/{started:.6f}"
        rebalancing = self._configured(policy)
        fork = self._claimed()
        circumstances = self._circumstances()
        made = await self._computer.compute(lambda: plan(rebalancing, fork, circumstances))
        self._observer.run_ended(name, made.considered, len(made.moves), made.refused_by_reason())
        for failure in made.failures:
            self._observer.plugin_failed(failure.plugin, failure.point, failure.problem)
        totals = self._totals[name] = RunTotals(started, spec.mode, made, cycle)
        await self.keeper.tidy(name, spec.records)
        if spec.mode is Mode.DRY_RUN:
            await self._predict(policy, made, cycle)
        else:
            await self._carry_out(policy, totals)
        totals.completed = self._clock.now()
        await self._report(name)

    async def _predict(self, policy: SchedulingPolicy, made: EvictionPlan, cycle: str) -> None:
        spec = policy.spec.rebalancing or RebalancingSpec()
        name = policy.metadata.name
        for move in made.moves:
            if self.keeper.has_room(name, spec.records):
                await self.keeper.open(move, name, Mode.DRY_RUN, cycle)
            else:
                self._observer.record_dropped(name, "breaker")

    async def _carry_out(self, policy: SchedulingPolicy, totals: RunTotals) -> None:
        name = policy.metadata.name
        for move in totals.plan.moves:
            if self._policies.get(name) is not policy:
                return  # changed, suspended or deleted meanwhile: the rest is dropped
            record = await self.keeper.open(move, name, Mode.ENFORCE, totals.cycle)
            if record is None:
                continue
            try:
                # Pods on their way out still take their room: a replacement that needs it would not find it.
                present = revalidate(
                    move, self._configured(policy), self._claimed(), self._circumstances(move)
                )
            except Exception as exc:
                await self._cancel(record, "NotRevalidated", f"the move could not be judged again: {exc!r}")
                raise
            if isinstance(present, Refusal):
                await self._cancel(record, present.reason, present.message)
                continue
            if self._policies.get(name) is not policy:
                await self._cancel(record, "PolicyChanged", "the policy was changed, suspended or deleted")
                return
            if await self._evict(record, present):
                totals.evicted += 1

    async def _evict(self, record: Record, move: Move) -> bool:
        """Send one eviction; whether it was accepted."""
        pod = move.pod.pod
        owner = pod.metadata.controller
        record = await self.keeper.advance(record, Phase.EVICTING, reason="Sent")
        if not self.keeper.is_written(record):
            # What is not on record is not done: the next process would not know of it.
            await self._cancel(record, "NotRecorded", "the record could not be written, so nothing was sent")
            return False
        # The replacement may be seen before the answer to the eviction is: be ready for it, but let no
        # outcome overtake the record.
        self._sending[record.key] = []
        self._hold(record, move)
        known = self._verification.siblings(owner.uid) if owner else frozenset[str]()
        self._verification.expect(record, known, self._clock.monotonic())
        try:
            try:
                answer = await self._ask(pod)
            except Exception as exc:  # noqa: BLE001 - whatever broke, the record is carried to its end
                answer = Answer(Verdict.UNKNOWN, f"asking for the eviction broke: {exc!r}")
            if answer.is_done:
                await self.keeper.advance(record, Phase.EVICTED, reason="Accepted")
                self._note(pod, record, move)
                return True
            self._verification.withdraw(record)
            self._release(record)
            self._sending[record.key].clear()
            await self._refused(record, answer)
            return False
        finally:
            for outcome in self._sending.pop(record.key):
                self._outcomes.put_nowait(outcome)

    async def _ask(self, pod: Pod) -> Answer:
        """Ask the Eviction API; again while no answer tells whether the pod goes.

        The uid makes that safe: this pod goes at most once, and a later one of its name never.
        """
        answer = await self._evictor.evict(pod)
        for pause_s in ASK_AGAIN_S:
            if answer.verdict not in (Verdict.UNKNOWN, Verdict.BUSY):
                return answer
            await self._clock.sleep(max(pause_s, answer.retry_after_s))
            present = self._cache.cluster.pods.get(pod.uid)
            if present is None or present.is_terminating:
                return Answer(Verdict.DONE)  # taken, though the answer was lost
            answer = await self._evictor.evict(pod)
        return answer

    async def _refused(self, record: Record, answer: Answer) -> None:
        match answer.verdict:
            case Verdict.BLOCKED:
                await self.keeper.advance(
                    record,
                    Phase.BLOCKED,
                    reason="PodDisruptionBudget",
                    message=answer.message,
                    blocked_by=answer.budget.partition("/")[2] or None,
                )
            case Verdict.GONE | Verdict.CONFLICT:
                await self._cancel(record, "Gone", f"the pod is another one by now: {answer.message}")
            case _:
                await self.keeper.advance(
                    record, Phase.FAILED, reason="EvictionFailed", message=answer.message
                )

    async def _cancel(self, record: Record, reason: str, message: str) -> None:
        await self.keeper.advance(record, Phase.CANCELLED, reason=reason, message=message)

    # ------------------------------------------------------------------------------------------------

    def _circumstances(self, asked: Move | None = None) -> Circumstances:
        in_flight = self._verification.in_flight()
        if asked is not None:
            in_flight.pop(asked.workload.uid, None)
        return Circumstances(
            now=datetime.fromtimestamp(self._clock.now(), UTC),
            unplaced=tuple(self._unplaced_infos()),
            in_flight=in_flight,
        )

    def _unplaced_infos(self) -> list[PodInfo]:
        infos = []
        for pod in self._unplaced.values():
            if self._cache.node_of(pod.uid):
                continue
            try:
                infos.append(self._cache.info(pod))
            except QuantityError:
                continue  # reported when it came in
        return infos

    def _note(self, pod: Pod, record: Record, move: Move) -> None:
        """Events on the pod and on its owner: the story where people look for it."""
        target = f", expected on {move.target}" if move.target else ""
        text = f"{move.strategy}: {move.reason}; evicted from {move.source}{target} (record {record.name})"
        self._recorder.record(Note(pod_reference(pod), "Evicted", "Evicting", text, reporter=REPORTER))
        owner = pod.metadata.controller
        if owner is not None:
            reference: dict[str, str] = {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "namespace": pod.namespace,
                "name": owner.name,
                "uid": owner.uid,
            }
            self._recorder.record(
                Note(reference, "PodEvicted", "Evicting", f"pod {pod.name}: {text}", reporter=REPORTER)
            )

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
