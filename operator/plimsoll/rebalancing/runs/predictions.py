"""Keeps one record for each move that the latest dry run predicts, and deletes outdated ones.

Predictions are deleted with their policy, and when its mode changes.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.moves.events import RecordDeleted
from plimsoll.rebalancing.records.drafts import first_message, first_reason, key_of, spec_of
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.status import RunTotals
from plimsoll.records.record import Record
from plimsoll.timing.task_sets import first_of

#: Seconds after the start in which an unknown policy does not count as deleted.
STARTING_S = 30.0

#: Seconds between two attempts to delete outdated predictions.
AGAIN_S = 60.0


@dataclass(eq=False)
class Predictions:
    """Writes predictions, and deletes those of policies that no longer predict."""

    keeper: EvictionRecordStore
    post: Callable[[RecordDeleted], None]  #: receives the events of deleted records
    clock: Clock
    observer: Observer
    _predicting: frozenset[str] = field(default_factory=frozenset, init=False)
    _ended: set[str] = field(default_factory=set, init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def retain(self, policies: Collection[str]) -> None:
        """Keep predictions of these policies; those of others are deleted soon."""
        self._ended = (self._ended | self._predicting) - set(policies)
        self._predicting = frozenset(policies)
        if self._ended:
            self._news.set()

    async def run(self) -> None:
        """Delete until cancelled."""
        began = self.clock.monotonic()
        while True:
            self._news.clear()
            all_known = self.clock.monotonic() - began >= STARTING_S
            try:
                for record in self._outdated(all_known=all_known):
                    await self._drop(record)
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the next look comes
                self.observer.failed("deleting predictions", repr(exc))
            seconds = AGAIN_S if all_known else STARTING_S
            await first_of(self.clock.sleep(seconds), self._news.wait())

    def _outdated(self, *, all_known: bool) -> list[Record]:
        return [
            record
            for record in self.keeper.known.values()
            if record.spec.mode is Mode.DRY_RUN
            and record.spec.policy not in self._predicting
            and (all_known or record.spec.policy in self._ended)
        ]

    async def _drop(self, record: Record) -> None:
        """Delete a record, also from the moves after a restart, as the watch need not show its deletion."""
        if await self.keeper.drop(record, "outdated"):
            self.post(RecordDeleted(record.key))

    async def write(self, totals: RunTotals) -> None:
        """Record the predictions of a run; equal predictions share one record.

        If a strategy failed, its predictions are not known, and nothing is deleted.
        """
        keeper, policy, mode = self.keeper, totals.name, Mode.DRY_RUN
        moves = {key_of(move, policy, mode, totals.cycle): move for move in totals.plan.moves}
        for record in keeper.of_policy(policy):
            if record.spec.mode is mode and record.key not in moves and not totals.plan.failures:
                await self._drop(record)
        for key, move in moves.items():
            if key in keeper.known:
                continue
            if not keeper.has_room(policy, totals.spec.records):
                self.observer.record_dropped(policy, "breaker")
                continue
            await keeper.create(
                key,
                spec_of(move, policy, mode),
                Phase.PREDICTED,
                first_reason(mode, move),
                first_message(move, mode),
                now=self.clock.now(),
            )
