"""Writes the measured use of the replacement into records of moves by load.

A replacement counts once it has started up, that is, when measurements replace its expected use
(:class:`plimsoll.load.readings.LoadSettings`). One without enough readings within an hour gets no entry.
"""

from dataclasses import dataclass

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.records.load_figures import used_load
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.records.history import ended_at
from plimsoll.records.record import Record
from plimsoll.usage.load_feed import LoadFeed

#: Seconds after a move's end until which its replacement may be measured.
LONGEST_S = 3_600.0

#: Phases of moves whose replacement runs.
RUNS = frozenset((Phase.SETTLED, Phase.RETURNED))


@dataclass(eq=False)
class LoadForecasts:
    """Compares expected use with measured use."""

    store: EvictionRecordStore
    feed: LoadFeed
    clock: Clock
    observer: Observer

    async def run(self) -> None:
        """Check after each refresh of the load book, until cancelled."""
        seen = self.feed.refreshed.count
        while True:
            seen = await self.feed.refreshed.wait(seen)
            try:
                await self.look()
            except Exception as exc:  # noqa: BLE001 - whatever one record holds, the next look comes
                self.observer.failed("writing the measured load of moved pods", repr(exc))

    async def look(self) -> None:
        """Write the uses that are known now."""
        book_keeper, now = self.feed.keeper, self.clock.now()
        if book_keeper is None:
            return
        for record in [each for each in self.store.known.values() if _waits(each, now)]:
            expected, landed = record.spec.load, record.status.replacement
            used = None if landed is None else book_keeper.use_of(landed.uid)
            if expected is None or used is None:
                continue
            found = used_load(expected, used, now)
            await self.store.write_load(record.key, found)
            for each in found.resources:
                if each.error_percent is not None:
                    self.observer.forecast_checked(each.resource, abs(each.error_percent) / 100)


def _waits(record: Record, now: float) -> bool:
    """Whether the use of its replacement is still to be written."""
    return (
        record.spec.load is not None
        and record.status.load is None
        and record.phase in RUNS
        and now - ended_at(record) <= LONGEST_S
    )
