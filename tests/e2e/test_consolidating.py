"""Nodes of little use are closed, emptied and kept empty for a while; or left as they are."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from e2e.polls import eventually, throughout
from e2e.stories import consolidation, taints_of

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

OURS = "plimsoll.dev/consolidating"


async def test_a_node_is_closed_then_emptied(scene: Scene) -> None:
    """All its pods go where they were proved to fit; no eviction was sent before the taint."""
    busy, idle = await consolidation(scene)

    records = await scene.until_finished(2)
    assert await eventually(lambda: scene.running(set="web"), lambda nodes: len(nodes) == 3) == [busy] * 3
    assert [record["status"]["phase"] for record in records] == ["Settled", "Settled"]
    assert {record["spec"]["fromNode"] for record in records} == {idle}
    (taint,) = [each for each in await taints_of(scene, idle) if each["key"] == OURS]
    assert taint["effect"] == "NoSchedule"
    closed = datetime.fromisoformat(taint["timeAdded"])
    for record in records:
        sent = next(each for each in record["status"]["transitions"] if each["phase"] == "Evicting")
        assert datetime.fromisoformat(sent["time"]) >= closed


def moment(record: Obj, phase: str) -> datetime:
    """When a record reached a phase."""
    return next(
        datetime.fromisoformat(each["time"])
        for each in record["status"]["transitions"]
        if each["phase"] == phase
    )


async def test_pods_of_one_owner_leave_one_after_the_other(scene: Scene) -> None:
    """The default limits allow one eviction of a workload at a time, and the node is emptied all the same."""
    busy, idle = await consolidation(scene, siblings=3)

    records = await scene.until_finished(4)

    assert await eventually(lambda: scene.running(set="web"), lambda nodes: len(nodes) == 5) == [busy] * 5
    assert [record["status"]["phase"] for record in records] == ["Settled"] * 4
    api = sorted(
        (record for record in records if record["spec"]["owner"]["name"].startswith("api-")),
        key=lambda record: moment(record, "Evicting"),
    )
    for before, after in itertools.pairwise(api):
        assert moment(before, "Settled") <= moment(after, "Evicting")
    assert OURS in [each["key"] for each in await taints_of(scene, idle)]


async def test_a_node_is_emptied_when_all_of_it_is_approved(scene: Scene) -> None:
    """Two yeses of three move nothing and close nothing; with the third it goes as without asking."""
    busy, idle = await consolidation(scene, mode="Approve", siblings=2)
    await eventually(scene.phases, lambda phases: phases == ["Planned"] * 3)
    first, *others = await scene.records()
    bundle = first["spec"]["bundle"]
    assert {record["metadata"]["labels"]["plimsoll.dev/bundle"] for record in [first, *others]} == {
        bundle["name"]
    }
    assert bundle["moves"] == 3

    for record in others:
        await scene.answer(record)
    await throughout(scene.phases, lambda phases: phases == ["Planned"] * 3, 4)
    assert OURS not in [each["key"] for each in await taints_of(scene, idle)]

    await scene.answer(first)
    await eventually(lambda: taints_of(scene, idle), lambda found: OURS in [each["key"] for each in found])
    records = await scene.until_finished(3)
    assert [record["status"]["phase"] for record in records] == ["Settled"] * 3
    assert await eventually(lambda: scene.running(set="web"), lambda nodes: len(nodes) == 4) == [busy] * 4


async def test_one_no_keeps_a_node_as_it_is(scene: Scene) -> None:
    """What stands together falls together, and is not proposed again."""
    _, idle = await consolidation(scene, mode="Approve", siblings=2)
    records = await eventually(scene.records, lambda found: len(found) == 3)

    await scene.answer(records[0], "false")

    await eventually(scene.phases, lambda phases: phases == ["Cancelled"] * 3)
    await throughout(scene.phases, lambda phases: phases == ["Cancelled"] * 3, 3)
    assert await scene.running(app="api") == [idle, idle]


async def test_a_taint_that_no_move_needs_is_removed_and_others_stay(scene: Scene) -> None:
    """As after an operator that ended between the taint and the first record."""
    theirs = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    node = await scene.node("left", taints=[{"key": OURS, "effect": "NoSchedule"}, theirs])

    left = await eventually(
        lambda: taints_of(scene, node), lambda found: OURS not in [each["key"] for each in found]
    )

    assert left == [theirs]
