"""Doing what people say of proposals: those approved are carried out, those rejected called off."""

import asyncio
from collections.abc import Callable, Mapping

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control.approving import APPROVED, REJECTED, Approvals, move_of
from plimsoll.control.keeping import Record, RecordKeeper
from plimsoll.control.moving import POLICY_CHANGED, Mover
from plimsoll.control.ports import Clock
from plimsoll.control.remembering import memory_of
from plimsoll.control.reporting import RunReports
from plimsoll.control.restraining import StopButton
from plimsoll.control.verifying import Verification
from plimsoll.engine.moves import Rebalancing
from plimsoll.framework.observer import Observer

#: Seconds between two looks at what people say of proposals.
ANSWERS_S = 2.0


class Heeding:
    """Carries out what people say of proposals.

    Args:
        policies: Those that rebalance, by name, at any moment.
        asked_for: What a policy asks for now; None when another spec has taken its place, or none has.
        approvals: What people say.
        keeper: The records.
        mover: Makes each move.
        verification: Knows which moves are under way.
        stop: While it is pressed the answers wait.
        reports: Told of moves made.
        one_run: Held while a move is made, and while a run is.
        clock: Time.
        observer: Told of failures.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        asked_for: Callable[[SchedulingPolicy], Rebalancing | None],
        approvals: Approvals,
        keeper: RecordKeeper,
        mover: Mover,
        verification: Verification,
        stop: StopButton,
        reports: RunReports,
        one_run: asyncio.Lock,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._asked_for = asked_for
        self._approvals = approvals
        self._keeper = keeper
        self._mover = mover
        self._verification = verification
        self._stop = stop
        self._reports = reports
        self._one_run = one_run
        self._clock = clock
        self._observer = observer

    async def run(self) -> None:
        """Look at the answers until cancelled."""
        while True:
            await self._clock.sleep(ANSWERS_S)
            if self._stop.is_pressed:
                continue  # the answers keep
            for record in self._approvals.waiting():
                try:
                    async with self._one_run:
                        await self._heed(record)
                except Exception as exc:  # noqa: BLE001 - whatever one proposal does, the others are heeded
                    self._observer.failed(f"proposal {record.key}", repr(exc))

    async def _heed(self, record: Record) -> None:
        """Do what was said of one proposal; one whose workload has a move under way waits."""
        name = record.spec.policy
        policy, pod = self._policies.get(name), self._mover.find(record.spec.pod.uid)
        if (
            policy is None
            or policy.spec.rebalancing is None
            or policy.spec.rebalancing.mode is not Mode.APPROVE
        ):
            await self._keeper.cancel(record, *POLICY_CHANGED)
            return
        if pod is None:
            await self._keeper.cancel(record, "Gone", "the pod is gone already")
            return
        answer = self._approvals.answer(record)
        if answer is False:
            await self._keeper.cancel(record, REJECTED, f"somebody annotated it {APPROVED}=false")
        if not answer:
            return
        move = move_of(record, pod)
        if self._verification.in_flight().get(move.workload.uid):
            return
        memory = memory_of(self._keeper.known.values(), self._clock.now())
        if await self._mover.make(record, move, lambda: self._asked_for(policy), memory, evicted=0):
            self._reports.count(name, evicted=1)
            await self._reports.write(name)
