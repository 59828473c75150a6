"""Carries out one run of a policy: inputs, plan, execution by mode, status.

The plan is made on a fork, off the event loop. Every move is judged again in the present cluster right before
its eviction, and no eviction is sent without a record. Runs of one policy do not overlap; runs of several
policies may.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakValueDictionary

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.planning.moves import EvictionPlan, HoldReason
from plimsoll.planning.planners import begin_upstream_run, make_plan
from plimsoll.ports.clock import ComputationFailed, ComputationLost
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.degraded_reasons import DegradedReasons
from plimsoll.rebalancing.runs.inputs import RunInput, RunInputs
from plimsoll.rebalancing.runs.kept_findings import KeptFindings
from plimsoll.rebalancing.runs.modes import PlanModes
from plimsoll.rebalancing.runs.plan_parcel import PlanParcel
from plimsoll.rebalancing.runs.plan_runner import PlanCalledOff, PlanRunner
from plimsoll.rebalancing.runs.refusal_examples import abridged
from plimsoll.rebalancing.runs.statistics import RunStatistics
from plimsoll.rebalancing.runs.status import RunReports, RunResult, RunTotals
from plimsoll.rebalancing.runs.upstream_run import UpstreamEnforcement

#: Seconds until the next run of some policy above which the kept findings are dropped.
KEEP_S = 3_600.0


@dataclass(eq=False)
class PolicyRuns:
    """Runs policies."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    planning: PlanRunner  #: makes plans off the event loop
    inputs: RunInputs  #: gathers the input of runs
    modes: PlanModes  #: carries out their plans
    upstream: UpstreamEnforcement  #: makes the moves of planner Upstream while they are planned
    reports: RunReports
    statistics: RunStatistics
    degraded: DegradedReasons  #: what keeps policies from moving pods
    lacking: set[str] = field(default_factory=set, init=False)  #: policies whose latest run lacked rights
    _kept: KeptFindings = field(default_factory=KeptFindings, init=False)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)

    async def fall_due(self, name: str) -> None:
        """Run a policy; an error affects only this policy, and its status reports it."""
        policy, problem = self.policies.get(name), ""
        due = self.statistics.fell_due(name)
        self.degraded.run_begun(name)
        try:
            async with self._locks.setdefault(name, asyncio.Lock()):
                self.statistics.begun(name)
                result = await self.rebalance(name)
        except asyncio.CancelledError:
            raise
        except TimeoutError as exc:
            result, problem = RunResult.TIMED_OUT, str(exc) or "an answer was not there in time"
        except PlanCalledOff:
            result = RunResult.SKIPPED
        except (ComputationFailed, ComputationLost) as exc:
            result, problem = RunResult.CRASHED, str(exc)
        except Exception as exc:  # noqa: BLE001 - whatever a strategy or the server did, the next run comes
            result, problem = RunResult.CRASHED, repr(exc)
        self.statistics.finished(name, result)
        if policy is not None:
            await self.reports.broke_off(policy, due, result, problem)
        self.degraded.run_ended(name, result, problem)

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances."""
        self.lacking.discard(name)
        self._let_go()

    def _let_go(self) -> None:
        """Drop findings if the next run is far off, so that deleted pods do not stay in memory until then."""
        if not self.statistics.runs_within(KEEP_S):
            self._kept.clear()

    def skip(self, name: str) -> None:
        """Record a run that was due while the earlier one was under way."""
        self.degraded.run_skipped(name)
        self.statistics.skipped(name)

    async def rebalance(self, name: str) -> RunResult:
        """Plan and carry out one run of a policy; returns its result.

        Raises:
            TimeoutError: The plan was not ready in time.
            Exception: Any other error of the run.
        """
        policy = self.policies.get(name)
        if policy is None or policy.spec.rebalancing is None or self.planning.obstacle(policy):
            return RunResult.SKIPPED
        inputs = await self.inputs.gather(policy)
        totals = RunTotals(policy, inputs.started, EvictionPlan((), ()), f"{name}/{inputs.started:.6f}")
        try:
            with self.statistics.strategies(name):
                await self._plan(totals, inputs)
        except TimeoutError:
            self.degraded.look_back(name, inputs.memory)
            raise
        self._let_go()
        made = totals.plan
        self.inputs.learn(name, inputs, made)
        self.statistics.planned(name, inputs.rebalancing, made)
        self.reports.begin(totals)
        hold = inputs.rebalancing.hold
        is_held = hold is not None
        self.lacking.discard(name)
        if hold is not None and hold.reason == HoldReason.NOT_ALLOWED:
            self.lacking.add(name)
        await self.modes.carry_out(totals, inputs.memory, inputs.cluster, is_held=is_held)
        await self.reports.end(totals)
        await self.degraded.review(policy, inputs, made.failures)
        return RunResult.FAILED if made.failures else RunResult.SUCCEEDED

    async def _plan(self, totals: RunTotals, inputs: RunInput) -> None:
        """Make the plan; planner Upstream in mode Enforce evicts while it plans."""
        read = (inputs.rebalancing, inputs.cluster, inputs.context)
        parcel = PlanParcel(totals.spec.mode, inputs.cluster, inputs.context.unplaced)
        is_held = inputs.rebalancing.hold is not None
        if (
            inputs.rebalancing.planner is Planner.UPSTREAM
            and totals.spec.mode is Mode.ENFORCE
            and not is_held
        ):
            self.reports.begin(totals)
            run, limit_s = begin_upstream_run(*read), plan_runner.PLANNING_S
            await self.upstream.carry_out(totals, run, inputs.memory, parcel, limit_s)
        else:
            totals.plan = await self.planning.make_apart(
                totals.policy,
                lambda: abridged(make_plan(*read)),
                parcel,
                plan_runner.PLANNING_S,
                partial(self._kept.bring_up, inputs.cluster) if parcel.pods >= plan_runner.FEW_PODS else None,
            )
