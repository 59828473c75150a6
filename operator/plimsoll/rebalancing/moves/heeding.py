"""Doing what people say of proposals: those approved are carried out, those rejected called off.

A bundle is carried out when all of its moves are approved, as it would be without asking: its node is closed,
its room kept. Whoever may annotate records in one namespace does not move pods of another.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from plimsoll.access.rights import Access, Part
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.proposals import Beneficiary
from plimsoll.planning.moves import EvictionPlan, Move
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.breakers.displacement import Displacements
from plimsoll.rebalancing.breakers.stop_button import StopButton
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.moves.approving import APPROVED, REJECTED, Approvals, is_complete, move_of
from plimsoll.rebalancing.moves.enforcing import NOT_ALL, Enforcement, Undertaking
from plimsoll.rebalancing.moves.moving import POLICY_CHANGED, Mover
from plimsoll.rebalancing.records.history import memory_of
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper
from plimsoll.rebalancing.run_status import RunReports, RunTotals
from plimsoll.timing.task_sets import PolicyLocks, PolicyTasks

#: Seconds between two looks at what people say of proposals.
ANSWERS_S = 2.0


class Heeding:
    """Carries out what people say of proposals.

    Args:
        policies: Those that rebalance, by name, at any moment.
        approvals: What people say.
        keeper: The records.
        mover: Knows the pods.
        enforcement: Makes the moves.
        closed: Knows which moves empty a node.
        stop: While it is pressed the answers wait.
        displacements: While a policy rests for them its answers wait.
        access: While rights are missing the answers wait.
        reports: Told of moves made.
        locks: One for each policy, held while its moves are made, and while its run is.
        clock: Time.
        observer: Told of failures.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        approvals: Approvals,
        keeper: RecordKeeper,
        mover: Mover,
        enforcement: Enforcement,
        closed: ClosedNodes,
        stop: StopButton,
        displacements: Displacements,
        access: Access,
        reports: RunReports,
        locks: PolicyLocks,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._approvals = approvals
        self._keeper = keeper
        self._mover = mover
        self._enforcement = enforcement
        self._closed = closed
        self._stop = stop
        self._displacements = displacements
        self._access = access
        self._reports = reports
        self._locks = locks
        self._clock = clock
        self._observer = observer

    async def run(self) -> None:
        """Look at the answers until cancelled; the policies do not wait for each other."""
        async with PolicyTasks() as tasks:
            while True:
                await self._clock.sleep(ANSWERS_S)
                if self._stop.is_pressed:
                    continue  # the answers keep
                for name in dict.fromkeys(records[0].spec.policy for records in self._approvals.groups()):
                    tasks.start(name, functools.partial(self._heed_all, name))

    async def _heed_all(self, name: str) -> None:
        """Do what was said of the proposals of one policy."""
        for records in self._approvals.groups():
            if records[0].spec.policy != name:
                continue
            try:
                async with self._locks.of(name):
                    await self._heed(records)
            except Exception as exc:  # noqa: BLE001 - whatever one proposal does, the others are heeded
                self._observer.failed(f"proposal {records[0].key}", repr(exc))

    async def _heed(self, records: Sequence[Record]) -> None:
        """Do what was said of proposals that go together."""
        name = records[0].spec.policy
        policy = self._policies.get(name)
        if (
            policy is None
            or policy.spec.rebalancing is None
            or policy.spec.rebalancing.mode is not Mode.APPROVE
        ):
            await self._call_off(records, *POLICY_CHANGED)
            return
        answers = [self._approvals.answer(record) for record in records]
        if False in answers:
            rejected = [record for record, answer in zip(records, answers, strict=True) if answer is False]
            await self._call_off(rejected, REJECTED, f"somebody annotated it {APPROVED}=false")
            await self._call_off(records, NOT_ALL, f"record {rejected[0].key} of its bundle was rejected")
            return
        if records[0].key in self._enforcement.under_way():
            return
        for record in records:
            if self._mover.find(record.spec.pod.uid) is None:
                await self._call_off([record], "Gone", "the pod is gone already")
                await self._call_off(records, NOT_ALL, f"the pod of record {record.key} is gone already")
                return
        if not is_complete(records):
            await self._call_off(records, NOT_ALL, "another record of its bundle is gone, or was called off")
        elif all(answers) and not self._is_held_up(policy):
            await self._carry_out(records, policy)

    def _is_held_up(self, policy: SchedulingPolicy) -> bool:
        """Whether moves of a policy wait for displaced pods, or for rights."""
        held_up = self._displacements.sentence(policy.metadata.name)
        return bool(held_up or self._access.obstacle(policy, Part.REBALANCING))

    async def _call_off(self, records: Sequence[Record], reason: str, message: str) -> None:
        for record in records:
            await self._keeper.cancel(record, reason, message)

    async def _carry_out(self, records: Sequence[Record], policy: SchedulingPolicy) -> None:
        """Make the moves, unless a workload has one under way: then they wait."""
        moves = self._moves(records)
        if moves is None:
            await self._call_off(records, NOT_ALL, "the pod that the moves make room for is gone")
            return
        in_flight = self._mover.in_flight()
        if any(in_flight.get(move.workload.uid) for move in moves):
            return
        memory = memory_of(self._keeper.known.values(), self._clock.now())
        proposals = {record.spec.pod.uid: record for record in records}
        alone = RunTotals(policy, self._clock.now(), EvictionPlan((), ()), "")
        await self._enforcement.undertake(Undertaking(alone, moves, proposals), memory)
        await self._reports.write(policy.metadata.name)

    def _moves(self, records: Sequence[Record]) -> tuple[Move, ...] | None:
        """The moves as proposed, for the pods as they are now; None when they would be for nobody."""
        bundle = records[0].spec.bundle
        beneficiary = None
        if bundle is not None and bundle.beneficiary is not None:
            waiting = self._mover.find(bundle.beneficiary.uid)
            others = [(self._mover.find(each.pod.uid), each.node) for each in bundle.members]
            if waiting is None or any(pod is None for pod, _ in others):
                return None
            members = tuple(Beneficiary(pod, node) for pod, node in others if pod is not None)
            beneficiary = Beneficiary(waiting, bundle.node or "", members)
        moves: list[Move] = []
        for record in records:
            pod = self._mover.find(record.spec.pod.uid)
            if pod is None:
                return None
            move = move_of(record, pod, beneficiary)
            is_next = any(move.workload.uid == each.workload.uid for each in moves)
            moves.append(replace(move, waits=is_next and self._closed.concerns(move)))
        return tuple(moves)
