"""Nodes of little use are closed, emptied and kept empty for a while; or left as they are."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from e2e.polling import eventually
from e2e.stories import consolidation, taints_of

if TYPE_CHECKING:
    from e2e.scene import Scene

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


async def test_a_taint_that_nobody_needs_is_removed_and_others_stay(scene: Scene) -> None:
    """As after an operator that ended between the taint and the first record."""
    theirs = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    node = await scene.node("left", taints=[{"key": OURS, "effect": "NoSchedule"}, theirs])

    left = await eventually(
        lambda: taints_of(scene, node), lambda found: OURS not in [each["key"] for each in found]
    )

    assert left == [theirs]
