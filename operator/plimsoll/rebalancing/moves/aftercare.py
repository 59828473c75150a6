"""Finishes moves: writes outcomes, ends waits, reopens nodes, deletes old records."""

import asyncio
from collections.abc import Mapping

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.closed_nodes import ClosedNodes
from plimsoll.rebalancing.moves.verifying import Outcome, Verification
from plimsoll.rebalancing.records.store import RecordKeeper
from plimsoll.rebalancing.rooms import Rooms
from plimsoll.rebalancing.run_status import RunReports
from plimsoll.rebalancing.surges.surging import Surges

#: Seconds between two looks at moves whose time may be up, and at records that are too old.
EXPIRY_S, TIDY_S = 5.0, 60.0


class Aftercare:
    """Sees to what moves leave behind.

    Args:
        policies: Those that rebalance, by name, at any moment.
        keeper: The records.
        verification: Moves that wait for their replacement.
        surges: Those under way.
        rooms: Kept for pending pods.
        closed: Nodes that are emptied.
        outcomes: Of moves whose records may be completed.
        reports: Told of moves that ended well.
        clock: Time.
        observer: Told of failures.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        keeper: RecordKeeper,
        verification: Verification,
        surges: Surges,
        rooms: Rooms,
        closed: ClosedNodes,
        outcomes: asyncio.Queue[Outcome],
        reports: RunReports,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._policies = policies
        self._keeper = keeper
        self._verification = verification
        self._surges = surges
        self._rooms = rooms
        self._closed = closed
        self._reports = reports
        self._clock = clock
        self._observer = observer
        self._outcomes = outcomes
        self._retentions: dict[str, RecordRetention] = {}

    async def run(self) -> None:
        """See to it until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._expire(), name="deadlines of moves")
            group.create_task(self._complete(), name="outcomes of moves")

    async def tidy(self) -> None:
        """Drop old records; those of suspended and deleted policies by what was last asked for them."""
        for name, policy in self._policies.items():
            if policy.spec.rebalancing is not None:
                self._retentions[name] = policy.spec.rebalancing.records
        for name in self._keeper.policies():
            await self._keeper.tidy(name, self._retentions.get(name, RecordRetention()))
        self._retentions = {
            name: kept for name, kept in self._retentions.items() if name in self._keeper.policies()
        }

    async def _expire(self) -> None:
        tidied = self._clock.monotonic()
        while True:
            await self._clock.sleep(EXPIRY_S)
            now = self._clock.monotonic()
            try:
                self._verification.expire(now)
                self._rooms.expire(now)
                await self._surges.look_after()
                await self._keeper.catch_up()
                await self._closed.look_after()
                if now - tidied >= TIDY_S:
                    tidied = now
                    await self.tidy()
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the next look comes
                self._observer.failed("looking after records", repr(exc))

    async def _complete(self) -> None:
        """Write how moves ended."""
        while True:
            outcome = await self._outcomes.get()
            try:
                await self._conclude(outcome)
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the others are completed
                self._observer.failed(f"completing {outcome.record.key}", repr(exc))

    async def _conclude(self, outcome: Outcome) -> None:
        record = await self._keeper.advance(
            outcome.record,
            outcome.phase,
            reason=outcome.reason,
            message=outcome.message,
            replacement=outcome.replacement,
        )
        if outcome.phase is Phase.SETTLED:
            self._reports.count(record.spec.policy, verified=1)
        await self._reports.write(record.spec.policy)
