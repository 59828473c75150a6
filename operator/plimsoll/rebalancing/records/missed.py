"""Finds records that were deleted when the watch of records could not show it.

A record that is created and deleted between two lists of a watch is in neither, and no event reports it. The
wing passes on what the watch shows. After each complete list, records that we know and that the watch has not
shown are searched in a list of our own. The watch reports deletions of records that it has shown, so our own
lists are rare.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.model.names import RecordKey
from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import WriteOutcome
from plimsoll.rebalancing.records.store import RETRY_S, EvictionRecordStore
from plimsoll.timing.signal import Signal


@dataclass(eq=False)
class MissedDeletions:
    """Reports deleted records if the watch does not."""

    keeper: EvictionRecordStore
    deleted: Callable[[str, str, str], None]  #: receives namespace, name and uid of each
    clock: Clock
    _shown: set[RecordKey] = field(
        default_factory=set, init=False
    )  #: keys of records that the watch has shown
    _listed: Signal = field(default_factory=Signal, init=False)

    def shown(self, key: RecordKey) -> None:
        """Record that the watch shows a record."""
        self._shown.add(key)

    def gone(self, key: RecordKey) -> None:
        """Record that the watch shows a record as deleted."""
        self._shown.discard(key)

    def listed(self) -> None:
        """Record that the watch has shown all records."""
        self._listed.notify()

    async def run(self) -> None:
        """Check after each list of the watch, and once at the start, until cancelled."""
        while True:
            seen = self._listed.count
            await self.look()
            await self._listed.wait(seen)

    async def look(self) -> None:
        """Search the records that the watch has not shown; waits until the server responds."""
        while missing := {
            key: record.uid for key, record in self.keeper.known.items() if key not in self._shown
        }:
            answer, documents = await self.keeper.records.list()
            if answer.verdict is WriteOutcome.GONE:
                return  # the resource is not served; once it is, the watch lists
            if answer.is_done:
                metas = [document["metadata"] for document in documents]
                present = {f"{meta.get('namespace')}/{meta['name']}" for meta in metas}
                for key in sorted(missing.keys() - present - self._shown):
                    namespace, _, name = key.partition("/")
                    self.deleted(namespace, name, missing[key])
                return
            await self.clock.sleep(RETRY_S)
