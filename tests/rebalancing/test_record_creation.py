"""Records whose creation got no answer, and those that a process may not write any more."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.model.names import RecordKey
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
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

    async def delete(self, namespace: str, name: str, *, uid: str = "") -> WriteResult:
        """Refuse twice."""
        return self.refusals.pop() if self.refusals else await super().delete(namespace, name, uid=uid)


RECORD = RecordKey("a/r-1")
SPEC = EvictionSpec.model_validate(
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


async def test_a_record_that_may_exist_is_deleted_until_the_server_has_done_it() -> None:
    """No move follows it, so left behind it would stay open for ever."""
    records, clock = LossyRecords(), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())

    making = asyncio.create_task(store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0))
    for _ in range(3):
        await settled()
        await clock.advance(1.0)
    answer = await making

    assert answer.verdict is WriteOutcome.UNKNOWN
    assert records.documents == {}
    assert store.known == {}


async def test_a_record_that_may_exist_is_deleted_after_a_long_outage_too() -> None:
    """Only the next leader looks for records without a move."""
    records, clock = LossyRecords(), FakeClock()
    records.refusals = [WriteResult(WriteOutcome.UNKNOWN, "no answer") for _ in range(12)]
    store = EvictionRecordStore(records, clock, RememberingObserver())
    running = asyncio.create_task(store.run())

    making = asyncio.create_task(store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0))
    await clock.advance(10.0)
    assert (await making).verdict is WriteOutcome.UNKNOWN
    assert [*records.documents] == ["a/r-1"]

    for _ in range(20):
        await clock.advance(5.0)

    assert records.documents == {}
    assert not store._unwritten
    assert not store._left
    running.cancel()


@pytest.mark.parametrize(
    ("verdict", "told"),
    [(WriteOutcome.FENCED, []), (WriteOutcome.REFUSED, [("record a/r-1", "no")])],
)
async def test_a_write_that_a_deposed_leader_does_not_send_is_no_failure(
    verdict: WriteOutcome, told: list[tuple[str, str]]
) -> None:
    """The next leader carries the record on; a refusal is one."""
    records, clock, observer = FakeRecords(), FakeClock(), RememberingObserver()
    store = EvictionRecordStore(records, clock, observer)
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=clock.now())
    records.answer = WriteResult(verdict, "no")

    writing = asyncio.create_task(store.write(RECORD, Phase.EVICTING, reason="Sent"))
    await clock.advance(60)

    assert (await writing).verdict is verdict
    assert observer.failures == told


async def test_a_lost_answer_counts_as_a_failure_when_the_next_one_is_lost_too() -> None:
    """Connections end now and then; the same write follows seconds later."""
    records, clock, observer = FakeRecords(), FakeClock(), RememberingObserver()
    store = EvictionRecordStore(records, clock, observer)
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=clock.now())
    await store.write(RECORD, Phase.EVICTING, reason="Sent")
    records.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")

    answer = await store.write(RECORD, Phase.EVICTING, reason="Sent", message="once more")
    assert (answer.verdict, observer.failures) == (WriteOutcome.UNKNOWN, [])

    await store.catch_up()
    assert observer.failures == [("record a/r-1", "no answer")]


async def test_a_record_that_was_refused_is_written_once_that_is_allowed() -> None:
    """A right may be taken away for minutes: the policy counts the move as settled, so must its record."""
    records, clock, observer = FakeRecords(), FakeClock(), RememberingObserver()
    store = EvictionRecordStore(records, clock, observer)
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=clock.now())
    await store.write(RECORD, Phase.EVICTING, reason="Sent")
    await store.write(RECORD, Phase.EVICTED, reason="Accepted")
    records.answer = WriteResult(WriteOutcome.REFUSED, "evictions/status is forbidden")
    running = asyncio.create_task(store.run())

    await store.write(RECORD, Phase.SETTLED, reason="Verified")
    for _ in range(60):
        await clock.advance(5.0)
    assert observer.failures == [("record a/r-1", "evictions/status is forbidden")]  # once, not each minute

    records.answer = WriteResult(WriteOutcome.REFUSED, "status.phase: Unsupported value")
    for _ in range(13):
        await clock.advance(5.0)
    assert [message for _, message in observer.failures] == [
        "evictions/status is forbidden",
        "status.phase: Unsupported value",
    ]

    records.answer = DONE
    for _ in range(13):
        await clock.advance(5.0)

    assert records.history == {"r-1": ["Planned", "Evicting", "Evicted", "Settled"]}
    assert not store._unwritten
    running.cancel()


class SlowRecords(FakeRecords):
    """Refuses the first status, keeps the second for a while, and refuses the third."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[WriteResult] = []
        self.goes_on = asyncio.Event()

    async def write_status(
        self, namespace: str, name: str, status: Mapping[str, Any], *, version: str, manager: str = ""
    ) -> WriteResult:
        """By its number."""
        self.answers.append(WriteResult(WriteOutcome.REFUSED, "no right"))
        match len(self.answers):
            case 1 | 3:
                return self.answers[-1]
            case 2:
                await self.goes_on.wait()
        return await super().write_status(namespace, name, status, version=version, manager=manager)


async def test_what_was_refused_while_an_older_state_was_written_is_written_again() -> None:
    """The older one is stored; the newer must follow, or the record would never come to its end."""
    records, clock = SlowRecords(), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    again = asyncio.create_task(store.run())
    await store.write(RECORD, Phase.EVICTING, reason="Evicting")
    for _ in range(2):
        await settled()
        await clock.advance(5.0)
    assert len(records.answers) == 2

    await store.write(RECORD, Phase.BLOCKED, reason="Refused")
    records.goes_on.set()
    for _ in range(20):
        await settled()
        await clock.advance(5.0)
    again.cancel()

    assert records.documents["a/r-1"]["status"]["phase"] == Phase.BLOCKED


class LateRecords(FakeRecords):
    """Carries out the first request of a kind long after it had no answer: a 504, or a lost connection.

    Attributes:
        late: What is carried out later.
        delayed: The names of the methods whose first request is.
    """

    def __init__(self, *delayed: str) -> None:
        super().__init__()
        self.late: list[Callable[[], Awaitable[WriteResult]]] = []
        self.delayed = {*delayed}

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Now or later."""
        return await self._delayed("create", partial(super().create, document))

    async def write_status(
        self, namespace: str, name: str, status: Mapping[str, Any], *, version: str, manager: str = ""
    ) -> WriteResult:
        """Now or later."""
        write = partial(super().write_status, namespace, name, status, version=version, manager=manager)
        return await self._delayed("write_status", write)

    async def _delayed(self, kind: str, request: Callable[[], Awaitable[WriteResult]]) -> WriteResult:
        if kind not in self.delayed:
            return await request()
        self.delayed.discard(kind)
        self.late.append(request)
        return WriteResult(WriteOutcome.UNKNOWN, "504: the request did not complete in time")

    async def carry_out(self) -> WriteOutcome:
        """Carry out what waits."""
        (request,) = self.late
        return (await request()).verdict


async def test_a_write_that_takes_effect_late_does_not_replace_a_newer_state() -> None:
    """The same write was repeated with success, and the next phase was written: the record has ended."""
    records, clock = LateRecords("write_status"), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    writing = asyncio.create_task(store.write(RECORD, Phase.EVICTING, reason="Sent"))
    await clock.advance(1.0)
    assert (await writing).is_done
    await store.write(RECORD, Phase.BLOCKED, reason="Refused")

    assert await records.carry_out() is WriteOutcome.CONFLICT
    assert records.history == {"r-1": ["Planned", "Evicting", "Blocked"]}
    assert store.is_written(RECORD)


async def test_the_older_of_two_states_that_are_written_concurrently_gives_way() -> None:
    """Requests on two connections may arrive in another order than they were sent."""
    records, clock, observer = LateRecords("write_status"), FakeClock(), RememberingObserver()
    store = EvictionRecordStore(records, clock, observer)
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    older = asyncio.create_task(store.write(RECORD, Phase.EVICTING, reason="Sent"))
    await settled()
    await store.write(RECORD, Phase.CANCELLED, reason="NotNeeded")
    await clock.advance(1.0)

    assert (await older).verdict is WriteOutcome.UNKNOWN
    assert await records.carry_out() is WriteOutcome.CONFLICT
    assert records.history == {"r-1": ["Planned", "Cancelled"]}
    assert (store.is_written(RECORD), observer.failures) == (True, [])


async def test_a_record_that_another_client_changed_is_read_and_written() -> None:
    """Somebody may label a record, or answer a proposal, at any time."""
    records, clock, observer = FakeRecords(), FakeClock(), RememberingObserver()
    store = EvictionRecordStore(records, clock, observer)
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    records.documents["a/r-1"]["metadata"]["resourceVersion"] = "7"

    assert (await store.write(RECORD, Phase.EVICTING, reason="Sent")).is_done
    assert (await store.write(RECORD, Phase.EVICTED, reason="Accepted")).is_done
    assert records.documents["a/r-1"]["metadata"]["resourceVersion"] == "9"
    assert observer.failures == []


async def test_a_record_in_whose_place_there_is_another_is_gone() -> None:
    """Somebody deleted it and created one of its name: that one is not ours to write."""
    records, clock = FakeRecords(), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    records.documents["a/r-1"]["metadata"] |= {"uid": "another", "resourceVersion": "7"}

    assert (await store.write(RECORD, Phase.EVICTING, reason="Sent")).verdict is WriteOutcome.GONE
    assert records.documents["a/r-1"]["status"]["phase"] == Phase.PLANNED
    assert store.known == {}


async def test_a_record_that_is_created_after_it_was_given_up_is_deleted() -> None:
    """It would stay without a phase until the next process leads."""
    records, clock = LateRecords("create"), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    running = asyncio.create_task(store.run())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    assert await records.carry_out() is WriteOutcome.DONE
    for _ in range(3):
        await clock.advance(5.0)
    running.cancel()

    assert records.documents == {}
    assert not store._unwritten
    assert not store._left


async def test_a_record_that_may_exist_is_deleted_once_that_is_allowed() -> None:
    """The right may be taken away for a while."""
    records, clock = LossyRecords(), FakeClock()
    records.refusals = [WriteResult(WriteOutcome.REFUSED, "forbidden")] * 2
    store = EvictionRecordStore(records, clock, RememberingObserver())
    running = asyncio.create_task(store.run())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    assert [*records.documents] == ["a/r-1"]
    for _ in range(10):
        await clock.advance(5.0)
    running.cancel()

    assert records.documents == {}
    assert not store._unwritten


async def test_a_record_that_was_given_up_has_its_time_to_come() -> None:
    """Whenever the next round of writes is."""
    records, clock = LateRecords("create"), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    running = asyncio.create_task(store.run())
    store._unwritten.failed(RecordKey("a/other"), WriteResult(WriteOutcome.BUSY))
    await clock.advance(4.0)
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    await clock.advance(1.5)
    assert await records.carry_out() is WriteOutcome.DONE
    for _ in range(3):
        await clock.advance(5.0)
    running.cancel()

    assert records.documents == {}
    assert not store._unwritten


async def test_a_record_without_a_status_is_deleted_when_that_is_refused() -> None:
    """A conflict at its status is not one about its name."""

    class Refusing(FakeRecords):
        async def create(self, document: Mapping[str, Any]) -> WriteResult:
            """Keep it, and refuse its status."""
            answer = await super().create(document)
            return WriteResult(WriteOutcome.CONFLICT, "the status", uid=answer.uid)

    records = Refusing()
    store = EvictionRecordStore(records, FakeClock(), RememberingObserver())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)

    assert (records.documents, dict(store.known), store._left) == ({}, {}, {})


async def test_the_answer_to_a_deletion_says_nothing_about_a_record_that_is_made_again() -> None:
    """The watch has shown the deletion before, and a run has predicted the same."""

    class Deleting(FakeRecords):
        async def delete(self, namespace: str, name: str, *, uid: str = "") -> WriteResult:
            """Make another record of the name before the answer."""
            answer = await super().delete(namespace, name, uid=uid)
            store.forget(namespace, name, uid)
            await store.create(RECORD, SPEC, Phase.PREDICTED, "Predicted", "", now=1.0)
            return answer

    records = Deleting()
    store = EvictionRecordStore(records, FakeClock(), RememberingObserver())
    await store.create(RECORD, SPEC, Phase.PREDICTED, "Predicted", "", now=0.0)

    assert not await store.drop(store.known[RECORD], "for a test")
    assert [*store.known] == [*records.documents] == ["a/r-1"]


async def test_a_record_that_is_made_again_is_not_taken_for_the_one_that_was_given_up() -> None:
    """Neither when it is known nor while its creation is under way."""
    records, clock = LateRecords("create"), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    running = asyncio.create_task(store.run())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    assert (await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)).is_done
    assert await records.carry_out() is WriteOutcome.CONFLICT
    for _ in range(3):
        await clock.advance(5.0)
    running.cancel()

    assert [*store.known] == [*records.documents] == ["a/r-1"]
    assert not store._unwritten


async def test_a_record_that_has_ended_is_written_no_more() -> None:
    """The end that came first stands, and a second writer does not try again."""
    records, clock = FakeRecords(), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    await store.create(RECORD, SPEC, Phase.PLANNED, "Planned", "", now=0.0)
    await store.write(RECORD, Phase.CANCELLED, reason="NotNeeded")

    answer = await store.write(RECORD, Phase.BLOCKED, reason="Refused")

    assert answer.is_done
    assert records.history == {"r-1": ["Planned", "Cancelled"]}
