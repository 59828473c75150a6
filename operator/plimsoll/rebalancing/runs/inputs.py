"""RunInputs gather what a run of a policy reads: its config, a fork of the cluster, usage, past moves."""

from dataclasses import dataclass, replace

from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.history import Memory
from plimsoll.planning.moves import EvictionPlan, PlanningContext, RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.breakers.stop_button import bounded
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.events import HoldUpsChanged
from plimsoll.rebalancing.planning_context import PlanningContexts
from plimsoll.rebalancing.records.history import memory_of, touched_nodes
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.policy_configs import PolicyConfigs
from plimsoll.rebalancing.usage import UsageCollector
from plimsoll.rebalancing.ways import SurgeWay


@dataclass(frozen=True, slots=True)
class RunInput:
    """What one run reads.

    Attributes:
        started: Seconds since the epoch.
        rebalancing: What the policy wants, within what the breakers allow.
        cluster: A fork.
        context: What surrounds the placed pods.
        memory: What past moves teach.
    """

    started: float
    rebalancing: RebalancingConfig
    cluster: Cluster
    context: PlanningContext
    memory: Memory


class RunInputs:
    """Gathers the inputs of runs.

    Args:
        book: The cluster, and the room that is reserved in it.
        keeper: The records.
        collector: Actual usage.
        configs: What policies want.
        contexts: What surrounds the placed pods.
        surges: The Deployments.
        executor: The moves under way.
        clock: Time.
    """

    def __init__(
        self,
        book: ReservationBook,
        keeper: EvictionRecordStore,
        collector: UsageCollector,
        configs: PolicyConfigs,
        contexts: PlanningContexts,
        surges: SurgeWay,
        executor: MoveExecutor,
        clock: Clock,
    ) -> None:
        self._book = book
        self._keeper = keeper
        self._collector = collector
        self._configs = configs
        self._contexts = contexts
        self._surges = surges
        self._executor = executor
        self._clock = clock
        self._over: dict[str, dict[tuple[str, str], int]] = {}  #: runs in a row, by policy

    async def gather(self, policy: SchedulingPolicy) -> RunInput:
        """What a run of the policy that begins now reads."""
        name, breakers = policy.metadata.name, self._configs.breakers
        spec, records = policy.spec.rebalancing or RebalancingSpec(), self._keeper.known.values()
        await breakers.probe.refresh(immediately=True)
        started = self._clock.now()
        self._contexts.learn(name, await self._collector.measure(spec, touched_nodes(records, started)))
        memory = memory_of(records, started, breakers.access.granted)
        breakers.displacements.look(name)
        self._executor.post(HoldUpsChanged())
        rebalancing = self._configs.configured(policy)
        resting, may_try = memory.rest(name)
        if resting:  # none for a while, then one
            rebalancing = bounded(rebalancing, "rest after fruitless moves", int(may_try))
        deployments = await self._surges.deployments() if rebalancing.surge else None
        is_upstream = rebalancing.planner is Planner.UPSTREAM  # descheduler does not see nominations
        fork = self._book.cache.cluster.fork() if is_upstream else self._book.claimed()
        context = self._contexts.of(name, memory, deployments=deployments)
        recent = context.recent + self._executor.machine.left(name)
        context = replace(context, over_for=self._over.get(name, {}), recent=recent)
        return RunInput(started, rebalancing, fork, context, memory)

    def learn(self, name: str, plan: EvictionPlan) -> None:
        """Count the runs in a row in which strategies found nodes over-used."""
        before = self._over.get(name, {})
        self._over[name] = {
            (strategy, node): before.get((strategy, node), 0) + 1
            for strategy, found in plan.classes
            for node in found.overutilized
        }

    def forget(self, name: str) -> None:
        """The policy rebalances no longer."""
        self._over.pop(name, None)
