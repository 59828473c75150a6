"""Evicts victims of preemption through the Eviction API, each with a record that is written first.

They are evicted in turn, those that a budget covers first: the first refusal ends the sequence, and no pod is
deleted instead. The preemptor keeps its nomination, backs off and is tried again; by then the budget allows
the eviction, or another node is the better candidate. Preemptors on one node may share a victim: it is
evicted once, with one record, and the second preemptor waits for the outcome.

A victim's record names the preemptor. It is *Settled* when the victim has left, whatever replaces it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.cache import Cache
from plimsoll.framework import PodInfo
from plimsoll.model.names import PodUid, PolicyName, RecordKey
from plimsoll.planning.limits import Workload, workload_key
from plimsoll.planning.moves import Move
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.events import MovePlanned
from plimsoll.rebalancing.moves.state import EvictionMethod, MoveStage, MoveState
from plimsoll.rebalancing.records.drafts import first_reason, key_of, spec_of
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.record import PREEMPTION
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

#: Stages of a victim whose eviction has a response.
_ANSWERED = (MoveStage.LEAVING, MoveStage.CLOSED)

#: Stages in which the eviction of a pod is announced and has no response, for whatever purpose.
_SENDING = (MoveStage.COMMITTING, MoveStage.EVICTING)


class VictimNeeds:
    """The questions whether victims must still leave, by record, while their evictions are prepared."""

    def __init__(self) -> None:
        self._why_not: dict[str, Callable[[], str]] = {}

    @contextmanager
    def asking(self, key: RecordKey, why_not: Callable[[], str]) -> Iterator[None]:
        """Within this context, the function says why a record's victim need not leave, "" if it must."""
        self._why_not[key] = why_not
        try:
            yield
        finally:
            del self._why_not[key]

    def needless(self, key: RecordKey) -> str:
        """Why the victim of a record need not leave, "" if it must or the record has no victim."""
        return self._why_not[key]() if key in self._why_not else ""


class VictimEvictions(Struct, frozen=True, kw_only=True):
    """Evicts victims."""

    cache: Cache
    keeper: EvictionRecordStore
    executor: MoveExecutor
    needs: VictimNeeds
    clock: Clock
    observer: Observer

    async def evict(
        self,
        victims: Sequence[PodInfo],
        pod: PodInfo,
        policy: PolicyName,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        """Evict the victims of one pod; see :class:`plimsoll.ports.pod_writes.VictimEvictor`."""
        if not self.keeper.is_recovered:
            return False  # a record written now would be taken for an earlier process's
        budgets = DisruptionBudgets(self.cache.cluster.objects)
        for victim in sorted(victims, key=lambda each: not budgets.cover(each)):
            evicted = await self._evicted_already(victim.uid)
            present = self.cache.cluster.pods.get(victim.uid)
            if present is None or present.is_terminating:
                continue
            if evicted:
                continue
            if self._is_unwritten(victim.uid) or not is_wanted():
                return False
            if not await self._evict(present, pod, policy, is_wanted, told):
                return False
        return True

    def _is_unwritten(self, uid: PodUid) -> bool:
        """Whether the server's record of this pod is outdated: a second one would be a second open one."""
        known = self.keeper.known
        return any(
            record.spec.pod.uid == uid and not self.keeper.is_written(key) for key, record in known.items()
        )

    async def _evicted_already(self, uid: PodUid) -> list[MoveState]:
        """Moves in which the Eviction API has evicted this pod, even if the watch does not show it yet.

        Waits while the eviction of this pod is being prepared for another preemptor, or has no response.
        """

        def moves() -> Iterator[MoveState]:
            return (each for each in self.executor.machine.moves.values() if each.spec.pod.uid == uid)

        await self.executor.progress.until(
            lambda: (
                not any(
                    each.stage in _SENDING
                    or (each.spec.strategy == PREEMPTION and each.stage not in _ANSWERED)
                    for each in moves()
                )
            )
        )
        return [
            each
            for each in moves()
            if each.begun and each.way is EvictionMethod.EVICT and each.stage is not MoveStage.CLOSED
        ]

    async def _evict(
        self,
        victim: PodInfo,
        pod: PodInfo,
        policy: PolicyName,
        is_wanted: Callable[[], bool],
        told: Callable[[PodInfo, str], None],
    ) -> bool:
        move, run = self._move(victim, pod), f"{pod.uid}/{self.clock.now():.6f}"
        key = key_of(move, policy, Mode.ENFORCE, run)
        machine = self.executor.machine
        needless = f"pod {pod.key} waits for a node no longer"
        spec, message = spec_of(move, policy, Mode.ENFORCE), f"the room is for pod {pod.key}"
        with self.needs.asking(key, lambda: "" if is_wanted() else needless):
            self.executor.post(MovePlanned(key, spec, move, run, first_reason(Mode.ENFORCE, move), message))
            await self.executor.progress.until(
                lambda: (
                    (key not in machine.moves or machine.moves[key].stage in _ANSWERED)
                    and self.executor.is_idle(key)
                )
            )
        state, record = machine.moves.get(key), self.keeper.known.get(key)
        if state is None or record is None:
            return False  # without a record nothing is evicted
        if state.begun:
            told(victim, record.name)
        elif state.attempts:
            self.observer.failed(f"preempting {victim.key}", record.status.message or "")
        return state.begun

    def _move(self, victim: PodInfo, pod: PodInfo) -> Move:
        node = self.cache.node_of(victim.uid)
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
            workload=Workload(workload_key(victim.namespace, victim.uid), victim.key),
        )
