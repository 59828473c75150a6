"""Gathers the input of a policy's run: its config, a fork of the cluster, usage, past moves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.framework.descheduling.measurements import Measurements, Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.context import touched_nodes
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.moves import EvictionPlan, HoldReason, PlanningContext, RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.events import HoldUpsChanged
from plimsoll.rebalancing.planning_context import PlanningContexts
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.policy_configs import PolicyConfigs
from plimsoll.rebalancing.ways import SurgeWay
from plimsoll.records.history import memory_of, sent_moves
from plimsoll.records.over_used_rounds import OverUsedRounds
from plimsoll.usage.sources import UsageCollector


class RunInput(msgspec.Struct, frozen=True):
    """The input of one run.

    Attributes:
        started: Seconds since the epoch.
        rebalancing: The policy, limited by the breakers.
        cluster: A fork.
        context: The input in addition to the placed pods.
        memory: The memory of past moves.
    """

    started: float
    rebalancing: RebalancingConfig
    cluster: Cluster
    context: PlanningContext
    memory: MoveHistory

    @property
    def halted(self) -> str:
        """Why nothing is moved because of the nodes' conditions, "" if that is not the reason."""
        hold = self.rebalancing.hold
        return hold.message if hold is not None and hold.reason == HoldReason.NODES_UNHEALTHY else ""


@dataclass(eq=False)
class RunInputs:
    """Gathers the inputs of runs."""

    book: ReservationBook  #: the cluster and its reservations
    keeper: EvictionRecordStore
    collector: UsageCollector
    configs: PolicyConfigs
    contexts: PlanningContexts  #: the input in addition to the placed pods
    surges: SurgeWay
    executor: MoveExecutor
    clock: Clock
    #: by policy
    _over: dict[str, OverUsedRounds] = field(default_factory=dict, init=False)

    async def gather(self, policy: SchedulingPolicy) -> RunInput:
        """Gather the input of a run that begins now."""
        name, breakers = policy.metadata.name, self.configs.breakers
        spec = policy.spec.rebalancing or RebalancingSpec()
        started = self.clock.now()
        touched = touched_nodes(sent_moves(self.keeper.known.values()), started)
        self.contexts.learn(name, await self._measured(spec, touched))
        breakers.displacements.look(name)
        self.executor.post(HoldUpsChanged())
        rebalancing = self.configs.configured(policy)
        deployments = await self.surges.deployments() if rebalancing.surge else None
        # From here on nothing is awaited: a move that ended between two of these readings would be in none.
        memory = memory_of(self.keeper.known.values(), started, breakers.access.granted)
        rebalancing = rebalancing.rested(memory, name)
        is_upstream = rebalancing.planner is Planner.UPSTREAM  # descheduler does not see nominations
        fork = self.book.cache.cluster.fork() if is_upstream else self.book.claimed()
        rounds = self._over.get(name, OverUsedRounds()).before(rebalancing.strategies, fork)
        due = self.executor.machine.left(name)
        context = self.contexts.of(name, memory, None, deployments, rounds, due)
        return RunInput(started, rebalancing, fork, context, memory)

    async def _measured(self, spec: RebalancingSpec, touched: Mapping[str, float]) -> Measurements:
        nodes = {node.name: node for node in self.book.cache.cluster.nodes}
        return await self.collector.measure(spec, nodes, touched)

    def learn(self, name: str, found: RunInput, plan: EvictionPlan) -> None:
        """Count the runs in a row in which strategies found nodes over-used."""
        rounds = self._over.setdefault(name, OverUsedRounds())
        rounds.learn(plan.classes, found.rebalancing.strategies, found.cluster)

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances."""
        self._over.pop(name, None)
