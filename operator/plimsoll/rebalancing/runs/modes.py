"""Carries out plans by the policy's mode: predicts, proposes or makes their moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.history import MoveHistory
from plimsoll.rebalancing.execution.feeder import MoveFeeder
from plimsoll.rebalancing.records.retention import Retention
from plimsoll.rebalancing.runs.predictions import Predictions
from plimsoll.rebalancing.runs.proposals import Proposals
from plimsoll.rebalancing.runs.status import RunTotals


@dataclass(eq=False)
class PlanModes:
    """Carries out plans."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    retention: Retention  #: limits the number of finished records
    predictions: Predictions
    proposals: Proposals
    feeder: MoveFeeder

    async def carry_out(
        self, totals: RunTotals, memory: MoveHistory, cluster: Cluster, *, is_held: bool
    ) -> None:
        """Carry out the plan of a run on a ``cluster``; ``memory`` is that of the run.

        A plan that is held moves nothing, and outdates no prediction, proposal or answer.

        Raises:
            Exception: What the judgement of a move raised; the rest of the run is dropped.
        """
        name, spec = totals.name, totals.spec
        await self.retention.tidy_policy(name, spec.records)
        if is_held:
            return
        if spec.mode is Mode.DRY_RUN:
            await self.predictions.write(totals)
        elif spec.mode is Mode.APPROVE:
            await self.proposals.propose(totals)
        elif Planner(spec.planner) is not Planner.UPSTREAM:  # its moves were made while they were planned
            await self._enforce(totals, memory, cluster)

    async def _enforce(self, totals: RunTotals, memory: MoveHistory, cluster: Cluster) -> None:
        moves = enumerate(totals.plan.moves)
        with self.feeder.remembering(totals.cycle, memory, cluster):
            for _, group in groupby(moves, lambda each: each[1].bundle or each[0]):
                if self.policies.get(totals.name) is not totals.policy:
                    return  # changed, suspended or deleted meanwhile: the rest is dropped
                together = [move for _, move in group]
                await self.feeder.feed(together, totals.name, Mode.ENFORCE, totals.cycle)
