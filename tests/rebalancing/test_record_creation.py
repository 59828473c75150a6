"""Records whose creation got no answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.testing.fakes import FakeClock, FakeRecords, RememberingObserver, settled


class LossyRecords(FakeRecords):
    """Creates records but loses the answer, and is busy when asked to delete for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = [WriteResult(WriteOutcome.BUSY), WriteResult(WriteOutcome.UNKNOWN)]

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Keep it, and say nothing."""
        await super().create(document)
        return WriteResult(WriteOutcome.UNKNOWN, "no answer")

    async def delete(self, namespace: str, name: str) -> WriteResult:
        """Refuse twice."""
        return self.refusals.pop() if self.refusals else await super().delete(namespace, name)


async def test_a_record_that_may_exist_is_deleted_until_the_server_has_done_it() -> None:
    """No move follows it, so left behind it would stay open for ever."""
    records, clock = LossyRecords(), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    spec = EvictionSpec.model_validate(
        {
            "pod": {"namespace": "a", "name": "web-1", "uid": "u"},
            "policy": "p",
            "strategy": "s",
            "mode": "Enforce",
            "planner": "Proven",
            "reason": "r",
            "fromNode": "n",
        }
    )

    making = asyncio.create_task(store.create("a/r-1", spec, Phase.PLANNED, "Planned", "", now=0.0))
    for _ in range(3):
        await settled()
        await clock.advance(1.0)
    answer = await making

    assert answer.verdict is WriteOutcome.UNKNOWN
    assert records.documents == {}
    assert store.known == {}
