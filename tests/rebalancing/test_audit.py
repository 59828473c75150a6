"""Records that have ended are exported, each at least once, before anything deletes them."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.api.v1alpha1.audit import AuditedEviction
from plimsoll.app.audit_file import AuditFile
from plimsoll.cluster.watch_events import ObjectDeleted, PodAdded, PodUpdated
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.ports.custom_resources import WatchedRecord
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes import FakeRecords, settled
from rebalancing.scene import Scene, a_policy, web

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LATER = "2026-06-01T00:00:00Z"


class Sink:
    """Keeps lines, unless its disk is full."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.is_full = False

    async def write(self, lines: Sequence[str]) -> None:
        """Keep lines."""
        if self.is_full:
            raise OSError("no space left on device")
        self.lines += map(json.loads, lines)


async def a_move(scene: Scene) -> None:
    """One run, and its move to the verified end."""
    await scene.run()
    await settled()
    scene.gone(web(1, "bad"))
    scene.tell(
        PodAdded(web(3, created=LATER)), PodUpdated(web(3, created=LATER), web(3, "good", created=LATER))
    )
    await scene.clock.advance(2)
    await settled()


async def test_a_finished_record_is_exported_once() -> None:
    """With its decision and its phases; the record says so, and a new leader does not repeat it."""
    sink = Sink()
    scene = Scene(audit=sink)
    async with scene.running(a_policy()):
        await a_move(scene)
        await scene.clock.advance(60)

    (line,) = sink.lines
    read = AuditedEviction.from_wire(line)
    assert (read.cluster, read.name, read.deleted) == ("west", scene.record["metadata"]["name"], False)
    assert [each.phase.value for each in read.status.transitions] == scene.phases[0][:4]
    assert read.spec.strategy == "RemovePodsViolatingNodeTaints"
    assert scene.record["status"]["exportedTime"]

    successor = Scene(scene.records, audit=sink)
    async with successor.running(a_policy()):
        await successor.clock.advance(60)
    assert len(sink.lines) == 1


async def test_a_leader_that_dies_before_the_note_leads_to_a_second_line_with_the_same_uid() -> None:
    """At least once."""
    sink, records = Sink(), FakeRecords()
    scene = Scene(records, audit=sink)
    async with scene.running(a_policy()):

        async def dies(*_: Any) -> WriteResult:
            return WriteResult(WriteOutcome.FENCED, "not sent: this process does not lead")

        scene.keeper.write_exported = dies  # type: ignore[method-assign, assignment] # the process loses its lease here
        await a_move(scene)
    successor = Scene(records, audit=sink)
    async with successor.running(a_policy()):
        await successor.clock.advance(5)

    assert {each["uid"] for each in sink.lines} == {scene.record["metadata"]["uid"]}
    assert len(sink.lines) >= 2
    assert scene.record["status"]["exportedTime"]


async def test_retention_waits_for_the_log() -> None:
    """While nothing can be written, records stay, whatever their age; then they are exported and deleted."""
    sink = Sink()
    sink.is_full = True
    scene = Scene(audit=sink)
    async with scene.running(a_policy(records={"ttlSeconds": 60, "maxCount": 1})):
        await a_move(scene)
        await scene.clock.advance(7200)
        await scene.wing.retention.tidy()
        assert len(scene.records.documents) == 1
        sink.is_full = False
        await scene.clock.advance(10)
        await scene.wing.retention.tidy()

    assert len(sink.lines) == 1
    assert scene.records.documents == {}


async def test_a_record_that_somebody_deletes_is_exported_all_the_same() -> None:
    """Finished or not; the line says that it was cut."""
    sink = Sink()
    scene = Scene(audit=sink)
    async with scene.running(a_policy()):
        await scene.run()
        await settled()
        document = copy.deepcopy(scene.record)
        scene.records.documents.clear()
        meta = {key: document["metadata"][key] for key in ("name", "namespace", "uid")}
        gone = WatchedRecord(metadata=ObjectMeta(**meta))
        scene.wing.take_records([ObjectDeleted(gone)])
        await scene.clock.advance(10)
        await settled()

    (line,) = sink.lines
    assert line["deleted"] is True
    assert line["uid"] == document["metadata"]["uid"]
    assert line["status"]["phase"] == "Evicted"


async def test_predictions_are_not_exported_and_keep_no_record() -> None:
    """Retention deletes those of dry runs as it does without a log."""
    sink = Sink()
    scene = Scene(audit=sink)
    async with scene.running(a_policy("DryRun", records={"ttlSeconds": 60, "maxCount": 1})):
        await scene.run()
        await scene.clock.advance(7200)
        await scene.wing.retention.tidy()

    assert sink.lines == []
    assert scene.records.documents == {}


async def test_a_file_is_appended_to_and_a_torn_line_is_closed(tmp_path: Path) -> None:
    """A writer died within a line: the next line begins on its own."""
    path = tmp_path / "audit.jsonl"
    path.write_text('{"uid": "a"}\n{"uid": "b', encoding="utf-8")

    await AuditFile(str(path)).write(['{"uid": "b"}', '{"uid": "c"}'])

    assert path.read_text(encoding="utf-8").splitlines()[2:] == ['{"uid": "b"}', '{"uid": "c"}']


async def test_a_file_that_cannot_be_written_raises(tmp_path: Path) -> None:
    """The caller tries again."""
    with pytest.raises(OSError, match="Is a directory"):
        await AuditFile(str(tmp_path)).write(["{}"])
