"""Victims of preemption that leave through the Eviction API, each with a record written ahead.

One after the other, those first that a budget covers: the first refusal stops the rest, and nobody is
deleted instead. The pod that needs room keeps its nomination, backs off and is tried again; by then the
budget allows it, or another node is the better candidate.

A victim's record says who needed the room. It is *Settled* when the victim has left, whoever replaces it
somewhere.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.cache import Cache
from plimsoll.framework import PodInfo
from plimsoll.model.kinds.watch_event import PodDeleted, PodUpdated, WatchEvent
from plimsoll.planning.limits import Workload
from plimsoll.planning.moves import Move
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import PodEviction
from plimsoll.rebalancing.moves.sending import ask, refused
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper
from plimsoll.toolkit.scheduling.disruption_budgets import DisruptionBudgets

#: In records: who decided.
STRATEGY = "DefaultPreemption"

#: Seconds beyond its grace period that a victim gets to leave, and between two looks.
PATIENCE_S, LOOK_S = 300.0, 30.0


@dataclass(frozen=True, slots=True)
class _Leaving:
    record: Record
    deadline: float


@dataclass(frozen=True, slots=True)
class _End:
    record: Record
    phase: Phase
    reason: str
    message: str


class VictimEvictions:
    """Evicts victims and completes their records; ``run`` must be running for the latter."""

    def __init__(
        self, *, cache: Cache, keeper: RecordKeeper, evictor: PodEviction, clock: Clock, observer: Observer
    ) -> None:
        self._cache = cache
        self._keeper = keeper
        self._evictor = evictor
        self._clock = clock
        self._observer = observer
        self._leaving: dict[str, _Leaving] = {}
        self._ends: asyncio.Queue[_End] = asyncio.Queue()

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
        keeper, node = self._keeper, self._cache.node_of(victim.uid)
        record = await keeper.open(
            Move(
                pod=victim,
                strategy=STRATEGY,
                reason=f"preempted by pod {pod.key} ({pod.uid}) of priority {pod.priority},"
                f" which needs room on {node}",
                source=node,
                target="",
                gain=None,
                ties=0,
                is_forecast=False,
                workload=Workload(victim.uid, victim.key),
            ),
            policy,
            Mode.ENFORCE,
            f"{pod.uid}/{self._clock.now():.6f}",
            planned=f"the room is for pod {pod.key}",
        )
        if record is None:
            return False  # what is not on record is not done
        record = await keeper.begin(record, Phase.EVICTING, reason="Sent")
        if record is None:
            return False
        if not is_wanted():
            await keeper.cancel(record, "NotNeeded", f"pod {pod.key} waits for a node no longer")
            return False
        self._await(record, victim)
        answer = await ask(self._evictor, victim.pod, self._cache, self._clock)
        if not answer.is_done:
            self._leaving.pop(victim.uid, None)
            await refused(keeper, record, answer)
            self._observer.failed(f"preempting {victim.key}", answer.message)
            return False
        record = await keeper.advance(record, Phase.EVICTED, reason="Accepted")
        told(victim, record.name)
        if victim.uid not in self._cache.cluster.pods:
            self._left(victim.uid)  # gone before the answer was on record
        return True

    # -- completing records --------------------------------------------------------------------------

    def adopt(self, record: Record) -> bool:
        """Take over the record of a victim that an earlier process evicted; false for other records."""
        if record.spec.strategy != STRATEGY:
            return False
        victim = self._cache.cluster.pods.get(record.spec.pod.uid)
        self._await(record, victim)
        if victim is None:
            self._left(record.spec.pod.uid)
        return True

    def _await(self, record: Record, victim: PodInfo | None) -> None:
        grace_s = 0 if victim is None else victim.pod.spec.termination_grace_period_seconds or 0
        deadline = self._clock.monotonic() + grace_s + PATIENCE_S
        self._leaving[record.spec.pod.uid] = _Leaving(record, deadline)

    def observe(self, event: WatchEvent) -> None:
        """A victim that is gone has made room."""
        match event:
            case PodDeleted(pod):
                self._left(pod.uid)
            case PodUpdated(_, pod) if pod.is_terminal:
                self._left(pod.uid)

    def _left(self, uid: str) -> None:
        leaving = self._leaving.get(uid)
        if leaving is None:
            return
        known = self._keeper.known.get(leaving.record.key)
        if known is not None and known.phase is Phase.EVICTING:
            return  # the answer is awaited, and will be on record first
        del self._leaving[uid]
        node = leaving.record.spec.from_node
        self._ends.put_nowait(_End(leaving.record, Phase.SETTLED, "Left", f"the pod has left {node}"))

    async def run(self) -> None:
        """Complete records until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._complete(), name="outcomes of victims")
            group.create_task(self._expire(), name="deadlines of victims")

    async def _complete(self) -> None:
        while True:
            end = await self._ends.get()
            try:
                await self._keeper.advance(end.record, end.phase, reason=end.reason, message=end.message)
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the others are completed
                self._observer.failed(f"completing {end.record.key}", repr(exc))

    async def _expire(self) -> None:
        while True:
            await self._clock.sleep(LOOK_S)
            now = self._clock.monotonic()
            for uid, leaving in list(self._leaving.items()):
                if now >= leaving.deadline:
                    del self._leaving[uid]
                    text = f"the pod was evicted and has not left {leaving.record.spec.from_node} in time"
                    self._ends.put_nowait(_End(leaving.record, Phase.FAILED, "StillThere", text))
