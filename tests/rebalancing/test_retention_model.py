"""Compares the deletion of old and surplus records with a plain count."""

import asyncio
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.rebalancing.records.retention import Retention
from plimsoll.testing.fakes import FakeClock, RememberingObserver

TTL_S = 3600

#: A record: minutes since the one before it, whether it is finished, and whether a replacement is waited for.
histories = st.lists(
    st.tuples(
        st.integers(0, 40), st.sampled_from((True, True, False)), st.sampled_from((False, False, True))
    ),
    max_size=9,
)


class Shelf:
    """Records of one policy, the oldest first, and the deletions that fail."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.fails: set[str] = set()

    def policies(self) -> tuple[str, ...]:
        """The one policy."""
        return ("p",)

    def of_policy(self, policy: str) -> list[Any]:
        """Its records."""
        assert policy == "p"
        return list(self.records)

    async def drop(self, record: Any, _why: str) -> bool:
        """Delete one, unless the server refuses."""
        if record.key in self.fails:
            return False
        self.records.remove(record)
        return True


def kept(records: list[Any], now: float, most: int, used: set[str]) -> list[str]:
    """First all that are too old go; then, the oldest first, as many as are still too many."""
    free = [each for each in records if each.is_finished and each.key not in used]
    old = {each.key for each in free if each.created < now - TTL_S}
    young = [each.key for each in free if each.key not in old]
    many = young[: max(0, len(records) - len(old) - most)]
    return [each.key for each in records if each.key not in old and each.key not in many]


@settings(max_examples=100)
@given(history=histories, more=histories, most=st.integers(1, 6), failing=st.sets(st.integers(0, 8)))
def test_what_is_kept_is_what_is_young_and_not_too_many(
    history: Any, more: Any, most: int, failing: set[int]
) -> None:
    """The first time, and again after more moves; a deletion that fails is made up for the next time."""
    asyncio.run(_play(history, more, most, failing))


async def _play(history: Any, more: Any, most: int, failing: set[int]) -> None:
    clock, shelf, waited = FakeClock(), Shelf(), dict[str, Any]()
    policy = SimpleNamespace(
        spec=SimpleNamespace(
            rebalancing=SimpleNamespace(records=RecordRetention(ttl_seconds=TTL_S, max_count=most))
        )
    )
    deleted: list[str] = []
    retention = Retention(
        {"p": policy},  # type: ignore[dict-item] # the one field that is read
        shelf,  # type: ignore[arg-type] # likewise
        lambda event: deleted.append(event.key),
        clock,
        RememberingObserver(),
        lambda: waited,
    )
    for turn, some in enumerate((history, more)):
        for at, (minutes, is_finished, is_used) in enumerate(some):
            clock.time += 60.0 * minutes
            key = f"{turn}-{at}"
            shelf.records.append(SimpleNamespace(key=key, created=clock.now(), is_finished=is_finished))
            if is_used:
                waited[key] = SimpleNamespace(record=key)
        before = [each.key for each in shelf.records]
        used = {each.record for each in waited.values()}
        expected = kept(shelf.records, clock.now(), most, used)
        shelf.fails = {f"{turn}-{at}" for at in failing}
        await retention.tidy()
        shelf.fails = set()
        await retention.tidy()
        assert [each.key for each in shelf.records] == expected
        assert set(before) - set(expected) <= set(deleted)
        waited.clear()
