"""Records that somebody deletes while the watch of records does not tell."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, Synced
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.ports.custom_resources import WatchedRecord, WatchedRecordStatus
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.rebalancing.records.missed import MissedDeletions
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.testing.fakes import FakeClock, FakeRecords, RememberingObserver, settled
from rebalancing.scene import POLICY, Scene, a_policy
from rebalancing.test_controller import a_record
from rebalancing.test_ways import WithoutSurges

LISTED = Synced("evictions")


def totals(scene: Scene) -> dict[str, int]:
    """Those of the policy's status that are not zero."""
    counted: Mapping[str, int] = scene.statuses.statuses[POLICY]["totals"]
    return {outcome: count for outcome, count in counted.items() if count}


def shown(document: Mapping[str, Any]) -> WatchedRecord:
    """A record as the watch shows it."""
    meta = document["metadata"]
    return WatchedRecord(
        metadata=ObjectMeta(name=meta["name"], namespace=meta["namespace"], uid=meta.get("uid", "")),
        status=WatchedRecordStatus(phase=document["status"]["phase"]),
    )


async def test_a_record_that_was_never_shown_is_looked_for_after_each_list() -> None:
    """Created and deleted while the watch was down: no event ever tells."""
    scene = Scene()

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        assert totals(scene) == {"predicted": 1}
        scene.records.documents.clear()
        scene.wing.take_records([LISTED])
        await settled()

        assert scene.keeper.known == {}
        assert dict(scene.wing.executor.machine.moves) == {}
        assert totals(scene) == {}


async def test_a_record_that_is_there_is_kept_whether_or_not_it_was_shown() -> None:
    """A list that was begun before a record was created does not have it."""
    scene = Scene()

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        scene.wing.take_records([LISTED])
        await settled()

        assert totals(scene) == {"predicted": 1}


async def test_records_that_the_watch_shows_are_not_listed_again() -> None:
    """Their deletion is shown as well."""
    scene = Scene()
    asked = []
    plain = scene.records.list

    async def counted() -> Any:
        asked.append("list")
        return await plain()

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        scene.records.list = counted  # type: ignore[method-assign] # counts
        scene.wing.take_records([ObjectAdded(shown(scene.record)), LISTED])
        await settled()

    assert asked == []


async def test_a_list_that_is_refused_is_asked_for_again() -> None:
    """Until the server tells; a resource that it does not serve is no answer about its records."""
    scene = Scene()

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        scene.records.documents.clear()
        for verdict in (WriteOutcome.GONE, WriteOutcome.UNKNOWN):
            scene.records.answer = WriteResult(verdict, "no")
            scene.wing.take_records([LISTED])
            await settled()
            assert totals(scene) == {"predicted": 1}
        scene.records.answer = DONE
        await scene.clock.advance(2.0)
        await settled()

        assert totals(scene) == {}


class LateRecords(FakeRecords):
    """Answers a creation when told."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Keep it, and answer late."""
        answer = await super().create(document)
        await self.may_answer.wait()
        return answer


async def test_a_record_that_is_deleted_before_its_creation_is_answered_is_not_remembered() -> None:
    """The watch has shown its end; no second event comes."""
    records = LateRecords()
    scene = Scene(records)

    async with scene.running(a_policy("DryRun")):
        running = asyncio.create_task(scene.run())
        await settled()
        record = shown(scene.record)
        records.documents.clear()
        scene.wing.take_records([ObjectAdded(record), ObjectDeleted(record)])
        records.may_answer.set()
        await running

        assert scene.keeper.known == {}
        assert dict(scene.wing.executor.machine.moves) == {}


class Meddled(WithoutSurges):
    """Somebody deletes the records while a new process looks at the Deployment of one."""

    scene: Scene

    async def inspect(self, key: str, spec: EvictionSpec) -> None:
        """The watch shows it while the answer is on its way."""
        records = [shown(each) for each in self.scene.records.documents.values()]
        self.scene.records.documents.clear()
        self.scene.wing.take_records([ObjectAdded(each) for each in records])
        self.scene.wing.take_records([ObjectDeleted(each) for each in records])


async def test_records_that_are_deleted_while_they_are_taken_over_are_not_remembered() -> None:
    """The move machine would take them over after their end."""
    settled_before = a_record("Settled")
    settled_before["metadata"]["name"] = "web-1-old"
    ways = Meddled()
    ways.scene = scene = Scene(a_record("Surging"), settled_before, surges=ways)

    async with scene.running(a_policy()):
        assert scene.keeper.known == {}
        assert dict(scene.wing.executor.machine.moves) == {}


class SlowRecords(FakeRecords):
    """Hands a list over when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.go.set()

    async def list(self) -> Any:
        answer = await super().list()
        await self.go.wait()
        return answer


async def test_records_that_a_deposed_leader_made_are_carried_on() -> None:
    """Its lease was taken away, it made a record after this process had listed them, and then it noticed."""
    scene = Scene()

    async with scene.running(a_policy("DryRun")):
        scene.records.documents["default/web-1-abc"] = a_record("Evicting")
        await scene.clock.advance(19)
        assert scene.keeper.known == {}
        await scene.clock.advance(1)

        assert scene.phases == [["Cancelled"]]
        assert scene.record["status"]["reason"] == "Restarted"
        assert "default/web-1-abc" in scene.keeper.known


async def test_late_records_are_counted_in_the_status_of_their_policy() -> None:
    """Finished ones as well; each once."""
    scene = Scene()

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        late = a_record("Failed", reason="NoReplacement")
        scene.records.documents["default/web-1-abc"] = late
        await scene.clock.advance(20)

        assert totals(scene) == {"predicted": 1, "failed": 1}


async def test_a_record_that_is_made_or_deleted_meanwhile_is_not_late() -> None:
    """The list that shows it is older than what this process knows."""
    records = SlowRecords()
    scene = Scene(records)

    async with scene.running(a_policy("DryRun")):
        await scene.run()
        records.go.clear()
        await scene.clock.advance(20)
        for record in list(scene.keeper.known.values()):
            await scene.keeper.drop(record, "for a test")
        records.go.set()
        await settled()

        assert scene.keeper.known == {}


class Unheard(FakeRecords):
    """Keeps the first record that it is asked to create, and the answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, Any] = {}

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """The second has an answer."""
        answer = await super().create(document)
        if self.lost:
            return answer
        (self.lost,) = self.documents.values()
        return WriteResult(WriteOutcome.UNKNOWN, "no answer")


@pytest.mark.parametrize("mode", ["DryRun", "Approve"])
async def test_a_record_outlives_the_late_news_of_the_deletion_of_one_of_its_name(mode: str) -> None:
    """A record that had no answer is deleted and made again: a slow watch shows the deletion afterwards."""
    records = Unheard()
    scene = Scene(records)

    async with scene.running(a_policy(mode)):
        await scene.run()
        assert records.documents == {}
        await scene.run()
        old, new = shown(records.lost), shown(scene.record)
        assert old.key == new.key

        moves = dict(scene.wing.executor.machine.moves)
        scene.wing.take_records([ObjectAdded(old), ObjectDeleted(old)])
        await settled()
        assert dict(scene.wing.executor.machine.moves) == moves
        assert [*scene.keeper.known] == [new.key]
        assert sum(totals(scene).values()) == 1

        scene.wing.take_records([ObjectAdded(new), ObjectDeleted(new)])
        await settled()
        assert scene.keeper.known == {}
        assert totals(scene) == {}


async def test_the_late_news_comes_while_the_record_is_made_again() -> None:
    """It says nothing about the new one, whose answer is on its way."""
    records = LateRecords()
    scene = Scene(records)

    async with scene.running(a_policy("Approve")):
        running = asyncio.create_task(scene.run())
        await settled()
        old = msgspec.structs.replace(shown(scene.record), metadata=ObjectMeta(
            name=scene.record["metadata"]["name"], namespace="default", uid="of the old one"
        ))  # fmt: skip
        scene.wing.take_records([ObjectAdded(old), ObjectDeleted(old)])
        records.may_answer.set()
        await running
        await settled()

        assert len(scene.keeper.known) == 1
        assert totals(scene) == {"open": 1}


async def test_records_that_an_earlier_process_left_are_looked_for_before_any_list() -> None:
    """One of them was deleted between the reading of the records and the start of the watch."""
    records, clock = FakeRecords(), FakeClock()
    store = EvictionRecordStore(records, clock, RememberingObserver())
    gone: list[str] = []
    for number in (1, 2):
        document = a_record("Planned") | {
            "metadata": {**a_record("Planned")["metadata"], "name": f"r-{number}"}
        }
        store.notice(document)
        records.documents[f"{document['metadata']['namespace']}/r-{number}"] = document
    records.documents.popitem()

    missed = MissedDeletions(store, lambda _namespace, name, _uid: gone.append(name), clock)
    looking = asyncio.create_task(missed.run())
    await settled()
    looking.cancel()

    assert gone == ["r-2"]
