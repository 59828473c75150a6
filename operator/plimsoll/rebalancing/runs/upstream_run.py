"""Runs planner Upstream with evictions: the API server responds to each before the next one is decided.

A run reads the cluster as of its start, plus the results of its own evictions. A pod whose eviction was
accepted is read as the watch shows it after the response. While the watch lags, it is taken to be
terminating, or gone if it has no grace period to wait for. A refused eviction counts against no limit, and
the next candidate is tried (docs/adr/0022).

As for every planner, an eviction is recorded before it is sent, the pod must exist in the present cluster,
and budgets that have opened since the run began apply.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

import msgspec

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.pending_pods import PendingPods
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import EvictionPlan, HoldReason, Move
from plimsoll.planning.strategy_run import PlanBudget
from plimsoll.planning.upstream.cycle import EvictionAnswer, EvictionResult
from plimsoll.planning.upstream.planner import UpstreamRun
from plimsoll.ports.clock import Ask, Clock, NoRoomForProcess
from plimsoll.rebalancing.execution.feeder import MoveFeeder
from plimsoll.rebalancing.moves.machine import MoveMachine
from plimsoll.rebalancing.moves.outcomes import POLICY_CHANGED
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.rebalancing.runs.plan_runner import PlanCalledOff, PlanRunner
from plimsoll.rebalancing.runs.refusal_examples import abridged
from plimsoll.rebalancing.runs.status import RunTotals
from plimsoll.records.history import DISRUPTION_BUDGET
from plimsoll.records.record import Record

#: Number of refused evictions in a row that ends a run; descheduler tries every candidate.
REFUSALS_IN_A_ROW = 100

#: Results of evictions that are not made.
_NOT_EVICTED = (EvictionResult.REFUSED, EvictionResult.CLOSED)

#: Reasons of records after which a run evicts no more.
_FINAL = (POLICY_CHANGED.reason, LimitLevel.BUDGET.value, *HoldReason)


@dataclass(eq=False)
class UpstreamEnforcement:
    """Carries out runs of planner Upstream."""

    #: Policies that rebalance, at any moment; keys are their names.
    policies: Mapping[str, SchedulingPolicy]
    keeper: EvictionRecordStore
    feeder: MoveFeeder  #: makes each move
    machine: MoveMachine  #: knows the moves
    pending: PendingPods
    objects: ClusterObjects  #: the PodDisruptionBudgets
    planning: PlanRunner  #: decides off the event loop
    clock: Clock

    async def carry_out(
        self, totals: RunTotals, run: UpstreamRun, memory: MoveHistory, parcel: PlanParcel, within_s: float
    ) -> None:
        """Decide and evict until the run has no more candidates; its evictions and plan go into the totals.

        A long run is decided in one fork of the process, a short one in threads.

        Raises:
            TimeoutError: A decision was not made in time; earlier evictions stand.
            ComputationFailed: A decision raised in the fork.
            ComputationLost: The fork has ended without a decision.
            Exception: What a decision raised in a thread.
        """
        policy, evictions, is_apart = totals.policy, _Evictions(totals, within_s), False
        budget = PlanBudget(self.planning.cpu_s)
        with self.feeder.remembering(totals.cycle, memory):
            async with AsyncExitStack() as stack:
                decide = partial(self._decided_in_thread, run, budget, evictions)
                if (forks := self.planning.forks_for(policy, parcel)) is not None:
                    with suppress(NoRoomForProcess):
                        conversation = forks.conversation(partial(_decision, run, budget, parcel))
                        ask = await stack.enter_async_context(conversation)
                        decide, is_apart = partial(self._decided_in_fork, parcel, ask, evictions), True
                with suppress(PlanCalledOff):  # the next run uses the policy's new spec
                    await self._go(decide, evictions)
        self.planning.learn(policy, parcel, within_s - evictions.left_s, is_apart=is_apart)

    async def _go(self, decide: "_Decide", evictions: "_Evictions") -> None:
        move = await decide(None)
        while move is not None:
            answer = await self._evict(move, evictions)
            if not answer.is_repeat and answer.result not in _NOT_EVICTED:
                evictions.made.append(move)
            move = await decide(answer)

    async def _decided_in_thread(
        self, run: UpstreamRun, budget: PlanBudget, evictions: "_Evictions", answer: EvictionAnswer | None
    ) -> Move | None:
        """Take one step of the run in a thread; its time is subtracted from the limit."""
        step = run.begin if answer is None else partial(run.answer, answer)
        began = self.clock.monotonic()
        try:
            return await self.planning.make(
                evictions.totals.policy, partial(budget.within, step), evictions.left_s
            )
        finally:
            evictions.left_s -= self.clock.monotonic() - began
            evictions.totals.plan = run.plan  # for a status that is written meanwhile

    async def _decided_in_fork(
        self, parcel: PlanParcel, ask: Ask, evictions: "_Evictions", answer: EvictionAnswer | None
    ) -> Move | None:
        """The same in the fork, which reports at the end of the run why there are no more."""
        totals, began = evictions.totals, self.clock.monotonic()
        totals.plan = EvictionPlan(tuple(evictions.made), ())
        reply = await self.planning.make_in_fork(totals.policy, ask(parcel.pack(answer)), evictions.left_s)
        evictions.left_s -= self.clock.monotonic() - began
        move, plan = cast("tuple[Move | None, EvictionPlan | None]", parcel.unpack(reply))
        totals.plan = plan or totals.plan
        return move

    async def _evict(self, move: Move, evictions: "_Evictions") -> EvictionAnswer:
        """Evict a pod; returns why it stays, if it does."""
        totals, policy = evictions.totals, evictions.totals.policy
        uid = move.pod.uid
        if self.policies.get(totals.name) is not policy:
            return EvictionAnswer(
                EvictionResult.CLOSED, Refusal(POLICY_CHANGED.reason, POLICY_CHANGED.message)
            )
        if uid in evictions.accepted:
            result = self._result(move)
            found = EvictionResult.REFUSED if result is EvictionResult.GONE else result
            return EvictionAnswer(found, is_repeat=True)
        if uid in evictions.refused:
            return EvictionAnswer(EvictionResult.REFUSED, evictions.refused[uid])
        if evictions.refused_in_a_row >= REFUSALS_IN_A_ROW:
            story = f"{REFUSALS_IN_A_ROW} evictions in a row were refused; the next run goes on"
            return EvictionAnswer(EvictionResult.CLOSED, Refusal("TooManyRefusals", story))
        known = self._known_refusal(move, evictions)
        if known is not None:
            return EvictionAnswer(EvictionResult.REFUSED, known)
        (key,) = await self.feeder.feed([move], totals.name, Mode.ENFORCE, totals.cycle)
        state, record = self.machine.moves.get(key), self.keeper.known.get(key)
        if state is not None and state.begun:
            evictions.accepted.add(uid)
            evictions.refused_in_a_row = 0
            return EvictionAnswer(self._result(move))
        evictions.refused_in_a_row += 1
        if record is None:
            refusal = Refusal("NotRecorded", "the record could not be written, so nothing was sent")
        else:
            refusal = self._told(record, evictions)
        evictions.refused[uid] = refusal
        is_final = refusal.reason in _FINAL
        return EvictionAnswer(EvictionResult.CLOSED if is_final else EvictionResult.REFUSED, refusal)

    def _result(self, move: Move) -> EvictionResult:
        """The state of a pod whose eviction was accepted."""
        present = self.pending.find(move.pod.uid)
        if present is None:
            return EvictionResult.GONE
        if present.is_terminating:
            return EvictionResult.TERMINATING
        pod = present.pod
        leaves_now = pod.is_terminal or not pod.node_name or pod.spec.termination_grace_period_seconds == 0
        return EvictionResult.GONE if leaves_now else EvictionResult.TERMINATING

    def _told(self, record: Record, evictions: "_Evictions") -> Refusal:
        """Why a move was not made, according to its record."""
        status = record.status
        reason = status.reason or "NotEvicted"
        if record.phase is Phase.BLOCKED and reason == DISRUPTION_BUDGET and status.blocked_by:
            evictions.budgets.add(f"{record.namespace}/{status.blocked_by}")
        return Refusal(reason, status.message or reason)

    def _known_refusal(self, move: Move, evictions: "_Evictions") -> Refusal | None:
        """Why a PodDisruptionBudget that has refused in this run would refuse again, None if it may not."""
        if not evictions.budgets:
            return None
        ledger = BudgetLedger(self.objects.budgets.values())
        covering = {budget.key for budget in ledger.over(move.pod)}
        refusal = ledger.refusal(move.pod) if covering & evictions.budgets else None
        return None if refusal is None else Refusal(DISRUPTION_BUDGET, refusal.message)


def _decision(run: UpstreamRun, budget: PlanBudget, parcel: PlanParcel, question: bytes) -> bytes:
    """The fork's reply: the next move, or the plan after the last one."""
    answer = cast("EvictionAnswer | None", parcel.unpack(question))
    move = budget.within(run.begin if answer is None else partial(run.answer, answer))
    return parcel.pack((move, None if move is not None else abridged(run.plan)))


_Decide: TypeAlias = Callable[[EvictionAnswer | None], Awaitable[Move | None]]
"""Takes the answer to the latest move, None at the beginning; the next move, if any."""


class _Evictions(msgspec.Struct):
    """The evictions of a run so far.

    Attributes:
        totals: The run's totals.
        left_s: Seconds that are left for further decisions.
        accepted: Uids of pods whose eviction was accepted.
        refused: Why pods stay whose eviction was refused, by uid; not tried again in the run.
        budgets: Keys of PodDisruptionBudgets that have refused.
        made: The moves with accepted evictions.
        refused_in_a_row: Number of refusals since the last accepted eviction.
    """

    totals: RunTotals
    left_s: float
    accepted: set[str] = msgspec.field(default_factory=set)
    refused: dict[str, Refusal] = msgspec.field(default_factory=dict)
    budgets: set[str] = msgspec.field(default_factory=set)
    made: list[Move] = msgspec.field(default_factory=list)
    refused_in_a_row: int = 0
