"""PolicyRuns carry out one run of a policy: inputs, plan, what its mode does with that, status.

The plan is made on a fork, off the event loop; every move is judged again in the present cluster right before
its eviction, and no eviction is sent without a record that says so. Runs of one policy follow one another,
those of several overlap.
"""

import asyncio
from collections.abc import Mapping

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.planning.moves import EvictionPlan
from plimsoll.planning.planners import make_plan
from plimsoll.planning.upstream.planner import upstream_run
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.degraded_reasons import DegradedReasons
from plimsoll.rebalancing.runs.inputs import RunInput, RunInputs
from plimsoll.rebalancing.runs.modes import PlanModes
from plimsoll.rebalancing.runs.plan_runner import PlanRunner
from plimsoll.rebalancing.runs.statistics import RunStatistics
from plimsoll.rebalancing.runs.status import RunReports, RunResult, RunTotals
from plimsoll.rebalancing.runs.upstream_run import UpstreamEnforcement
from plimsoll.timing.task_sets import PolicyLocks


class PolicyRuns:
    """Runs policies.

    Args:
        policies: Those that rebalance, keyed by name, at any moment.
        planning: Makes plans off the event loop.
        inputs: What runs read.
        modes: What becomes of their plans.
        upstream: Makes the moves of planner Upstream while they are planned.
        reports: Their statuses.
        statistics: Their metrics.
        degraded: What keeps policies from moving pods.
    """

    def __init__(
        self,
        policies: Mapping[str, SchedulingPolicy],
        planning: PlanRunner,
        inputs: RunInputs,
        modes: PlanModes,
        upstream: UpstreamEnforcement,
        reports: RunReports,
        statistics: RunStatistics,
        degraded: DegradedReasons,
    ) -> None:
        self._policies = policies
        self._planning = planning
        self._inputs = inputs
        self._modes = modes
        self._upstream = upstream
        self._reports = reports
        self._statistics = statistics
        self._degraded = degraded
        self._locks = PolicyLocks()

    async def fall_due(self, name: str) -> None:
        """Run a policy; a run that breaks harms its own policy only, and its status says so."""
        policy, problem = self._policies.get(name), ""
        due = self._statistics.fell_due(name)
        self._degraded.run_begun(name)
        try:
            async with self._locks.of(name):
                self._statistics.begun(name)
                result = await self.rebalance(name)
        except asyncio.CancelledError:
            raise
        except TimeoutError as exc:
            result, problem = RunResult.TIMED_OUT, str(exc) or "an answer was not there in time"
        except Exception as exc:  # noqa: BLE001 - whatever a strategy or the server did, the next run comes
            result, problem = RunResult.CRASHED, repr(exc)
        self._statistics.finished(name, result)
        if policy is not None:
            await self._reports.broke_off(policy, due, result, problem)
        self._degraded.run_ended(name, result, problem)

    def skip(self, name: str) -> None:
        """A run was due while the one before it was under way."""
        self._degraded.run_skipped(name)
        self._statistics.skipped(name)

    async def rebalance(self, name: str) -> RunResult:
        """Plan and carry out one run of a policy; how it ended.

        Raises:
            TimeoutError: The plan was not ready in time.
            Exception: What else broke it.
        """
        policy = self._policies.get(name)
        if policy is None or policy.spec.rebalancing is None or self._planning.obstacle(policy):
            return RunResult.SKIPPED
        inputs = await self._inputs.gather(policy)
        totals = RunTotals(policy, inputs.started, EvictionPlan((), ()), f"{name}/{inputs.started:.6f}")
        try:
            with self._statistics.strategies(name):
                await self._plan(totals, inputs)
        except TimeoutError:
            self._degraded.look_back(name, inputs.memory)
            raise
        made = totals.plan
        self._inputs.learn(name, made)
        self._statistics.planned(name, inputs.rebalancing, made)
        self._reports.begin(totals)
        await self._modes.carry_out(totals, inputs.memory)
        await self._reports.end(totals)
        await self._degraded.review(policy, inputs, made.failures)
        return RunResult.FAILED if made.failures else RunResult.SUCCEEDED

    async def _plan(self, totals: RunTotals, inputs: RunInput) -> None:
        """Make the plan; planner Upstream in mode Enforce evicts while it plans."""
        read = (inputs.rebalancing, inputs.cluster, inputs.context)
        if inputs.rebalancing.planner is Planner.UPSTREAM and totals.spec.mode is Mode.ENFORCE:
            self._reports.begin(totals)
            run, limit_s = upstream_run(*read), plan_runner.PLANNING_S
            await self._upstream.carry_out(totals, run, inputs.memory, limit_s)
        else:
            totals.plan = await self._planning.make(
                totals.policy, lambda: make_plan(*read), plan_runner.PLANNING_S
            )
