"""Victims of preemption leave through the Eviction API, each with a record written ahead.

One after the other, those first that a budget covers: the first refusal stops the rest, and no pod is deleted
instead. The pod that needs room keeps its nomination, backs off and is tried again; by then the budget allows
it, or another node is the better candidate.

A victim's record says who needed the room. It is *Settled* when the victim has left, whatever replaces it.
"""

from collections.abc import Callable, Sequence

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.cache import Cache
from plimsoll.framework import PodInfo
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import Move
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.execution.surroundings import ClusterSurroundings
from plimsoll.rebalancing.moves.events import MovePlanned
from plimsoll.rebalancing.moves.outcomes import PREEMPTION
from plimsoll.rebalancing.moves.state import MoveStage
from plimsoll.rebalancing.records.drafts import first_reason, key_of, spec_of
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

#: Stages of a victim whose eviction has been answered.
_ANSWERED = (MoveStage.LEAVING, MoveStage.CLOSED)


class VictimEvictions:
    """Evicts victims.

    Args:
        cache: The cluster.
        keeper: The records.
        executor: Takes the moves.
        around: Told whether the pods that need room still do.
        clock: Time.
        observer: Notified of victims that stay.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        keeper: EvictionRecordStore,
        executor: MoveExecutor,
        around: ClusterSurroundings,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._cache = cache
        self._keeper = keeper
        self._executor = executor
        self._around = around
        self._clock = clock
        self._observer = observer

    async def evict(
        self,
        victims: Sequence[PodInfo],
        pod: PodInfo,
        policy: str,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        """Evict the victims of one pod; whether all of them are on their way.

        Args:
            victims: Pods on one node.
            pod: Who needs the room.
            policy: Whose profile decided.
            is_wanted: Whether the pod still waits; asked before each eviction.
            told: Called with each victim whose eviction was accepted.
        """
        if not self._keeper.is_recovered:
            return False  # a record written now would be taken for one of an earlier process
        budgets = DisruptionBudgets(self._cache.cluster.objects)
        for victim in sorted(victims, key=lambda each: not budgets.covering(each)):
            present = self._cache.cluster.pods.get(victim.uid)
            if present is None or present.is_terminating:
                continue
            if not is_wanted() or not await self._evict(present, pod, policy, is_wanted, told):
                return False
        return True

    async def _evict(
        self,
        victim: PodInfo,
        pod: PodInfo,
        policy: str,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        move, run = self._move(victim, pod), f"{pod.uid}/{self._clock.now():.6f}"
        key = key_of(move, policy, Mode.ENFORCE, run)
        machine = self._executor.machine
        needless = f"pod {pod.key} waits for a node no longer"
        self._around.needs[key] = lambda: "" if is_wanted() else needless
        spec, message = spec_of(move, policy, Mode.ENFORCE), f"the room is for pod {pod.key}"
        try:
            self._executor.post(MovePlanned(key, spec, move, run, first_reason(Mode.ENFORCE, move), message))
            await self._executor.progress.until(
                lambda: (
                    (key not in machine.moves or machine.moves[key].stage in _ANSWERED)
                    and self._executor.is_idle(key)
                )
            )
        finally:
            del self._around.needs[key]
        state, record = machine.moves.get(key), self._keeper.known.get(key)
        if state is None or record is None:
            return False  # what is not on record is not done
        if state.begun:
            told(victim, record.name)
        elif state.attempts:
            self._observer.failed(f"preempting {victim.key}", record.status.message or "")
        return state.begun

    def _move(self, victim: PodInfo, pod: PodInfo) -> Move:
        node = self._cache.node_of(victim.uid)
        return Move(
            pod=victim,
            strategy=PREEMPTION,
            reason=f"preempted by pod {pod.key} ({pod.uid}) of priority {pod.priority},"
            f" which needs room on {node}",
            source=node,
            target="",
            gain=None,
            ties=0,
            is_forecast=False,
            workload=Workload(victim.uid, victim.key),
        )
