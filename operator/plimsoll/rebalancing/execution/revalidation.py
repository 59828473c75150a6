"""Decides whether a planned move still holds in the present cluster, right before it is sent.

In a large cluster it is judged in a thread, on a copy of the cluster, one move at a time. An accepted move is
judged again if its nodes, their reservations, or an object or budget have changed meanwhile. Nothing is
awaited between that comparison and the reservation of the target, so moves of several policies do not take
the same room. Further reasons against a move are moves of other policies under way, a budget that has closed
since the plan, and a way of leaving other than the recorded one.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.framework.descheduling.context import bound_to_gang
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.gang_members import GangMembers, GangUnits
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import Holder, HolderKind, PodInfo
from plimsoll.model.names import PolicyName, RecordKey
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.limits import NO_CEILING, LimitLevel, Limits, Tally, Workload
from plimsoll.planning.moves import Move, PlanningContext, RebalancingConfig, workload_of
from plimsoll.planning.planners import ask_again, still_goes
from plimsoll.planning.populations import Populations
from plimsoll.planning.rebalancing_rules import fewest_an_hour
from plimsoll.planning.surges import Deployments
from plimsoll.ports.clock import Clock, Computer
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteResult
from plimsoll.rebalancing.execution.cluster_copy import ClusterCopy, ClusterImage
from plimsoll.rebalancing.moves.events import Event, Revalidated, RevalidationRefused
from plimsoll.rebalancing.moves.instructions import Revalidate
from plimsoll.rebalancing.moves.outcomes import (
    NOT_REVALIDATED,
    OTHERWISE,
    POLICY_CHANGED,
    cancelled,
    unlike,
)
from plimsoll.rebalancing.moves.state import NOT_ANNOUNCED, EvictionMethod, Landing, MoveStage
from plimsoll.rebalancing.planning_context import PlanningContexts
from plimsoll.rebalancing.records.drafts import surge_reference
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.history import is_victim, memory_of, was_sent
from plimsoll.records.record import Record

#: Number of placed pods from which moves are judged in a thread; with fewer, it takes a few milliseconds.
MANY_PODS = 1_000

#: Judgements in a thread; if the nodes change each time, the last one is made on the event loop.
ROUNDS = 3


@dataclass(slots=True, eq=False, kw_only=True)
class MoveRevalidator:
    """Judges moves again."""

    book: ReservationBook
    keeper: EvictionRecordStore
    context: PlanningContexts
    standing: Callable[
        [Pod], Awaitable[WriteResult]
    ]  #: as :meth:`plimsoll.ports.pod_writes.PodEviction.standing`
    deployments_of: Callable[[Move], Awaitable[Deployments]]  #: reads the Deployment of a surge
    clock: Clock
    configured: Callable[[str], RebalancingConfig | None]  #: None for a policy that no longer rebalances
    spec_of: Callable[[str], RebalancingSpec | None]  #: the same policy as its spec
    observer: Observer
    computer: Computer  #: runs each function in a thread of its own
    #: by run under way, its memory, and until the first judgement the cluster that it planned on
    _memories: dict[str, MoveHistory] = field(default_factory=dict, init=False)
    _starts: dict[str, Cluster] = field(default_factory=dict, init=False)
    _problems: dict[str, Exception] = field(default_factory=dict, init=False)  #: of judgements, by record
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _waiting: int = field(default=0, init=False)  #: number of moves that wait for their judgement
    _copy: ClusterCopy | None = field(default=None, init=False)

    @contextmanager
    def remembering(self, run: str, memory: MoveHistory, cluster: Cluster | None = None) -> Iterator[None]:
        """Within this context, judge the run's moves with the memory from its beginning.

        ``cluster`` is the fork that the run planned on; it is only read.
        """
        self._memories[run] = memory
        if cluster is not None:
            self._starts[run] = cluster
        try:
            yield
        finally:
            self._memories.pop(run, None)
            self._starts.pop(run, None)
            self._let_go()

    def raise_problem_of(self, keys: Sequence[RecordKey]) -> None:
        """Raise the first exception that judging these records has raised, and forget all of theirs."""
        problems = [self._problems.pop(key, None) for key in keys]
        for problem in filter(None, problems):
            raise problem

    async def judge(self, order: Revalidate) -> Event:
        """Judge whether and how a move may still be made."""
        record = self.keeper.known.get(order.key)
        if record is None:
            return RevalidationRefused(order.key, cancelled("RecordDeleted", "the record was deleted"))
        try:
            found = await self._judged(order, record)
        except Exception as exc:  # noqa: BLE001 - whatever a strategy or plugin did, the record is closed
            if order.run in self._memories:
                self._problems[order.key] = exc
            else:
                self.observer.failed(f"judging the move of record {order.key}", repr(exc))
            cause = cancelled(NOT_REVALIDATED, f"the move could not be judged again: {exc!r}")
            return RevalidationRefused(order.key, cause)
        if isinstance(found, Landing):
            return RevalidationRefused(order.key, found)
        if found.surge is not None:
            return Revalidated(order.key, found, EvictionMethod.SURGE)
        spec = self.spec_of(record.spec.policy)
        timeout_s = float("inf") if spec is None else float(spec.deferred_eviction_timeout_seconds)
        return Revalidated(order.key, found, EvictionMethod.EVICT, timeout_s)

    async def _judged(self, order: Revalidate, record: Record) -> Move | Landing:
        move, evicted = order.move, order.evicted
        policy = record.spec.policy
        if self.spec_of(policy) is None:
            return POLICY_CHANGED
        if move.surge is not None:  # the evictor reads the pod by itself
            standing = await self.standing(self.book.cache.cluster.pods.get(move.pod.uid, move.pod).pod)
            if not standing.is_done:
                return unlike(standing)
        deployments = Deployments() if move.surge is None else await self.deployments_of(move)
        found = await self._present(order, policy, deployments)
        if found is None:
            return POLICY_CHANGED
        present, rebalancing = found
        if isinstance(present, Refusal):
            return cancelled(present.reason, present.message)
        clash = self._clash(record, present, rebalancing)
        if clash is not None:
            return cancelled(clash.reason, clash.message)
        if not _is_as_recorded(present, record):
            return OTHERWISE
        return self._closed(rebalancing, evicted) or present

    async def _present(
        self, order: Revalidate, policy: str, deployments: Deployments
    ) -> tuple[Move | Refusal, RebalancingConfig] | None:
        """The planner's present judgement, and the present configuration; None without the policy.

        Nothing is awaited after either.
        """
        move, cluster = order.move, self.book.cache.cluster
        self._waiting += 1
        try:
            async with self._turn:
                for judged in range(ROUNDS + 1):
                    rebalancing, spec = self.configured(policy), self.spec_of(policy)
                    if rebalancing is None:
                        return None
                    if rebalancing.planner is Planner.UPSTREAM:
                        return still_goes(move, rebalancing, cluster), rebalancing
                    memory = self._memories.get(order.run)
                    memory = memory or memory_of(self.keeper.known.values(), self.clock.now())
                    around = self.context.of(policy, memory, move, deployments)
                    around = replace(around, replaced=self.context.machine.replaced(PolicyName(policy)))
                    own = self._own(order.key)
                    # Terminating pods still take their room: a replacement that needs it would not find it.
                    if len(cluster.pods) < MANY_PODS:
                        return ask_again(move, rebalancing, self.book.claimed(own), around), rebalancing
                    image = ClusterImage.of(cluster, self._claims(own))
                    question = self._question(order, rebalancing, around, image)
                    self._copy = None  # a thread that raises or is abandoned may leave it inconsistent
                    if judged == ROUNDS:
                        present, self._copy = question()
                        return present, rebalancing
                    present, self._copy = await self.computer.compute(question)
                    rebalancing = self.configured(policy)  # the stop button may have been pressed meanwhile
                    if rebalancing is None:
                        return None
                    if isinstance(present, Refusal):
                        return present, rebalancing
                    nodes = {move.source, present.target} - {""}
                    stands = image.stands_at(nodes, cluster, self._claims(own))
                    if stands and self.spec_of(policy) is spec:
                        return present, rebalancing
        finally:
            self._waiting -= 1
            self._let_go()
        raise AssertionError("the last round returns")

    def _own(self, key: RecordKey) -> frozenset[str]:
        """Uids of what holds the targets of the move and of others of its bundle that wait.

        The move is judged as if these were free: the bundle was judged in its order, and its moves that wait
        come after this one.
        """
        moves = self.context.machine.open
        bundle = moves[key].bundle if key in moves else ""
        waiting = (each for each in moves.values() if each.bundle == bundle and each.stage in NOT_ANNOUNCED)
        return frozenset(Holder(HolderKind.REPLACEMENT, each.key).uid for each in waiting)

    def _claims(self, without: Container[str]) -> dict[str, dict[str, PodInfo]]:
        """Pods by uid that hold reservations, by node name."""
        found = defaultdict[str, dict[str, PodInfo]](dict)
        for pod, node in self.book.nominator.entries():
            if pod.uid not in without:
                found[node][pod.uid] = pod
        return dict(found)

    def _question(
        self, order: Revalidate, rebalancing: RebalancingConfig, around: PlanningContext, image: ClusterImage
    ) -> Callable[[], tuple[Move | Refusal, ClusterCopy]]:
        """A function that judges the move in that image of the cluster, on the copy that is kept."""
        start, known = self._starts.pop(order.run, None), self._copy

        def ask() -> tuple[Move | Refusal, ClusterCopy]:
            empty = Cluster(self.book.cache.cluster.templates)
            copy = known or ClusterCopy(empty if start is None else start.fork())
            copy.bring_up(image)
            return ask_again(order.move, rebalancing, copy.cluster, around), copy

        return ask

    def _let_go(self) -> None:
        """Drop the copy of the cluster when no run is under way and no move waits for its judgement."""
        if not self._memories and not self._waiting:
            self._copy = None

    def _clash(self, record: Record, move: Move, rebalancing: RebalancingConfig) -> Refusal | None:
        """Why other moves under way leave no room for this one, None if they do."""
        known, policy = self.keeper.known, record.spec.policy
        for each in known.of_pod(move.pod.uid).values():
            if each.is_moving and each.spec.policy != policy:
                story = f"policy {each.spec.policy} moves the pod (record {each.key})"
                return Refusal("AlreadyMoving", story)
        if move.pod.uid in self.book.cache.cluster.index(GangMembers):
            units = self._units()
            unit = units.of(move.pod)
            members = () if unit is None else unit.members
            leaving = {uid for uid in members if any(each.is_moving for each in known.of_pod(uid).values())}
            if (bound := bound_to_gang(move.pod, units, leaving, move.whole)) is not None:
                return bound
        if (full := self._hour_is_full(record, rebalancing)) is not None:
            return full
        moving = [
            each
            for each in known.of_workload(move.workload.key).values()
            if each.is_moving and each.key != record.key
        ]
        others = sum(each.spec.policy != policy for each in moving)
        ceiling = rebalancing.limits.per_workload
        most = ceiling.of(0 if ceiling.percent is None else self._replicas(move)) if others else None
        if most is None or 1 + len(moving) <= most:
            return None
        return Refusal(
            LimitLevel.WORKLOAD.value,
            f"at most {most} at a time of {move.workload.name}, and other policies move {others} of its pods",
        )

    def _hour_is_full(self, record: Record, rebalancing: RebalancingConfig) -> Refusal | None:
        """Why a rule of the namespace allows no more moves in this hour, whichever policies made them."""
        namespace = record.namespace
        rule = fewest_an_hour(rebalancing.limits.rules(namespace))
        if rule is None:
            return None
        committing = [
            key
            for key, state in self.context.machine.open.items()
            if state.stage is MoveStage.COMMITTING and key != record.key
        ]
        known = (self.keeper.known.get(key) for key in committing)
        begun = sum(
            each is not None and each.namespace == namespace and not was_sent(each) and not is_victim(each)
            for each in known
        )
        tally = Tally(
            Limits(per_workload=NO_CEILING, rules=rebalancing.limits.rules),
            lambda _, __: 0,
            hourly={namespace: self.context.hourly().get(namespace, 0) + begun},
        )
        reached = tally.reached("", namespace, Workload("", ""))
        return reached.refusal if reached else None

    def _units(self) -> GangUnits:
        cluster = self.book.cache.cluster
        return GangUnits(cluster.index(GangMembers), cluster.pods.get, cluster.objects)

    def _replicas(self, move: Move) -> int:
        pods = self.book.cache.cluster.pods.values()
        return sum(workload_of(pod) == move.workload for pod in pods)

    def _closed(self, rebalancing: RebalancingConfig, evicted: int) -> Landing | None:
        """The hold, or a budget that opened since the plan and allows no further eviction."""
        hold = rebalancing.hold
        if hold is not None:
            return Landing(Phase.BLOCKED, hold.reason, hold.message)
        populations = Populations(self.book.cache.cluster, rebalancing.evictors, rebalancing.nodes)
        for name, ceiling in rebalancing.limits.budgets:
            most = ceiling.of(0 if ceiling.percent is None else populations(LimitLevel.BUDGET, ""))
            if most is not None and evicted >= most:
                story = f'budget "{name}" of the policy allows no further eviction now'
                return Landing(Phase.BLOCKED, LimitLevel.BUDGET.value, story, blocked_by=name)
        return None


def _is_as_recorded(move: Move, record: Record) -> bool:
    """Whether the judged move uses the recorded way: an eviction, or the same rollout."""
    surge = record.spec.surge
    if surge_reference(move.surge) != surge:
        return False
    return surge is None or move.target == record.spec.target_node
